// One task that a person writes or edits: query, answer, how it is graded (shown by example, and tried), and its plan.

/** @typedef {import("../types").TaskRow} TaskRow */
/** @typedef {import("../lib/reply.js").Problem} Problem */
/** @typedef {import("./panel.js").Command} Command */
/**
 * Where a form stands: it asks the studio, keeps a task, and closes.
 * @typedef {{ page: { ask: (request: Command) => Promise<any> }, pool: string, open: (name: "") => unknown,
 *   change: (request: Command) => Promise<any> }} TaskPlace
 */

import { busy, button, select } from "../lib/controls.js";
import { el, icon, readable } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { ACTIONS } from "../lib/icons.js";
import { needs } from "../lib/rights.js";

const VERIFIERS = [
  ["", "As the answer is: a number as one, else as text"], ["number", "number: the last number counts"], ["exact", "exact: the text alone"],
  ["one_of", "one_of: any of these lines"], ["set", "set: all of these lines, in any order"],
  ["states_all", "states_all: a sentence with all of these lines"], ["regex", "regex: a pattern"], ["judge", "judge: a worker compares"],
  ["python", "python: a function of yours"], ["refusal", "refusal: no worker can do this"],
];
const SPLITS = [["", "By chance, the same every time"], ["train", "To learn (train)"], ["validation", "To watch (validation)"], ["test", "To measure (test)"]];
const TRY_MS = 400;
const PLAN = 'Optional: a teacher without a key. {"steps": [{"worker": "…", "arguments": {…}, "access": []}], "answer": "$1"}';

export class TaskForm {
  /**
   * @param {TaskPlace} panel
   * @param {{title: string, about: string, split: string}} fresh what a new task is called, and is for
   */
  constructor(panel, fresh = { title: "Write a task", about: "", split: "" }) {
    this.panel = panel;
    this.fresh = fresh;
    this.inputs = {
      query: el("textarea", { rows: "2" }),
      answer: el("textarea", { rows: "1" }),
      verifier: select(VERIFIERS, ""),
      tolerance: el("input", { type: "text", inputmode: "decimal", placeholder: "0.000001" }),
      judge: el("input", { type: "text" }),
      code: el("textarea.form-code", { rows: "4", spellcheck: "false", placeholder: "def check(answer, query):\n    return …" }),
      split: select(SPLITS, ""),
      plan: el("textarea.form-code", { rows: "3", spellcheck: "false" }),
    };
    /** @type {Record<string, import("../lib/form.js").LabelledField>} */
    this.fields = {
      query: labelField("Query", this.inputs.query),
      answer: labelField("Answer", this.inputs.answer, "One item a line where it is a list."),
      verifier: labelField("How it is graded", this.inputs.verifier),
      tolerance: labelField("Tolerance", this.inputs.tolerance, "How far the number may be off."),
      judge: labelField("Worker that judges", this.inputs.judge),
      code: labelField("Function", this.inputs.code, "Runs in the sandbox."),
      split: labelField("What it is for", this.inputs.split),
      plan: labelField("Reference plan", this.inputs.plan, PLAN),
    };
    this.title = el("h3");
    this.about = el("p.train-mute");
    this.general = el("p.form-general", { role: "alert" });
    this.examples = el("div.train-tasks-examples", { "aria-live": "polite" });
    this.given = el("input", { type: "text", placeholder: "an answer" });
    this.tried = el("span", { role: "status" });
    this.save = needs(button("Save", () => busy(this.save, "Saving …", () => this.send()), "page-primary"), "train/save_task");
    this.run = needs(button("Run the plan", () => busy(this.run, "Calling the workers …", () => this.runPlan())), "train/run_plan");
    this.ran = el("p.train-mute", { role: "status" });
    this.root = el("div.train-tasks-form", {}, this.title, this.about, ...Object.values(this.fields).map((field) => field.node));
    const tryField = labelField("Try an answer", this.given);
    this.root.insertBefore(el("div.train-tasks-try", {}, this.examples, tryField.node, this.tried), this.fields.split.node);
    const foot = el("div.train-tasks-foot", {}, this.save, this.run, button("Cancel", () => panel.open("")));
    this.root.append(this.ran, this.general, foot);
    this.root.addEventListener("input", () => this.wait());
  }

