// "Train on this pool": practice tasks for the pool, which a person reads and strikes, and the job that learns them.

/** @typedef {import("../types").TasksDocument} TasksDocument */
/** @typedef {import("../types").TaskRow} TaskRow */
/** @typedef {import("../types").WorkerExclusion} WorkerExclusion */
/** @typedef {import("./page.js").PoolPage} PoolPage */

import { plain } from "../lib/reply.js";
import { busy, button, select } from "../lib/controls.js";
import { count, dollars, el, icon } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { ACTIONS } from "../lib/icons.js";
import { needs } from "../lib/rights.js";
import { MakingView } from "../tasks/making.js";
import { QuestionFields } from "../tasks/questions.js";

const LEAD = "Practice tasks are made of calls that the workers of this pool really answer, and of questions on which its agents agree. A small model learns them, and is then measured, beside the untrained one, on tasks that share no call with them.";
const OUTCOMES_LEAD = "Every agent answers the questions to learn from alone: that trains the choice of who is asked. Then a small model learns to plan from what its own plans lead to. Both are measured, beside every agent alone, on questions that nothing has learnt.";
const NO_TEACHER = "None";
const TEACHER_ABOUT = "None is the recipe as it was measured. Otherwise the agent writes a plan for every question to learn from, and those whose runs solve it are imitated before the model learns from its own.";
const COUNT = 100;

/** @param {PoolPage} page */
export async function openTraining(page) {
  const reply = await page.act({ action: "practice" });
  if (reply.ok) new Training(page, reply.practice).open();
}

class Training {
  /**
   * @param {PoolPage} page
   * @param {TasksDocument} practice
   */
  constructor(page, practice) {
    this.page = page;
    this.count = el("input", { type: "number", min: "1", max: "2000", value: String(COUNT) });
    this.countField = labelField("Number of tasks", this.count, "Seven of ten to learn from, two to be measured on.");
    this.agent = select([], "");
    this.agentField = labelField("Words of the queries", this.agent);
    this.allowed = el("fieldset.pool-training-allowed");
    this.heading = el("h3.pool-memory-heading");
    this.list = el("ul.page-task-list.pool-training-list");
    this.left = el("p.pool-hint");
    this.lead = el("p.page-lead", {}, LEAD);
    this.cap = el("input", { type: "text", inputMode: "decimal", placeholder: "none" });
    this.capField = labelField("Most that the job may cost, in US dollars", this.cap, "At the cap it stops, with what it has learnt; a higher one lets it go on.");
    this.teacher = select([["", NO_TEACHER]], "", () => this.plan());
    this.teacherField = labelField("Plans to imitate first", this.teacher, TEACHER_ABOUT);
    this.estimate = el("p.pool-hint", { role: "status" });
    this.gaps = el("ul.pool-hint.pool-training-gaps");
    this.questions = new QuestionFields(() => page.send({ action: "estimate_practice", pool: this.practice.pool, ...this.read() }));
    this.count.addEventListener("input", () => this.questions.update());
    this.making = new MakingView((making) => (this.make.hidden = making.state === "running"), () => this.end());
    this.problem = el("p.form-general", { role: "alert" });
    this.make = needs(button("Make tasks", () => busy(this.make, "Starting …", () => this.makeTasks())), "pool/make_practice");
    this.start = needs(button("Train", () => busy(this.start, "Starting …", () => this.train()), "page-primary"), "pool/train_on_pool");
    this.take(practice);
  }

  open() {
    const { drawer } = this.page;
    const foot = drawer.foot(this.start, this.make, button("Close", () => drawer.close()));
    const parts = [
      this.lead, this.teacherField.node, this.capField.node, this.estimate, this.gaps, this.problem,
      el("h3.pool-memory-heading", {}, "Make tasks"), this.making.root, this.countField.node, this.agentField.node, this.allowed, this.left,
      this.questions.root, this.heading,
      this.list, foot,
    ];
    drawer.open("Train on this pool", parts, { focus: this.count });
    this.plan();
  }

  /** @param {TasksDocument} practice */
  take(practice) {
    this.practice = practice;
    const { counts, rows, excluded, agents } = practice;
    const total = counts.train + counts.validation + counts.test;
    const chosen = this.readAllowed();
    const mayBe = excluded.filter((worker) => worker.may_be_allowed);
    this.allowed.hidden = !mayBe.length;
    this.allowed.replaceChildren(
      el("legend", {}, "Workers whose calls might have effects: call them too?"),
      ...mayBe.map((worker) => allowBox(worker, chosen.includes(worker.name))),
    );
    const agent = this.agent.value;
    this.agent.replaceChildren(...options(agents));
    this.agent.value = agents.includes(agent) ? agent : "";
    this.agentField.node.hidden = !agents.length || practice.agents_only;
    this.questions.take(practice);
    this.making.take(practice.making);
    const others = excluded.filter(({ name, may_be_allowed: may }) => !may && !agents.includes(name)).map(({ name }) => name);
    this.left.hidden = !others.length;
    this.left.textContent = others.length ? `In no task, because their answers are not exact: ${others.join(", ")}.` : "";
    this.heading.textContent = total
      ? `${total} tasks: ${counts.train} to learn, ${counts.validation} to watch, ${counts.test} to measure`
      : "No tasks yet";
    this.list.replaceChildren(...rows.map((task) => this.item(task)));
    const panel = `/train?tasks=${encodeURIComponent(practice.pool)}`;
    const more = total > rows.length ? `and ${total - rows.length} more: ` : "";
    this.list.append(el("li.pool-hint", {}, el("span", {}, more, el("a.podium-link", { href: panel }, "Edit, paste and write tasks"))));
    this.make.classList.toggle("page-primary", !total);
    this.start.hidden = !counts.train;
  }

