// Tasks that a person has: pasted or from a file, read by the server as they stand, and added once they look right.

import { busy, button } from "../lib/controls.js";
import { count, el } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { plain } from "../lib/reply.js";
import { needs } from "../lib/rights.js";
import { answerList } from "./task_form.js";

const ABOUT = 'Lines such as {"query": "What is 6 * 7?", "answer": 42}, a JSON list of them, or a table with the columns query and answer (copied from a spreadsheet, or CSV).';
const READ_MS = 400;
const MAX_BYTES = 20_000_000;

export class PasteTasks {
  /** @param {import("./panel.js").TasksPanel} panel */
  constructor(panel) {
    this.panel = panel;
    this.text = el("textarea.form-code", { rows: "7", spellcheck: "false", placeholder: "query\tanswer" });
    this.text.addEventListener("input", () => this.wait());
    this.file = el("input", { type: "file", accept: ".jsonl,.json,.csv,.tsv,.txt", "aria-label": "A file of tasks" });
    this.file.addEventListener("change", () => this.takeFile());
    this.preview = el("div.train-tasks-preview", { "aria-live": "polite" });
    this.add = needs(button("Add tasks", () => busy(this.add, "Adding …", () => this.send()), "page-primary"), "train/add_tasks");
    this.add.hidden = true;
    this.field = labelField("Tasks", this.text, ABOUT);
    this.root = el("div.train-tasks-form", {}, this.field.node, this.file, this.preview, this.add);
  }

  wait() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.read(), READ_MS);
  }

  async takeFile() {
    const [file] = this.file.files;
    if (!file) return;
    if (file.size > MAX_BYTES) {
      this.field.say("The file is larger than 20 MB: name it in the recipe, as tasks.source file:PATH.");
      return;
    }
    this.text.value = await file.text();
    await this.read();
  }

  async read() {
    this.field.say("");
    this.preview.replaceChildren();
    this.add.hidden = true;
    const text = this.text.value;
    if (!text.trim()) return;
    const reply = await this.panel.page.ask({ action: "read_tasks", pool: this.panel.pool, text });
    if (text !== this.text.value) return;
    if (!reply.ok) {
      this.field.say(plain(reply.problems));
      return;
    }
    this.draw(reply.preview);
  }

  /** @param {import("../types").TasksPreview} preview */
  draw({ total, counts, rows, problems, examples, lacking }) {
    const bad = new Set(problems.map((problem) => problem.line)).size;
    const parts = [`${count(total)} ${total === 1 ? "task" : "tasks"}`];
    if (total) parts.push(`${counts.train} to learn, ${counts.validation} to watch, ${counts.test} to measure`);
    if (bad) parts.push(`${count(bad)} ${bad === 1 ? "line is" : "lines are"} no task and left out`);
    const wrong = problems.map(({ line, sentence }) => el("li", {}, el("b", {}, `Line ${line}`), ` ${sentence}`));
    if (lacking.length) wrong.push(el("li", {}, `The plans call ${lacking.join(", ")}, which this pool lacks.`));
    const shown = rows.slice(0, 5).map((row) => el("li", {}, el("b", {}, row.query), el("span", {}, `= ${row.answer}`), el("small", {}, `${row.split} · graded by ${row.verifier}`)));
    this.preview.replaceChildren(
      el("p.train-tasks-counts", {}, parts.join(" · ")), ...(wrong.length ? [el("ul.page-problems", {}, ...wrong)] : []),
      ...(shown.length ? [el("ol.page-tasks.train-tasks-list", { tabindex: "0", "aria-label": "Tasks that were read" }, ...shown)] : []),
      ...examples.map((example) => el("div", {}, el("p.train-mute", {}, `${example.verifier}: ${example.about}`), answerList(example.answers))),
    );
    this.add.hidden = !total;
    this.add.textContent = `Add ${count(total)} ${total === 1 ? "task" : "tasks"}`;
  }

  async send() {
    const reply = await this.panel.change({ action: "add_tasks", text: this.text.value });
    if (!reply.ok) return;
    this.text.value = this.file.value = "";
    this.preview.replaceChildren();
    this.add.hidden = true;
    this.panel.open("");
  }
}
