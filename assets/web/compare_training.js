// How decompositions drift while an orchestrator learns: width, depth, parallelism, worker shares, diversity, turns and
// accuracy over the steps of a job, and over its evaluated checkpoints. A click on a step shows example plans.

import { el } from "./dom.js";
import { Figure } from "./compare_figure.js";
import { lineChart } from "./compare_charts.js";
import { Rollouts } from "./rollouts.js";
import { ask, one, put } from "./compare_state.js";
import { fixed, palette, percent } from "./compare_words.js";

const MOST_WORKERS = 8;
const share = (value) => percent(value);

export class TrainingView {
  constructor(page) {
    this.page = page;
    this.root = el("div", "cd");
    this.job = el("select", "pp-select", null, { "aria-label": "Training job" });
    this.job.addEventListener("change", () => {
      put({ train: this.job.value, step: null });
      this.show();
    });
    this.about = el("p", "tr-mute", "", { role: "status" });
    this.grid = el("div", "cd-grid");
    this.plans = el("section", "cf cd-plans", null, { "aria-label": "Example plans" });
    this.plans.hidden = true;
    this.rollouts = new Rollouts();
    const bar = el("div", "cp-filters");
    bar.append(this.job);
    this.root.append(bar, this.about, this.plans, this.grid);
  }

  async show() {
    const jobs = await this.trainings();
    if (!jobs.length) {
      this.job.hidden = true;
      const box = el("div", "cp-empty");
      box.append(el("p", "", "No orchestrator has been trained yet. Its plans drift while it learns: start a job on the Train page, cpu-first-steps takes a few minutes."), el("a", "pp-button", "Open Train", { href: "/train?new=1" }));
      this.grid.replaceChildren(box);
      return;
    }
    this.job.hidden = false;
    this.job.replaceChildren(...jobs.map((job) => el("option", "", `${job.id} · ${job.state}`, { value: job.id })));
    const wanted = one("train") || jobs[0].id;
    this.job.value = wanted;
    const told = await ask("training", { job: wanted });
    this.told = told;
    if (told.ok) this.draw(told);
    else this.grid.replaceChildren(el("p", "tr-empty", told.hint));
  }

  /** The jobs that train; evaluations alone have no steps. */
  async trainings() {
    try {
      const told = await (await fetch("/api/jobs")).json();
      return told.jobs.filter((job) => /sft|grpo/.test(job.kind));
    } catch {
      this.about.textContent = "The studio does not answer. Is it still running?";
      return [];
    }
  }

  draw(told) {
    const charts = this.charts(told).filter((chart) => chart.series.some((each) => each.points.length));
    const lost = told.traces.lost ? ` ${told.traces.lost} of the episodes are no longer in this data folder.` : "";
    this.about.textContent = charts.length ? `Lines are GRPO's own episodes, dots are evaluated checkpoints, diamonds checkpoints. Depth, parallelism and diversity are means over ${told.traces.episodes} episodes of a step. Click a step to see its plans.${lost}` : "";
    this.grid.replaceChildren(...(charts.length ? [] : [el("p", "tr-empty", told.state === "done" ? "This job has no steps of reinforcement learning and no evaluated checkpoint: evaluate some of its checkpoints on the Suite tab." : "Nothing yet: the drift begins with the first step of GRPO.")]));
    const steps = charts.flatMap((chart) => chart.series.flatMap((each) => each.points.map(([step]) => step)));
    const range = [Math.min(...steps), Math.max(...steps)];
    for (const chart of charts) this.grid.append(this.figure(chart, told, range).root);
    const step = Number(one("step")) || null;
    if (step) this.openStep(step);
    else this.plans.hidden = true;
  }