  /** @param {TaskRow} task */
  item(task) {
    const drop = () => this.send({ action: "strike_practice", query: task.query, based_on: task.based_on });
    const strike = needs(button("", drop, "page-close"), "pool/strike_practice");
    strike.append(icon(ACTIONS.cross));
    strike.setAttribute("aria-label", `Strike: ${task.query}`);
    const marks = [task.checked && `checked by ${task.checked}`, task.origin === "own" ? "yours" : ""];
    const about = [task.workers.join(" → ") || "no plan", task.split, ...marks].filter(Boolean).join(" · ");
    return el(
      "li", {}, el("div", {}, el("b", {}, task.query), el("span", {}, `= ${task.answer}`), el("small", {}, about)), strike,
    );
  }

  readAllowed() {
    return [...this.allowed.querySelectorAll("input:checked")].map((box) => /** @type {HTMLInputElement} */ (box).value);
  }

  read() {
    return { count: Number(this.count.value), agent: this.agent.value, allowed: this.readAllowed(), ...this.questions.read() };
  }

  async makeTasks() {
    const reply = await this.send({ action: "make_practice", ...this.read() });
    if (reply.making) this.making.take(reply.making);
  }

  async end() {
    this.questions.update();
    await this.send({ action: "practice" });
  }

  /** @param {import("../lib/api.js").Command} request */
  async send(request) {
    const reply = await this.page.command(request);
    this.problem.textContent = reply.ok ? "" : plain(reply.problems);
    if (reply.practice) {
      this.take(reply.practice);
      await this.plan();
    }
    return reply;
  }

  /** Say what training on the tasks that are there would take, and what prevents it. */
  async plan() {
    const reply = await this.page.act({ action: "training_plan", pool: this.practice.pool, teacher: this.teacher.value });
    if (!reply.ok) return;
    const { by_outcomes: byOutcomes, teachers, estimate, gaps } = reply.plan;
    this.lead.textContent = byOutcomes ? OUTCOMES_LEAD : LEAD;
    const learns = this.practice.counts.train > 0;
    this.left.hidden ||= byOutcomes;
    this.capField.node.hidden = !byOutcomes || !learns;
    this.teacherField.node.hidden = !teachers.length || !learns;
    this.offerTeachers(teachers);
    this.estimate.hidden = !estimate || !learns;
    this.estimate.textContent = estimate ? describeEstimate(estimate) : "";
    this.gaps.hidden = !gaps.length;
    this.gaps.replaceChildren(...gaps.map((/** @type {string} */ gap) => el("li", {}, gap)));
  }

  /** @param {string[]} teachers */
  offerTeachers(teachers) {
    const chosen = this.teacher.value;
    const offered = [["", NO_TEACHER], ...teachers.map((name) => [name, `Plans by ${name}`])];
    this.teacher.replaceChildren(...offered.map(([value, label]) => el("option", { value }, label)));
    this.teacher.value = teachers.includes(chosen) ? chosen : "";
  }

  async train() {
    const reply = await this.send({ action: "train_on_pool", teacher: this.teacher.value, max_cost: this.capField.node.hidden ? "" : this.cap.value });
    if (reply.ok) location.href = `/train?job=${encodeURIComponent(reply.job)}`;
  }
}

/**
 * @param {WorkerExclusion} worker
 * @param {boolean} checked
 */
function allowBox(worker, checked) {
  const box = el("input", { type: "checkbox", value: worker.name });
  box.checked = checked;
  return el("label", {}, box, worker.name);
}

/** @param {string[]} agents */
function options(agents) {
  return [["", "From the workers' descriptions"], ...agents.map((name) => [name, `By ${name}`])].map(([value, label]) =>
    el("option", { value }, label));
}

/** @param {import("../types").JobEstimate} estimate */
function describeEstimate({ calls, cost, minutes, basis }) {
  const price = cost === null ? "no worker has a price" : `about ${dollars(cost)}`;
  return `About ${count(calls)} calls, ${price}, ${Math.round(minutes)} minutes on two cores, to within a factor of two (${basis}).`;
}
