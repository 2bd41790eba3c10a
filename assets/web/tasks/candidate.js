// One candidate: its question, what is said of its answer, and the fields in which a person edits it.

import { button } from "../lib/controls.js";
import { el } from "../lib/dom.js";

/** @type {Record<string, string>} */
const CONCERNS = { personal: "Personal data?", answer: "Needs the right answer", disputed: "People disagree", leak: "Would leak" };

let rows = 0;

export class CandidateRow {
  /**
   * @param {import("../types").CandidateLine} line
   * @param {string[]} splits
   * @param {() => void} onChoice
   */
  constructor(line, splits, onChoice) {
    this.line = line;
    const id = `tasks-row-${rows++}`;
    this.box = el("input", { type: "checkbox", "aria-label": `Choose ${line.query}` });
    this.box.addEventListener("change", onChoice);
    this.text = el("p.tasks-query", { id });
    this.query = el("textarea.tasks-input", { rows: 2, "aria-label": "Question" });
    this.answer = el("input.tasks-input", { type: "text", "aria-label": "Right answer", autocomplete: "off" });
    this.split = el("select.page-select", { "aria-label": "Split" }, ...splits.map((name) => el("option", { value: name }, name)));
    this.confirm = el("input", { type: "checkbox" });
    this.problem = el("p.tasks-problem", { role: "alert" });
    this.facts = el("div.tasks-facts");
    this.fixedAnswer = el("p.tasks-answer");
    this.choices = el("div.tasks-choices");
    this.editButton = button("Edit", () => this.edit(), "podium-link");
    this.editButton.setAttribute("aria-describedby", id);
    const main = el("div.tasks-what", {}, this.text, this.query, this.facts, this.problem);
    const side = el("div.tasks-side", {}, this.fixedAnswer, this.answer, this.choices, el("div.tasks-end", {}, this.split, this.editButton));
    this.node = el("article.tasks-row", { tabindex: -1, "aria-labelledby": id }, this.box, main, side);
    this.take(line);
  }

  get isChosen() {
    return this.box.checked;
  }

  /**
   * Show what the studio says of it now; what a person has typed stays.
   * @param {import("../types").CandidateLine} line
   */
  take(line) {
    const isNew = this.line.id !== line.id || !this.text.textContent;
    this.line = line;
    this.text.textContent = line.query;
    if (isNew) {
      this.query.value = line.query;
      this.answer.value = line.answer; // empty where nobody knows: what is chosen with others must not become right unseen
      this.query.hidden = true;
      this.answer.hidden = Boolean(line.answer);
    }
    if (isNew || !this.split.value) this.split.value = line.split;
    this.fixedAnswer.hidden = !this.answer.hidden;
    this.fixedAnswer.textContent = line.answer;
    this.answer.placeholder = "The right answer";
    this.choices.replaceChildren(...line.choices.map((text) => button(`Use ${text}`, () => (this.answer.value = text), "podium-link")));
    this.facts.replaceChildren(...this.drawFacts());
    return this;
  }

  drawFacts() {
    const { line } = this;
    const parts = [];
    if (line.concern) parts.push(el("span.tasks-concern", { "data-concern": line.concern, title: line.reason }, CONCERNS[line.concern]));
    for (const mark of line.marks) parts.push(el("span.tasks-mark", { title: `${mark.kind}: ${mark.why}` }, el("b", {}, mark.kind), ` ${mark.text}`));
    if (line.marks.length) parts.push(el("label.tasks-confirm", {}, this.confirm, "It may stay"));
    for (const { run, words, answered, client } of line.evidence) {
      const link = el("a.tasks-evidence", { href: `/?episode=${encodeURIComponent(run)}` }, words);
      const sent = client ? `, asked by ${client}` : "";
      parts.push(el("span.tasks-said", {}, link, answered && answered !== line.answer ? `, it answered ${answered}${sent}` : sent));
    }
    if (line.more) parts.push(el("span.tasks-said", {}, `and ${line.more} more`));
    if (line.also.length) parts.push(el("span.tasks-also", {}, `Also asked as: ${line.also.join(" · ")}`));
    if (["leak", "disputed"].includes(line.concern)) parts.push(el("span.tasks-also", {}, capitalize(line.reason)));
    return parts;
  }

  /** @param {boolean} on */
  choose(on) {
    this.box.checked = on;
  }

  edit() {
    this.query.hidden = this.answer.hidden = false;
    this.text.hidden = this.fixedAnswer.hidden = true;
    this.editButton.hidden = true;
    this.query.focus();
  }

  /** What a person chose: fields that are as they were are left out. */
  read() {
    const { line } = this;
    const query = this.query.value.trim();
    const answer = this.answer.hidden ? "" : this.answer.value.trim();
    return {
      id: line.id,
      query: query === line.query ? "" : query,
      answer: answer === line.answer ? "" : answer,
      split: this.split.value,
      confirmed: this.confirm.checked,
    };
  }

  /** Why it was not accepted. @param {string} reason */
  say(reason) {
    this.problem.textContent = reason ? `Not accepted: ${reason}.` : "";
  }

  /** @param {boolean} here */
  mark(here) {
    this.node.classList.toggle("tasks-here", here);
  }

  focus() {
    this.node.focus();
    this.node.scrollIntoView({ block: "nearest" });
  }
}

/** @param {string} text */
function capitalize(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}
