// One job on the Train page: state, progress, advice in order, and below it curves, rollouts, checkpoints, log and
// recipe. Fed by the job's event stream, which goes on by itself after a lost connection or a restart.

import { followEvents, getDocument } from "../lib/api.js";
import { Curves } from "./curves/curves.js";
import { copyButton, el, icon, recall, remember } from "../lib/dom.js";
import { ACTIONS } from "../lib/icons.js";
import { checkpointParts } from "./checkpoints.js";
import { JobHead } from "./job_head.js";
import { Rollouts } from "./rollouts.js";
import { Tabs } from "../lib/tabs.js";

/** @typedef {import("../lib/api.js").Command} Command */
/** @typedef {import("../types").JobDocument} JobDocument */
/** @typedef {{ kind: string, name: string, label: string, renames?: boolean }} Thing */

const LEVELS = { alive: ["Alive", ACTIONS.pulse], degenerate: ["Learning", ACTIONS.warn], tuning: ["Tuning", ACTIONS.tune] };
const LOG_CHARS = 60_000;

export class JobView {
  /**
   * `act(request)` sends a command; `edit(job)` opens the recipe of a job for another one; `manage(thing)` renames or
   * deletes a job or a checkpoint.
   * @param {(request: Command) => Promise<any>} act
   * @param {(job: string) => void} edit
   * @param {(thing: Thing) => unknown} manage
   */
  constructor(act, edit, manage) {
    this.act = act;
    this.edit = edit;
    this.manage = manage;
    /** @type {string | null} */
    this.job = null;
    /** @type {import("../types").JobView | null} */
    this.state = null;
    /** @type {string | null} */
    this.drawnAdvice = null;
    /** @type {string | null} */
    this.drawnCheckpoints = null;
    this.root = el("div.train-job-view");
    this.notice = el("div.run-view-notice", { role: "status" });
    this.head = new JobHead(this);
    this.advice = el("ol.train-job-advice", { "aria-label": "Advice, most pressing first" });
    this.curves = new Curves((step) => this.openRollouts(step));
    this.rollouts = new Rollouts();
    this.checkpoints = el("div.train-job-checkpoints");
    this.log = el("pre.train-job-log", { tabindex: "0", "aria-label": "Log" });
    this.recipe = el("div.train-job-recipe");
    const panels = [
      ["curves", "Curves", this.curves.root], ["rollouts", "Rollouts", this.rollouts.root],
      ["checkpoints", "Checkpoints", this.checkpoints], ["log", "Log", this.log], ["recipe", "Recipe", this.recipe],
    ];
    this.tabs = new Tabs("train-job", "Job", panels, (name) => this.select(name));
    this.root.append(this.notice, this.head.root, this.advice, this.tabs.row, ...this.tabs.panels);
  }

  // Which job, which tab

  /** @param {string} job */
  show(job) {
    if (job === this.job) return;
    this.close();
    this.job = job;
    this.state = null;
    this.head.clear("Reading the job …");
    this.advice.replaceChildren();
    this.log.textContent = "";
    this.recipe.replaceChildren();
    this.drawnAdvice = this.drawnCheckpoints = null;
    this.curves.clear();
    this.rollouts.clear(job);
    const step = Number(recall("step")) || null;
    if (step) this.rollouts.step = step;
    this.select(this.tabs.has(recall("tab")) ? recall("tab") : "curves");
    this.follow();
  }

  follow() {
    this.stream?.close();
    /** @type {Record<string, (document: any) => void>} */
    const handlers = {
      curves: (columns) => this.curves.whole(columns),
      rows: (rows) => this.add(rows),
      job: (state) => this.take(state),
      log: (text) => this.addLog(text),
      end: () => this.close(),
    };
    this.stream = followEvents(`/api/jobs/${encodeURIComponent(this.job)}/stream`, handlers, (state) => {
      if (state === "open") this.say("");
      else if (state === "gone") this.say(`There is no job ${this.job} in this data folder.`);
      else this.say("Connection lost. The job goes on without the page; reconnecting …");
    });
  }

  close() {
    this.stream?.close();
    this.stream = null;
  }

