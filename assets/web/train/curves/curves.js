// Live curves: small charts over the steps of a job, drawn by uPlot. Checkpoints are marks on the curve, the
// crosshair is shared, and a click on a step asks for its episodes.

import { putBeside } from "./beside.js";
import { Chart } from "./chart.js";
import { Columns } from "./columns.js";
import { CurveControls } from "./controls.js";
import { CHARTS, GROUPS, keysOf } from "./specs.js";
import { el } from "../../lib/dom.js";

/** @typedef {import("../../types").JobView} JobView */
/** @typedef {{ border: number, name: string, sign: string }} Border */

const DRAWER = "/podium/web/vendor/uplot/uPlot.iife.min.js";
const ALL = "all"; // instead of a stage's name

/** @type {Promise<UPlotClass> | null} */
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
  /** @param {(step: number) => void} onStep */
  constructor(onStep) {
    this.onStep = onStep;
    /** @type {Map<string, Chart>} */
    this.charts = new Map();
    /** @type {Map<string, HTMLElement>} */
    this.groups = new Map();
    this.columns = new Columns();
    /** @type {import("../../types").JobCheckpoint[]} */
    this.marks = [];
    /** @type {string | null} */
    this.stage = null;
    /** @type {JobView | null} */
    this.job = null;
    this.phasesKey = this.marksKey = this.drawnBar = "";
    this.root = el("div.train-curves");
    this.bar = el("div.train-curves-bar");
    this.grid = el("div.train-curves-groups");
    this.empty = el("p.train-empty", {}, "The curves begin with the first step.");
    this.controls = new CurveControls(this);
    this.root.append(this.controls.root, this.bar, this.empty, this.grid);
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
    this.controls.clear();
  }

  /** Draw again what is drawn otherwise now. */
  redraw() {
    for (const chart of this.charts.values()) chart.shape = "";
    this.draw();
  }

  /**
   * Where the job is and what it has kept: marks, and the borders between stages.
   * @param {JobView} job
   */
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
    if (`${this.stage} ${this.phasesKey}` !== before) this.draw(); // only now is it known where stages and phases begin
  }

  /** @param {import("../../types").CurveColumns} document */
  whole(document) {
    this.columns = new Columns(document);
    this.draw();
  }

  /** @param {import("./columns.js").MetricRow[]} rows */
  add(rows) {
    this.columns.take(rows);
    this.draw();
  }

  drawBar() {
    const begun = this.begunStages();
    this.stage = begun.length > 1 ? this.stage || begun.at(-1).name : null;
    const rollouts = begun.some((stage) => stage.rollouts);
    const key = `${this.stage} ${begun.map(({ name }) => name)} ${this.marks.length > 0} ${this.phasesKey}`;
    if (key === this.drawnBar) return;
    this.drawnBar = key;
    this.bar.replaceChildren();
    if (this.stage) {
      const chips = el("div.page-chips", { role: "group", "aria-label": "Stage" });
      for (const { name, label } of [...begun.toReversed(), { name: ALL, label: "All steps" }]) {
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
    if (this.marks.length || rollouts) {
      const key = el(
        "span.train-curves-key", {}, el("i.train-curves-mark"), "checkpoint", el("i.train-curves-mark.train-curves-best"),
        "best on validation",
      );
      if (rollouts) key.append(el("span", {}, "· click a step to see its episodes"));
      this.bar.append(key);
    }
    const phases = this.shownPhases();
    if (phases.length) {
      const names = phases.map(({ name, sign }) => el("span.train-curves-phase", {}, el("b", {}, sign), name));
      this.bar.append(el("span.train-curves-key", {}, "Phases begin:", ...names));
    }
  }

  /** The stages of which there are steps. */
  begunStages() {
    const last = Math.max(0, ...this.columns.steps);
    return (this.job?.trained || []).filter(({ before }) => last > before);
  }

  /** The first and the last step that are shown. */
  range() {
    const stage = this.job?.trained.find(({ name }) => name === this.stage);
    const ends = stage && stage !== this.job.trained.at(-1); // the last one may go on beyond what was planned
    return stage ? [stage.before + 1, ends ? stage.before + stage.steps : Infinity] : [1, Infinity];
  }

  /** The phases that begin among the shown steps, with their signs on the curves. */
  shownPhases() {
    const [first, last] = this.range();
    const phases = (this.job?.phases || []).map((phase, place) => ({ ...phase, sign: String(place + 1) }));
    return this.begunStages().length ? phases.filter(({ border }) => border >= first && border < last) : [];
  }

  /**
   * Where the shown steps change their kind: the last step before, what begins, and its sign on the curves.
   * @returns {Border[]}
   */
  borders() {
    const later = this.stage === ALL ? this.begunStages().slice(1) : [];
    return [...later.map(({ before, label }) => ({ border: before, name: label, sign: label })), ...this.shownPhases()];
  }

  /** The places of the shown steps, in order. */
  visibleSteps() {
    const [first, last] = this.range();
    const places = this.columns.steps.map((step, place) => [step, place]);
    return places.filter(([step]) => step >= first && step <= last).sort((a, b) => a[0] - b[0]);
  }

  /**
   * The charts that the job's methods bring, then those of every training.
   * @returns {import("./specs.js").ChartSpec[]}
   */
  specs() {
    const own = (this.job?.trained || []).flatMap(({ charts }) => charts);
    return [...own.map((chart) => ({ ...chart, keys: chart.lines, group: "outcome" })), ...CHARTS];
  }

  async draw() {
    const uPlot = await loadUplot().catch((error) => this.say(error.message));
    if (!uPlot) return;
    this.drawBar();
    const places = this.visibleSteps();
    this.empty.hidden = places.length > 0;
    this.controls.root.hidden = !places.length;
    const steps = places.map(([step]) => step);
    const { other } = this.controls;
    let before = null;
    for (const chart of this.specs()) {
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
      const both = other ? putBeside(steps, lines, other.columns, other.label, this.range()) : { steps, lines };
      view.draw(both.steps, both.lines);
      before = view;
    }
    for (const box of this.groups.values()) box.hidden = !box.lastElementChild.children.length;
  }

  /**
   * The section of a group, in the order of the groups; made once.
   * @param {string} name
   */
  group(name) {
    if (!this.groups.has(name)) {
      const section = el("section.train-curves-group", { "data-group": name }, el("h3", {}, GROUPS[name]), el("div.train-curves-grid"));
      this.groups.set(name, section);
      this.grid.replaceChildren(...Object.keys(GROUPS).map((key) => this.groups.get(key)).filter(Boolean));
    }
    return this.groups.get(name);
  }

  /**
   * @param {string} text
   * @returns {null}
   */
  say(text) {
    this.empty.textContent = text;
    this.empty.hidden = false;
    return null;
  }
}