  /**
   * Fill the form with a task, or empty it for a new one.
   * @param {TaskRow | null} row
   */
  set(row) {
    const { inputs } = this;
    const fields = /** @type {Record<string, any>} */ (row?.fields || {});
    const rule = fields.verifier || {};
    this.query = row?.query || "";
    this.basedOn = row?.based_on || "";
    this.title.textContent = row ? "Edit this task" : this.fresh.title;
    this.about.textContent = row ? "" : this.fresh.about;
    this.about.hidden = !this.about.textContent;
    inputs.query.value = fields.query || "";
    inputs.answer.value = Array.isArray(fields.answer) ? fields.answer.map(readable).join("\n") : readable(fields.answer ?? "");
    inputs.verifier.value = rule.kind || "";
    inputs.tolerance.value = rule.tolerance === undefined ? "" : String(rule.tolerance);
    inputs.judge.value = rule.worker || "";
    inputs.code.value = rule.code || "";
    inputs.split.value = row ? fields.split || "" : this.fresh.split;
    inputs.plan.value = fields.plan ? JSON.stringify(fields.plan, null, 1) : "";
    this.ran.textContent = "";
    this.given.value = this.tried.textContent = "";
    this.show([]);
    this.adapt();
    this.wait();
  }

  read() {
    return Object.fromEntries(Object.entries(this.inputs).map(([name, input]) => [name, input.value]));
  }

  adapt() {
    const kind = this.inputs.verifier.value;
    for (const [name, of] of [["tolerance", "number"], ["judge", "judge"], ["code", "python"]]) this.fields[name].node.hidden = kind !== of;
    this.fields.answer.node.hidden = kind === "refusal";
    this.inputs.answer.rows = ["set", "one_of", "states_all"].includes(kind) ? 4 : 1;
    this.run.hidden = !this.inputs.plan.value.trim();
  }

  wait() {
    this.adapt();
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.tell(), TRY_MS);
  }

  /** Show how answers would be graded, once there is a query and an answer. */
  async tell() {
    const task = this.read();
    this.tried.textContent = "";
    if (!task.query.trim() || !(task.answer.trim() || task.code.trim() || task.verifier === "refusal")) {
      this.examples.replaceChildren();
      return;
    }
    const key = (this.key = JSON.stringify([task, this.given.value]));
    const reply = await this.ask({ action: "try_task", task, answer: this.given.value });
    if (key !== this.key) return;
    this.show(reply.ok ? [] : reply.problems);
    this.examples.replaceChildren();
    if (!reply.ok) return;
    /** @type {import("../types").VerifierDocument} */
    const { kind, about, answers, correct, reason } = reply.verifier;
    this.examples.append(el("p.train-mute", {}, `${kind}: ${about}`), answerList(answers));
    if (correct !== null) this.tried.replaceChildren(verdict(correct), reason ? ` ${reason}` : "");
  }

  /** @param {Command} request */
  ask(request) {
    return this.panel.page.ask({ pool: this.panel.pool, ...request });
  }

  /**
   * Problems at their fields, and the others at the end.
   * @param {Problem[]} problems
   */
  show(problems) {
    for (const field of Object.values(this.fields)) field.say("");
    const left = problems.filter(([where, what]) => {
      const field = this.fields[where.split(".")[0]];
      field?.say(what);
      return !field;
    });
    this.general.textContent = left.map(([, what]) => what).join("; ");
  }

  /** A check that waits or is under way must not wipe out what a command has said. */
  stopTelling() {
    clearTimeout(this.waiting);
    this.key = "";
  }

  async runPlan() {
    this.stopTelling();
    const reply = await this.ask({ action: "run_plan", task: this.read() });
    this.show(reply.ok ? [] : reply.problems);
    if (!reply.ok) return;
    /** @type {import("../types").PlanOutcome} */
    const { answer, failure, correct } = reply.plan;
    this.ran.replaceChildren(verdict(correct), answer ? ` It answers ${answer}.` : " It gives no answer.", failure ? ` ${failure}` : "");
  }

  async send() {
    this.stopTelling();
    const reply = await this.panel.change({ action: "save_task", query: this.query, based_on: this.basedOn, task: this.read() });
    if (reply.based_on) this.basedOn = reply.based_on; // both were shown: the next Save replaces the other edit
    this.show(reply.ok ? [] : reply.problems);
    if (reply.ok) this.panel.open("");
  }
}

/**
 * Answers, each with whether it is right.
 * @param {import("../types").VerifierDocument["answers"]} answers
 */
export function answerList(answers) {
  return el("ul.train-tasks-answers", {}, ...answers.map(([answer, right]) => el("li", {}, verdict(right), el("code", {}, answer))));
}

/** @param {boolean} right */
function verdict(right) {
  const node = el("span.train-tasks-verdict", { "data-right": String(right) }, icon(right ? ACTIONS.check : ACTIONS.cross));
  node.append(right ? "right" : "wrong");
  return node;
}