  figure(chart, told, range) {
    const colours = palette(chart.series.map((each) => each.name));
    const marks = told.checkpoints.map((each) => ({ step: each.step }));
    return new Figure({
      name: chart.id,
      title: chart.title,
      about: chart.about,
      draw: (width) => lineChart(width, chart.series, colours, { written: chart.written, low: chart.low, high: chart.high, marks, range, onStep: (step) => this.openStep(step) }),
      data: () => ({ columns: ["series", "step", "value", "low", "high"], rows: chart.series.flatMap((each) => each.points.map(([step, value, low, high]) => [each.name, step, value, low, high])) }),
    });
  }

  charts(told) {
    const byStep = (key) => pairs(told.steps, told.series[key]);
    const traced = (key) => pairs(told.traces.steps, told.traces.series[key]);
    const measured = (key) => told.checkpoints.filter((each) => each[key] !== null).map((each) => [each.step, each[key]]);
    const dots = (name, points) => ({ name, points, dots: true });
    const workers = Object.entries(told.workers).sort((a, b) => mean(b[1]) - mean(a[1])).slice(0, MOST_WORKERS);
    return [
      { id: "accuracy", title: "Accuracy", about: "Share of right answers", written: share, low: 0, high: 1, series: [{ name: "training episodes", points: byStep("accuracy") }, { name: "validation", points: byStep("validation") }, dots("evaluated", told.checkpoints.map((each) => [each.step, ...each.mean]))] },
      { id: "width", title: "Width", about: "Most steps that could run at once", written: fixed1, series: [{ name: "training episodes", points: byStep("width") }, dots("evaluated", measured("width"))] },
      { id: "depth", title: "Depth", about: "Steps that had to wait for each other", written: fixed1, series: [{ name: "training episodes", points: traced("depth") }, dots("evaluated", measured("depth"))] },
      { id: "parallelism", title: "Parallelism", about: "Steps for each layer; 1 is one after another", written: (value) => fixed(value), series: [{ name: "training episodes", points: traced("parallelism") }, dots("evaluated", measured("parallelism"))] },
      { id: "drift-turns", title: "Turns", about: "Of the orchestrator, per episode", written: fixed1, series: [{ name: "training episodes", points: byStep("turns") }, dots("evaluated", measured("turns"))] },
      { id: "drift-steps", title: "Steps", about: "Per episode", written: fixed1, series: [{ name: "training episodes", points: traced("steps") }, dots("evaluated", measured("steps"))] },
      { id: "diversity", title: "Tool diversity", about: "Different workers in an episode", written: fixed1, series: [{ name: "training episodes", points: traced("tools") }] },
      { id: "entropy", title: "Worker entropy", about: "In bits; 0 is one worker alone", written: (value) => fixed(value), series: [{ name: "training episodes", points: traced("entropy") }, dots("evaluated", measured("entropy"))] },
      { id: "shares", title: "Worker shares", about: "Of all steps", written: share, low: 0, series: workers.map(([name, values]) => ({ name, points: pairs(told.steps, values) })) },
    ];
  }

  /** The groups of a step with their small graphs, as the Train page shows them; the nearest step that has some. */
  async openStep(step) {
    put({ step });
    this.rollouts.clear(this.told.job);
    const head = el("header", "cf-head");
    const title = el("div", "cf-title");
    title.append(el("h3", "", "Example plans"), el("p", "", "Every graph opens on the Run page."));
    const close = el("button", "pd-link", "Close", { type: "button" });
    close.addEventListener("click", () => {
      put({ step: null });
      this.plans.hidden = true;
    });
    head.append(title, close);
    this.plans.replaceChildren(head, this.rollouts.root);
    this.plans.hidden = false;
    await this.rollouts.show(step);
    this.plans.scrollIntoView({ block: "nearest" });
  }
}

function pairs(steps, values) {
  return (values || []).map((value, place) => [steps[place], value]).filter(([, value]) => value !== null);
}

function mean(values) {
  const known = values.filter((value) => value !== null);
  return known.reduce((sum, value) => sum + value, 0) / (known.length || 1);
}

function fixed1(value) {
  return fixed(value, 1);
}
