// Questions for the agents of a pool: who writes them, who answers, who judges, the cap, and what all that will take.

import { select } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { labelField } from "../lib/form.js";

const ABOUT = "An agent writes questions, others answer them alone, and those on which they agree are kept.";
const PAUSE_MS = 300;

/** @typedef {{ author: string, answerers: string[], judge: string, max_cost: number | string | null }} PanelFields */

export class QuestionFields {
  /** @param {() => Promise<any>} estimate asks the server what the fields, as they are now, will take */
  constructor(estimate) {
    this.estimate = estimate;
    this.agents = /** @type {string[]} */ ([]);
    this.judges = /** @type {string[]} */ ([]);
    this.author = select([], "", () => this.drawOthers());
    this.judge = select([], "", () => this.drawOthers());
    this.answerers = el("fieldset.pool-training-allowed");
    this.answerers.addEventListener("change", () => this.update());
    this.cap = el("input", { type: "number", min: "0", step: "any", placeholder: "no cap" });
    this.cap.addEventListener("input", () => this.update());
    this.authorField = labelField("Questions for agents", this.author, ABOUT);
    this.judgeField = labelField("Judge", this.judge, "Says whether answers in other words are the same. It has no vote.");
    this.capField = labelField("Most US dollars", this.cap, "No call is made that might pass it. What is kept so far stays.");
    this.takes = el("p.train-questions-takes", { role: "status" });
    this.others = el("div.train-questions-others", {}, this.answerers, this.judgeField.node, this.capField.node, this.takes);
    this.root = el("div.train-questions", {}, this.authorField.node, this.others);
  }

  /** @param {import("../types").TasksDocument} tasks */
  take({ agents, agents_only: only, judges }) {
    this.root.hidden = !agents.length;
    if (JSON.stringify([agents, judges]) === JSON.stringify([this.agents, this.judges])) return;
    const author = this.author.value;
    [this.agents, this.judges] = [agents, judges];
    const none = only ? [] : [["", "None: the agents are in no task"]];
    this.author.replaceChildren(...optionsOf([...none, ...agents.map((name) => [name, `Written by ${name}`])]));
    this.author.value = agents.includes(author) ? author : only ? agents[0] || "" : "";
    this.drawOthers();
  }

  /** The choices that depend on who writes and who judges. */
  drawOthers() {
    const author = this.author.value;
    const judge = this.judge.value === author ? "" : this.judge.value;
    const left = this.listUnchecked();
    this.others.hidden = !author;
    this.judge.replaceChildren(...optionsOf([["", "Nobody"], ...this.judges.filter((name) => name !== author).map((name) => [name, name])]));
    this.judge.value = judge;
    this.answerers.replaceChildren(
      el("legend", {}, "Who answers"),
      ...this.agents.filter((name) => name !== author && name !== judge).map((name) => {
        const box = el("input", { type: "checkbox", value: name });
        box.checked = !left.includes(name);
        return el("label", {}, box, name);
      }),
    );
    this.update();
  }

  /** @returns {HTMLInputElement[]} */
  listBoxes() {
    return [...this.answerers.querySelectorAll("input")];
  }

  listUnchecked() {
    return this.listBoxes().filter((box) => !box.checked).map((box) => box.value);
  }

  /** Ask again what it will take, once the typing pauses. */
  update() {
    clearTimeout(this.waiting);
    if (!this.author.value || this.root.hidden) return;
    this.waiting = setTimeout(async () => {
      const mine = (this.latest = Symbol());
      const reply = await this.estimate();
      if (mine !== this.latest) return;
      this.takes.classList.toggle("train-questions-wrong", !reply.ok);
      this.takes.textContent = reply.ok ? reply.estimate : reply.problems.map((/** @type {string[]} */ problem) => problem[1]).join("; ");
    }, PAUSE_MS);
  }

  /** @returns {PanelFields} */
  read() {
    const author = this.root.hidden ? "" : this.author.value;
    const answerers = author ? this.listBoxes().filter((box) => box.checked).map((box) => box.value) : [];
    const typed = this.cap.value.trim() || (this.cap.validity.badInput ? "?" : "");
    const cap = typed === "" ? null : Number.isFinite(Number(typed)) ? Number(typed) : typed;
    return { author, answerers, judge: author ? this.judge.value : "", max_cost: author ? cap : null };
  }
}

/** @param {string[][]} choices */
function optionsOf(choices) {
  return choices.map(([value, label]) => el("option", { value }, label));
}