  /**
   * The list may say that the job goes on although its stream has ended (it was resumed elsewhere).
   * @param {import("../types").JobLine[]} jobs
   */
  hear(jobs) {
    this.curves.controls.offer(jobs, this.job);
    const line = jobs.find(({ id }) => id === this.job);
    if (line && this.state && !this.stream && line.state !== this.state.state) this.follow();
  }

  /** @param {string} text */
  say(text) {
    this.notice.textContent = text;
    this.notice.hidden = !text;
    if (text && !this.state) this.head.clear();
  }

  /** @param {import("./curves/columns.js").MetricRow[]} rows */
  add(rows) {
    this.curves.add(rows);
    if (this.curves.columns.tooMany) this.follow();
  }

  /** @param {import("../types").JobView} state */
  take(state) {
    this.state = state;
    this.curves.about(state);
    this.head.draw(state);
    this.drawAdvice();
    this.drawCheckpoints();
    if (this.tabs.shown === "rollouts") this.rollouts.refresh(state.rollouts);
    if (this.tabs.shown === "recipe" && !this.recipe.childElementCount) this.loadRecipe();
  }

  /** @param {string} name */
  select(name) {
    remember("tab", name === "curves" ? null : name);
    this.tabs.show(name);
    if (name === "rollouts") this.rollouts.show(this.rollouts.step);
    if (name === "recipe") this.loadRecipe();
    if (name === "log") this.log.scrollTop = this.log.scrollHeight;
  }

  /** @param {number} step */
  openRollouts(step) {
    const stage = this.state?.trained.findLast(({ before }) => step > before);
    if (!this.state?.rollouts || (stage && !stage.rollouts)) return;
    this.rollouts.step = step;
    this.select("rollouts");
    this.tabs.row.scrollIntoView({ block: "nearest" });
  }

  /** @param {Command} request */
  async command(request) {
    const reply = await this.act(request);
    if (reply.ok) this.follow();
  }

  drawAdvice() {
    const key = JSON.stringify(this.state.advice);
    if (key === this.drawnAdvice) return;
    this.drawnAdvice = key;
    this.advice.replaceChildren(...this.state.advice.map((advice) => {
      const [word, path] = LEVELS[advice.level];
      const calm = !advice.alarming && advice.level === "alive" ? "calm" : advice.alarming ? "alarm" : advice.level;
      const text = el("div", {}, el("p.train-job-says", {}, el("b", {}, word), el("span", {}, advice.sentence)));
      if (advice.action) text.append(el("p.train-job-do", {}, advice.action));
      return el("li", { "data-level": advice.level, "data-kind": calm }, icon(path), text);
    }));
    this.advice.hidden = !this.state.advice.length;
  }

  // Panels

  drawCheckpoints() {
    const { state } = this;
    const key = JSON.stringify([state.checkpoints, state.evaluations]);
    if (key === this.drawnCheckpoints) return;
    this.drawnCheckpoints = key;
    this.checkpoints.replaceChildren(...checkpointParts(state, this.manage));
  }

  /** @param {import("../types").LogText} document */
  addLog({ text, whole, cut }) {
    const stays = this.log.scrollTop + this.log.clientHeight >= this.log.scrollHeight - 30;
    const before = whole ? (cut ? "… (the beginning is in the job's log.txt)\n" : "") : this.log.textContent;
    this.log.textContent = (before + text).slice(-LOG_CHARS);
    if (stays || whole) this.log.scrollTop = this.log.scrollHeight;
  }

  async loadRecipe() {
    const job = this.job;
    try {
      /** @type {JobDocument} */
      const reply = await getDocument(`/api/jobs/${encodeURIComponent(job)}`);
      if (job !== this.job) return;
      const bar = el("div.train-recipe-bar", {}, copyButton(reply.recipe, "Copy YAML"), el("span.train-mute", {}, "as it was submitted"));
      this.recipe.replaceChildren(
        bar, el("pre.train-job-yaml", { tabindex: "0", "aria-label": "Recipe as YAML" }, reply.recipe || "The recipe's file is gone."),
      );
    } catch {
      this.recipe.replaceChildren(el("p.train-empty", {}, "The studio does not answer."));
    }
  }
}
