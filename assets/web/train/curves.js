// Live curves: small charts over the steps of a job, drawn by uPlot. Checkpoints are marks on the curve, the
// crosshair is shared, and a click on a step asks for its episodes.

import { Chart } from "./curve_chart.js";
import { Columns } from "./curve_columns.js";
import { CHARTS, GROUPS, keysOf } from "./curve_specs.js";
import { el } from "../lib/dom.js";

const DRAWER = "/podium/web/vendor/uplot/uPlot.iife.min.js";
const STAGES = [["grpo", "GRPO"], ["sft", "SFT"], ["all", "All steps"]];

let drawer = null;

/** uPlot, loaded once. */
function loadUplot() {
  drawer ||= new Promise((done, failed) => {
    const script = el("script", { src: DRAWER });
    script.addEventListener("load", () => done(window.uPlot));
    script.addEventListener("error", () => failed(new Error("the curves could not be loaded")));
    document.head.append(script);
  });
  return drawer;
}

export class Curves {
  constructor(onStep) {
    this.onStep = onStep;
    this.charts = new Map();
    this.groups = new Map();
    this.columns = new Columns();
    this.marks = [];
    this.stage = null;
    this.job = null;
    this.phasesKey = "";
    this.root = el("div.train-curves");
    this.bar = el("div.train-curves-bar");
    this.grid = el("div.train-curves-groups");
    this.empty = el("p.train-empty", {}, "The curves begin with the first step.");
    this.root.append(this.bar, this.empty, this.grid);
    new MutationObserver(() => this.charts.forEach((chart) => chart.recolour())).observe(document.body, {
      attributes: true, attributeFilter: ["class"],
    });
    new ResizeObserver(() => this.charts.forEach((chart) => chart.resize())).observe(this.grid);
  }

  clear() {
    for (const chart of this.charts.values()) chart.destroy();
    this.charts.clear();
    this.groups.clear();
    this.grid.replaceChildren();
    this.columns = new Columns();
    this.stage = null;
  }

  /** Where the job is and what it has kept: marks, and the border between SFT and GRPO. */
  about(job) {
    this.job = job;
    const marks = JSON.stringify(job.checkpoints.map((checkpoint) => [checkpoint.step, checkpoint.best]));
    if (marks !== this.marksKey) {
      this.marksKey = marks;
      this.marks = job.checkpoints;
      this.charts.forEach((chart) => chart.redraw());
    }
    const before = `${this.stage} ${this.phasesKey}`;
    this.phasesKey = job.phases.map(({ border, name }) => `${name}@${border}`).join();
    this.drawBar();
    if (`${this.stage} ${this.phasesKey}` !== before) this.draw(); // only now is it known where GRPO and phases begin
  }

  whole(document) {
    this.columns = new Columns(document);
    this.draw();
  }

  add(rows) {
    this.columns.take(rows);
    this.draw();
  }

  drawBar() {
    const border = this.job?.sft_steps;
    const has =
      { sft: this.columns.steps.some((step) => step <= border && step > 0), grpo: this.columns.steps.some((step) => step > border) };
    const both = border > 0 && has.sft && has.grpo;
    this.stage = both ? this.stage || "grpo" : null;
    const key = `${this.stage} ${has.grpo} ${this.marks.length > 0} ${this.phasesKey}`;
    if (key === this.drawnBar) return;
    this.drawnBar = key;
    this.bar.replaceChildren();
    if (both) {
      const chips = el("div.page-chips", { role: "group", "aria-label": "Stage" });
      for (const [name, label] of STAGES) {
        const chip = el("button.page-chip", { type: "button", "aria-pressed": String(this.stage === name) }, label);
        chip.addEventListener("click", () => {
          this.stage = name;
          this.drawBar();
          this.draw();
        });
        chips.append(chip);
      }
      this.bar.append(chips);
    }
    if (this.marks.length || has.grpo) {
      const key = el(
        "span.train-curves-key", {}, el("i.train-curves-mark"), "checkpoint", el("i.train-curves-mark.train-curves-best"),
        "best on validation",
      );
      if (has.grpo) key.append(el("span", {}, "· click a step to see its episodes"));
      this.bar.append(key);
    }
    if (has.grpo && this.stage !== "sft" && this.job?.phases.length) {
      const names = this.job.phases.map(({ name }, place) => el("span.train-curves-phase", {}, el("b", {}, String(place + 1)), name));
      this.bar.append(el("span.train-curves-key", {}, "Phases begin:", ...names));
    }
  }

  /** Where the shown steps change their kind: the last step before, what begins, and its sign on the curves. */
  borders() {
    const sft = this.job?.sft_steps || 0;
    const phases = this.stage === "sft" ? [] : (this.job?.phases || []).map((phase, place) => ({ ...phase, sign: String(place + 1) }));
    return sft && this.stage === "all" ? [{ border: sft, name: "GRPO", sign: "GRPO" }, ...phases] : phases;
  }

  /** The places of the shown steps, in order. */
  visibleSteps() {
    const border = this.job?.sft_steps || 0;
    const keep = (step) => step > 0 && (this.stage === "sft" ? step <= border : this.stage === "grpo" ? step > border : true);
    return this.columns.steps.map((step, place) => [step, place]).filter(([step]) => keep(step)).sort((a, b) => a[0] - b[0]);
  }

  async draw() {
    const uPlot = await loadUplot().catch((error) => this.say(error.message));
    if (!uPlot) return;
    this.drawBar();
    const places = this.visibleSteps();
    this.empty.hidden = places.length > 0;
    const steps = places.map(([step]) => step);
    let before = null;
    for (const chart of CHARTS) {
      const lines = keysOf(chart, this.columns.series)
        .map(([key, label]) => ({ key, label, values: places.map(([, place]) => this.columns.series[key][place]) }))
        .filter((line) => line.values.some((value) => value !== null));
      let view = this.charts.get(chart.id);
      if (!lines.length || !steps.length) {
        view?.destroy();
        this.charts.delete(chart.id);
        continue;
      }
      if (!view) {
        view = new Chart(uPlot, chart, this);
        this.charts.set(chart.id, view);
        const box = this.group(chart.group).lastElementChild;
        if (before && before.spec.group === chart.group) before.root.after(view.root);
        else box.prepend(view.root);
      }
      view.draw(steps, lines);
      before = view;
    }
    for (const box of this.groups.values()) box.hidden = !box.lastElementChild.children.length;
  }

  /** The section of a group, in the order of the groups; made once. */
  group(name) {
    if (!this.groups.has(name)) {
      const section = el("section.train-curves-group", { "data-group": name }, el("h3", {}, GROUPS[name]), el("div.train-curves-grid"));
      this.groups.set(name, section);
      this.grid.replaceChildren(...Object.keys(GROUPS).map((key) => this.groups.get(key)).filter(Boolean));
    }
    return this.groups.get(name);
  }

  say(text) {
    this.empty.textContent = text;
    this.empty.hidden = false;
    return null;
  }
}
