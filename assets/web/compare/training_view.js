// How decompositions drift while an orchestrator learns: width, depth, parallelism, worker shares, diversity, turns and
// accuracy over the steps of a job, and over its evaluated checkpoints. A click on a step shows example plans.

import { followEvents, getDocument } from "../lib/api.js";
import { el } from "../lib/dom.js";
import { Figure } from "./figure.js";
import { lineChart } from "./charts.js";
import { Rollouts } from "../train/rollouts.js";
import { ask, one, put } from "./address.js";
import { formatFixed, palette, percent } from "./formats.js";

/** @typedef {import("../types").DriftDocument} DriftDocument */
/** @typedef {"width" | "depth" | "parallelism" | "turns" | "steps" | "entropy"} Measured */
/** @typedef {import("./charts.js").Series} Series */
/**
 * @typedef {{ id: string, title: string, about: string, written: (value: number) => string, low?: number, high?: number,
 *   series: Series[] }} DriftChart
 */

const MOST_WORKERS = 8;
const ACTIVE = ["queued", "running", "stopping"];
/** @type {Record<string, string>} */
const NOTHING = {
  queued: "This job waits in the queue: the drift begins with the first step of GRPO.",
  running: "Nothing yet: the drift begins with the first step of GRPO. This page follows the job by itself.",
  done: "This job has no steps of reinforcement learning and no evaluated checkpoint: evaluate some of its checkpoints on the Suite tab.",
  stopped: "This job stopped before its first step of GRPO. Resume it on the Train page, or evaluate some of its checkpoints on the Suite tab.",
  failed: "This job failed before its first step of GRPO. The Train page says why.",
};
const REDRAW_MS = 2000; // at most so often while steps come in
const JOBS_MS = 4000;
/** @param {number} value */
const share = (value) => percent(value);

export class TrainingView {
  /** @param {import("./page.js").ComparePage} page */
  constructor(page) {
    this.page = page;
    this.listed = ""; // the jobs that are offered
    this.root = el("div.compare-training");
    this.job = el("select.page-select", { "aria-label": "Training job" });
    this.job.addEventListener("change", () => {
      put({ train: this.job.value, step: null });
      this.show();
    });
    this.live = el("span.train-pill", { "data-testid": "training-live" });
    this.about = el("p.train-mute", { role: "status" });
    this.grid = el("div.compare-training-grid");
    this.plans = el("section.compare-figure.compare-training-plans", { "aria-label": "Example plans" });
    this.plans.hidden = true;
    this.rollouts = new Rollouts();
    this.root.append(el("div.compare-filters", {}, this.job, this.live), this.about, this.plans, this.grid);
    setInterval(() => this.isVisible() && this.hear(), JOBS_MS);
  }

  /** Is anybody looking at this tab? */
  isVisible() {
    return document.visibilityState === "visible" && this.root.offsetParent !== null;
  }

  async show() {
    this.unfollow();
    if (!(await this.fillJobs())) return;
    const job = one("train") || this.job.value;
    this.job.value = job;
    /** @type {Map<string, Figure>} */
    this.figures = new Map();
    /** @type {string[]} */
    this.workers = [];
    if (!(await this.load(job))) return;
    const step = Number(one("step")) || null;
    if (step) this.openStep(step);
    else this.plans.hidden = true;
    if (ACTIVE.includes(this.reply.state)) this.follow(job);
  }

  // Which jobs there are

  /** The choice of jobs; false when there is none to look at. */
  async fillJobs() {
    const jobs = await this.trainings();
    if (!jobs) return false;
    this.job.hidden = this.live.hidden = !jobs.length;
    if (!jobs.length) {
      const box = el(
        "div.compare-empty", {},
        el(
          "p", {},
          "No orchestrator has been trained yet. Its plans drift while it learns: start a job on the Train page, cpu-first-steps takes a few minutes.",
        ),
        el("a.page-button", { href: "/train?new=1" }, "Open Train"),
      );
      this.about.textContent = "";
      this.grid.replaceChildren(box);
      return false;
    }
    const key = JSON.stringify(jobs.map((job) => [job.id, job.label]));
    if (key !== this.listed) {
      const chosen = this.job.value;
      this.job.replaceChildren(...jobs.map((job) => el("option", { value: job.id }, nameJob(job))));
      this.job.value = jobs.some((job) => job.id === chosen) ? chosen : jobs[0].id;
      this.listed = key;
    }
    this.jobs = jobs;
    return true;
  }

