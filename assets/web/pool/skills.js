// A pool's plan skills: plans that solved several similar tasks, found, tested and added as workers.

import { plain } from "../lib/reply.js";
import { busy, button } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { needs } from "../lib/rights.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */

const LEAD = "A plan that solved several similar questions becomes a worker: the values that the questions state are its parameters. It calls the workers of this pool, within all their limits.";
const TEST = "Finding looks at runs that were judged right and at this pool’s own tasks, and tests each skill on questions that it was not made of. It calls workers, but none whose calls may change something.";

/** @param {PoolPage} page */
export async function openSkills(page) {
  const reply = await page.act({ action: "skills" });
  if (reply.ok) new Skills(page, reply.skills).open();
}

class Skills {
  /**
   * @param {PoolPage} page
   * @param {import("../types").SkillsDocument} reply
   */
  constructor(page, reply) {
    this.page = page;
    this.problem = el("p.form-general", { role: "alert" });
    this.outcome = el("p.pool-hint", { role: "status" });
    this.heading = el("h3.pool-memory-heading");
    this.own = el("ul.pool-memory-list", { "aria-label": "Plan skills of this pool" });
    this.candidates = el("ul.pool-memory-list", { "aria-label": "Plan skills that may be added" });
    this.newHeading = el("h3.pool-memory-heading", {}, "May be added");
    this.find = needs(button("Find plan skills", () => busy(this.find, "Finding …", () => this.send({ action: "find_skills" })), "page-primary"), "pool/find_skills");
    this.take(reply);
  }

  open() {
    const foot = this.page.drawer.foot(this.find, button("Close", () => this.page.drawer.close()));
    this.page.drawer.open("Plan skills", [
      el("p.page-lead", {}, LEAD), el("p.pool-hint", {}, TEST), this.problem, this.heading, this.own, this.newHeading, this.candidates, this.outcome, foot,
    ], { focus: this.find });
  }

  /** @param {import("../types").SkillsDocument} reply */
  take({ skills, candidates }) {
    this.heading.textContent = skills.length ? `${skills.length} in this pool` : "None in this pool yet";
    this.own.replaceChildren(...skills.map((skill) => this.item(skill, [this.removeButton(skill.name)])));
    this.newHeading.hidden = !candidates.length;
    this.candidates.replaceChildren(...candidates.map((skill) => this.item(skill, skill.problem ? [] : [this.addButton(skill.name)])));
  }

  /** @param {string} name */
  addButton(name) {
    const add = needs(button("Add", () => busy(add, "Testing …", () => this.send({ action: "add_skill", name }))), "pool/add_skill");
    add.setAttribute("aria-label", `Add ${name}`);
    return add;
  }

  /** @param {string} name */
  removeButton(name) {
    const remove = needs(button("Remove", () => busy(remove, "Removing …", () => this.send({ action: "remove_skill", name }))), "pool/remove_skill");
    remove.setAttribute("aria-label", `Remove ${name}`);
    remove.title = "Earlier versions of the pool keep it";
    return remove;
  }

  /** @param {import("../lib/api.js").Command} request */
  async send(request) {
    const reply = await this.page.command(request);
    this.problem.textContent = reply.ok ? "" : plain(reply.problems);
    this.outcome.textContent = reply.ok ? reply.message || "" : "";
    if (reply.skills) this.take(reply.skills);
  }

  /**
   * @param {import("../types").SkillLine} skill
   * @param {Node[]} actions
   */
  item({ name, description, parameters, steps, record, questions, problem }, actions) {
    const about = [
      el("p.pool-memory-sentence", {}, el("code", {}, `${name}(${parameters.join(", ")})`)),
      el("p.pool-memory-query", { title: description }, description),
      el("p.pool-memory-foot", {}, `Calls ${steps.join(", then ")}. ${record}`),
    ];
    if (problem) about.push(el("p.pool-memory-foot", {}, `Not kept: ${problem}`));
    if (questions.length) about.push(el("p.pool-memory-foot", {}, `Made of: ${questions.map((question) => `“${question}”`).join(", ")}`));
    return el("li.pool-memory-lesson", { "data-skill": name }, el("div.pool-memory-text", {}, ...about), ...actions);
  }
}
