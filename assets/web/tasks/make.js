// Making tasks from calls that the workers of a pool answer: how many, whose words, who tries them, and which workers
// with possible effects may be called.

import { busy, button, select } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { needs } from "../lib/rights.js";
import { MakingView } from "./making.js";
import { QuestionFields } from "./questions.js";

const ABOUT = "Workers without effects are called, and plans are made of calls that work. What you added, edited or struck stays so.";

export class MakeTasks {
  /** @param {import("./panel.js").TasksPanel} panel */
  constructor(panel) {
    this.panel = panel;
    this.count = el("input", { type: "number", min: "1", max: "2000", value: "100" });
    this.agent = select([], "");
    this.tries = el("input", { type: "number", min: "0", max: "16", value: "0" });
    this.agentField = labelField("Words of the queries", this.agent);
    this.triesField = labelField("Tries of an agent", this.tries, "It must reach the answer in one of so many; 0: none is asked.");
    this.allowed = el("fieldset.pool-training-allowed");
    this.left = el("p.train-mute");
    this.questions = new QuestionFields(() => panel.page.ask({ action: "estimate_tasks", pool: panel.pool, ...this.read() }));
    this.count.addEventListener("input", () => this.questions.update());
    this.making = new MakingView((making) => (this.root.hidden = making.state === "running"), (making) => this.end(making));
    this.make = needs(button("Make tasks", () => busy(this.make, "Starting …", () => this.send()), "page-primary"), "train/make_tasks");
    const fields = el(
      "div.train-form-grid.form-fields-row", {}, labelField("Number of tasks", this.count).node, this.agentField.node, this.triesField.node,
    );
    this.root = el("div.train-tasks-form", {}, el("p.train-mute", {}, ABOUT), fields, this.allowed, this.left, this.questions.root, this.make);
  }

  /** @param {import("../types").TasksDocument} tasks */
  take(tasks) {
    const { agents, excluded } = tasks;
    this.questions.take(tasks);
    this.making.take(tasks.making);
    const agent = this.agent.value;
    const choices = [["", "From the workers' descriptions"], ...agents.map((name) => [name, `By ${name}`])];
    this.agent.replaceChildren(...choices.map(([value, label]) => el("option", { value }, label)));
    this.agent.value = agents.includes(agent) ? agent : "";
    this.agentField.node.hidden = this.triesField.node.hidden = !agents.length || tasks.agents_only;
    const chosen = this.readAllowed();
    const mayBe = excluded.filter((worker) => worker.may_be_allowed);
    this.allowed.hidden = !mayBe.length;
    this.allowed.replaceChildren(
      el("legend", {}, "Workers whose calls might have effects: call them too?"),
      ...mayBe.map(({ name }) => {
        const box = el("input", { type: "checkbox", value: name });
        box.checked = chosen.includes(name);
        return el("label", {}, box, name);
      }),
    );
    const others = excluded.filter(({ name, may_be_allowed: may }) => !may && !agents.includes(name)).map(({ name }) => name);
    this.left.textContent = others.length ? `In no task, because their answers are not exact: ${others.join(", ")}.` : "";
    this.left.hidden = !others.length;
  }

  readAllowed() {
    return [...this.allowed.querySelectorAll("input:checked")].map((box) => /** @type {HTMLInputElement} */ (box).value);
  }

  read() {
    const [many, tries] = [this.count, this.tries].map((input) => Number(input.value));
    return { count: many, agent: this.agent.value, tries, allowed: this.readAllowed(), ...this.questions.read() };
  }

  async send() {
    const reply = await this.panel.send({ action: "make_tasks", ...this.read() });
    if (reply.making) this.making.take(reply.making);
  }

  /** @param {import("../types").MakingDocument} making */
  async end(making) {
    this.questions.update();
    await this.panel.change({ action: "tasks", source: this.panel.tasks.source });
    if (making.state !== "done" || making.count) return;
    this.panel.page.toast.say(making.outcome);
    this.panel.open("");
  }
}