  /** The jobs that train, evaluations alone have no steps; null when that cannot be told. */
  async trainings() {
    try {
      /** @type {{ jobs: import("../types").JobLine[] }} */
      const reply = await getDocument("/api/jobs");
      return reply.jobs.filter((job) => job.kind !== "evaluate");
    } catch {
      this.about.textContent = "The studio does not answer. Is it still running?";
      return null;
    }
  }

  /** A first job was started, or one that had ended goes on: follow it. */
  async hear() {
    const before = this.listed;
    if (this.stream || !(await this.fillJobs())) return;
    const line = this.jobs.find((job) => job.id === this.reply?.job);
    if (!before || (line && line.state !== this.reply.state)) this.show();
  }

  // Following a job

  /**
   * The job's own stream says when there is something new; what is new is asked for, at most every REDRAW_MS.
   * @param {string} job
   */
  follow(job) {
    this.unfollow();
    this.stream = followEvents(`/api/jobs/${encodeURIComponent(job)}/stream`, {
      rows: () => this.soon(job),
      end: () => {
        this.unfollow();
        this.load(job);
      },
    });
  }

  unfollow() {
    this.stream?.close();
    this.stream = null;
    clearTimeout(this.timer);
    this.timer = null;
  }

  /** @param {string} job */
  soon(job) {
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      if (this.isVisible()) this.load(job);
      else this.soon(job); // drawn once somebody looks again
    }, REDRAW_MS);
  }

  /**
   * What is known of a job, drawn; false when there is nothing to draw.
   * @param {string} job
   */
  async load(job) {
    const request = (this.request = Symbol());
    const reply = await ask("training", { job });
    if (request !== this.request) return false;
    this.reply = reply;
    this.live.textContent =
      reply.ok ? `${reply.state}${ACTIVE.includes(reply.state) && reply.steps.length ? ` · step ${reply.steps.at(-1)}` : ""}` : "";
    this.live.dataset.state = reply.ok ? reply.state : "";
    this.live.hidden = !reply.ok;
    if (reply.ok) this.draw(reply);
    else {
      this.about.textContent = "";
      this.plans.hidden = true;
      this.figures.clear();
      this.grid.replaceChildren(el("p.train-empty", {}, reply.hint));
    }
    return reply.ok;
  }

  /**
   * Figures that are there already stay where they are, with whatever is focused in them.
   * @param {import("../types").DriftDocument} reply
   */
  draw(reply) {
    const charts = this.charts(reply).filter((chart) => chart.series.some((line) => line.points.length));
    const lost = reply.traces.lost ? ` ${reply.traces.lost} of the episodes are no longer in this data folder.` : "";
    const words = charts.length
      ? `Lines are GRPO's own episodes, dots are evaluated checkpoints, diamonds where they were saved. Depth, parallelism and diversity are means over ${reply.traces.episodes} episodes of a step. Click a step to see its plans.${lost}`
      : "";
    if (this.about.textContent !== words) this.about.textContent = words; // a screen reader hears each change
    const steps = charts.flatMap((chart) => chart.series.flatMap((line) => line.points.map(([step]) => step)));
    const range = [Math.min(...steps), Math.max(...steps)];
    for (const chart of charts) {
      const present = this.figures.get(chart.id);
      const figure = this.figure(chart, reply, range);
      if (present) present.renew(figure);
      else this.figures.set(chart.id, figure);
    }
    const shown = charts.map((chart) => this.figures.get(chart.id).root);
    if (!shown.length) this.grid.replaceChildren(el("p.train-empty", {}, NOTHING[reply.state] || NOTHING.running));
    else if (shown.some((root, place) => this.grid.children[place] !== root)) this.grid.replaceChildren(...shown);
  }

  /**
   * @param {DriftChart} chart
   * @param {import("../types").DriftDocument} reply
   * @param {number[]} range
   */
  figure(chart, reply, range) {
    const colours = palette(chart.series.map((line) => line.name));
    const marks = reply.checkpoints.map((checkpoint) => ({ step: checkpoint.step }));
    return new Figure({
      name: chart.id, title: chart.title, about: chart.about,
      draw: (width) => lineChart(width, chart.series, colours, {
        written: chart.written, low: chart.low, high: chart.high, marks, range, onStep: (step) => this.openStep(step),
      }),
      data: () => ({
        columns: ["series", "step", "value", "low", "high"],
        rows: chart.series.flatMap((line) => line.points.map(([step, value, low, high]) => [line.name, step, value, low, high])),
      }),
    });
  }

  /**
   * @param {import("../types").DriftDocument} reply
   * @returns {DriftChart[]}
   */
  charts(reply) {
    /** @param {string} key */
    const byStep = (key) => pairs(reply.steps, reply.series[key]);
    /** @param {string} key */
    const traced = (key) => pairs(reply.traces.steps, reply.traces.series[key]);
    /** @type {(key: Measured) => number[][]} */
    const measured =
      (key) => reply.checkpoints.filter((checkpoint) => checkpoint[key] !== null).map((checkpoint) => [checkpoint.step, checkpoint[key]]);
    /** @type {(name: string, points: number[][]) => Series} */
    const dots = (name, points) => ({ name, points, dots: true });
    const used = Object.entries(reply.workers).sort((a, b) => mean(b[1]) - mean(a[1])).map(([name]) => name);
    this.workers = [...new Set([...this.workers, ...used])].slice(0, MOST_WORKERS); // a worker keeps its colour
    const workers = this.workers.filter((name) => reply.workers[name]);
    return [
      {
        id: "accuracy", title: "Accuracy", about: "Share of right answers", written: share, low: 0, high: 1,
        series: [
          { name: "training episodes", points: byStep("accuracy") }, { name: "validation", points: byStep("validation") },
          dots("evaluated", reply.checkpoints.map((checkpoint) => [checkpoint.step, ...checkpoint.mean])),
        ],
      },
      {
        id: "width", title: "Width", about: "Most steps at once", written: fixed1,
        series: [{ name: "training episodes", points: byStep("width") }, dots("evaluated", measured("width"))],
      },
      {
        id: "depth", title: "Depth", about: "Longest chain of steps", written: fixed1,
        series: [{ name: "training episodes", points: traced("depth") }, dots("evaluated", measured("depth"))],
      },
      {
        id: "parallelism", title: "Parallelism", about: "Steps for each layer", written: (value) => formatFixed(value),
        series: [{ name: "training episodes", points: traced("parallelism") }, dots("evaluated", measured("parallelism"))],
      },
      {
        id: "drift-turns", title: "Turns", about: "Of the orchestrator, per episode", written: fixed1,
        series: [{ name: "training episodes", points: byStep("turns") }, dots("evaluated", measured("turns"))],
      },
      {
        id: "drift-steps", title: "Steps", about: "Per episode", written: fixed1,
        series: [{ name: "training episodes", points: traced("steps") }, dots("evaluated", measured("steps"))],
      },
      {
        id: "diversity", title: "Tool diversity", about: "Different workers in an episode", written: fixed1,
        series: [{ name: "training episodes", points: traced("tools") }],
      },
      {
        id: "entropy", title: "Worker entropy", about: "In bits; 0 is one worker alone", written: (value) => formatFixed(value),
        series: [{ name: "training episodes", points: traced("entropy") }, dots("evaluated", measured("entropy"))],
      },
      {
        id: "shares", title: "Worker shares", about: "Of all steps", written: share, low: 0,
        series: workers.map((name) => ({ name, points: pairs(reply.steps, reply.workers[name]) })),
      },
    ];
  }

  /**
   * The groups of a step with their small graphs, as the Train page shows them; the nearest step that has some.
   * @param {number} step
   */
  async openStep(step) {
    put({ step });
    this.rollouts.clear(this.reply.job);
    const title = el("div.compare-figure-title", {}, el("h3", {}, "Example plans"), el("p", {}, "Every graph opens on the Run page."));
    const close = el("button.podium-link", { type: "button" }, "Close");
    close.addEventListener("click", () => {
      put({ step: null });
      this.plans.hidden = true;
    });
    this.plans.replaceChildren(el("header.compare-figure-head", {}, title, close), this.rollouts.root);
    this.plans.hidden = false;
    await this.rollouts.show(step);
    this.plans.scrollIntoView({ block: "nearest" });
  }
}

/**
 * @param {number[]} steps
 * @param {(number | null)[]} values
 */
function pairs(steps, values) {
  return (values || []).map((value, place) => [steps[place], value]).filter(([, value]) => value !== null);
}

/** @param {(number | null)[]} values */
function mean(values) {
  const numbers = values.filter((value) => value !== null);
  return numbers.reduce((sum, value) => sum + value, 0) / (numbers.length || 1);
}

/** @param {number} value */
function fixed1(value) {
  return formatFixed(value, 1);
}

/**
 * The name that a person gave a job, with its id.
 * @param {import("../types").JobLine} job
 */
function nameJob({ id, label }) {
  return label === id ? id : `${label} (${id})`;
}
