// Tasks that a person has: pasted or from a file, read by the server as they stand, and added once they look right.

import { busy, button, select } from "../lib/controls.js";
import { count, el } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { plain } from "../lib/reply.js";
import { needs } from "../lib/rights.js";
import { RecordedPool } from "./recorded.js";
import { answerList } from "./task_form.js";

const ABOUT = 'Paste queries and answers from a spreadsheet, or lines such as {"query": "What is 6 * 7?", "answer": 42}; or choose a file, or drop it here: CSV, TSV, JSON, JSONL or Parquet, in any encoding. A data set of tool use (OpenAI messages, ShareGPT, Gemini, Hermes, xLAM, BFCL) becomes a pool.';
const FILES = ".jsonl,.json,.csv,.tsv,.tab,.txt,.parquet";
const READ_MS = 400;
const MAX_BYTES = 20_000_000;

export class PasteTasks {
  /** @param {import("./panel.js").TasksPanel} panel */
  constructor(panel) {
    this.panel = panel;
    /** @type {{ name: string, data: string, answers: string } | null} */
    this.upload = null;
    this.text = el("textarea.form-code", { rows: "7", spellcheck: "false", placeholder: "query\tanswer" });
    this.text.addEventListener("input", () => this.wait());
    this.file = el("input", { type: "file", accept: FILES, multiple: "", "aria-label": "A file of tasks, and one of its possible answers" });
    this.file.addEventListener("change", () => this.takeFiles([...this.file.files]));
    this.address = el("input", { placeholder: "openai/gsm8k:main", spellcheck: "false", autocomplete: "off" });
    this.addressField = labelField("Or a data set of the Hugging Face Hub", this.address, "OWNER/NAME, with :CONFIG where it has several; it is fetched to this machine.");
    this.fetch = button("Read it", () => busy(this.fetch, "Fetching …", () => this.takeDataSet()));
    this.dataset = "";
    this.query = select([], "", () => this.read());
    this.answer = select([], "", () => this.read());
    this.encoding = el("input", { placeholder: "found out, or such as cp1252", spellcheck: "false" });
    this.encoding.addEventListener("change", () => this.read());
    this.columns = [labelField("Queries from", this.query), labelField("Answers from", this.answer)];
    this.encodingField = labelField("Encoding", this.encoding);
    this.choices = el("div.train-form-grid.form-fields-row", {}, ...this.columns.map((field) => field.node), this.encodingField.node);
    this.preview = el("div.train-tasks-preview", { "aria-live": "polite" });
    this.add = needs(button("Add tasks", () => busy(this.add, "Adding …", () => this.send()), "page-primary"), "train/add_tasks");
    this.recorded = new RecordedPool(this);
    this.field = labelField("Tasks", this.text, ABOUT);
    const hub = el("div.train-tasks-hub", {}, this.addressField.node, this.fetch);
    this.root = el("div.train-tasks-form", {}, this.field.node, this.file, hub, this.choices, this.preview, this.add, this.recorded.root);
    this.forget();
  }

  /** What is sent: the file or the text, and how a person wants it read. */
  get request() {
    const given = this.dataset ? { dataset: this.dataset } : this.upload || { text: this.text.value };
    return { ...given, encoding: this.encoding.value, query_column: this.query.value, answer_column: this.answer.value };
  }

  wait() {
    this.forget();
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.read(), READ_MS);
  }

  /** What was read has been kept. */
  clear() {
    this.text.value = this.address.value = "";
    this.forget();
    this.preview.replaceChildren();
    this.add.hidden = true;
  }

  /** Nothing is known of a text or file that has just been given. */
  forget() {
    this.recorded.hide();
    this.upload = null;
    this.dataset = "";
    this.file.value = this.encoding.value = "";
    this.offer([]);
  }

  async takeDataSet() {
    this.text.value = "";
    this.forget();
    this.dataset = this.address.value.trim();
    this.addressField.say(this.dataset ? "" : "Write the name of a data set, such as openai/gsm8k:main.");
    if (this.dataset) await this.read();
  }

  /** @param {FileList} files */
  takeDropped(files) {
    this.file.files = files;
    return this.takeFiles([...files]);
  }

  /**
   * Read a file, or the two of a suite: its questions and their possible answers.
   * @param {File[]} files
   */
  async takeFiles([file, answers]) {
    if (!file) return;
    if (file.size + (answers?.size || 0) > MAX_BYTES) {
      this.field.say("The file is larger than 20 MB: name it in the recipe, as tasks.source file:PATH.");
      return;
    }
    this.text.value = this.encoding.value = this.dataset = "";
    this.upload = { name: file.name, data: await encode(file), answers: answers ? await encode(answers) : "" };
    this.offer([]);
    await this.read();
  }

  /**
   * Let a person choose among columns, where there are some.
   * @param {string[]} columns
   */
  offer(columns, query = "", answer = "") {
    const choices = [["", "Choose"], ...columns.map((name) => [name, name])];
    for (const [node, value] of /** @type {const} */ ([[this.query, query], [this.answer, answer]])) {
      node.replaceChildren(...choices.map(([key, label]) => el("option", { value: key }, label)));
      node.value = value;
    }
    for (const field of this.columns) field.node.hidden = !columns.length;
    this.encodingField.node.hidden = !this.upload;
    this.choices.hidden = !columns.length && !this.upload;
  }

  async read() {
    this.field.say("");
    this.addressField.say("");
    this.preview.replaceChildren();
    this.add.hidden = true;
    this.recorded.hide();
    if (!this.dataset && !this.upload && !this.text.value.trim()) return;
    const request = this.request;
    const reply = await this.panel.page.ask({ action: "read_tasks", pool: this.panel.pool, ...request });
    if (JSON.stringify(request) !== JSON.stringify(this.request)) return;
    if (!reply.ok) {
      (this.dataset ? this.addressField : this.field).say(plain(reply.problems));
      if (reply.columns) this.offer(reply.columns, request.query_column, request.answer_column);
      return;
    }
    this.draw(reply.preview);
  }

  /** @param {import("../types").TasksPreview} preview */
  draw(preview) {
    const { form, unit, left_out: bad, columns, query_column, answer_column, total, counts, rows, problems } = preview;
    const { examples, lacking, notes, new_pool } = preview;
    this.offer(columns, query_column, answer_column);
    const parts = [`${count(total)} ${total === 1 ? "task" : "tasks"}`];
    if (total) parts.push(`${counts.train} to learn, ${counts.validation} to watch, ${counts.test} to measure`);
    if (bad) parts.push(`${count(bad)} ${bad === 1 ? `${unit} is` : `${unit}s are`} no task and left out`);
    const wrong = problems.map(({ place, sentence }) => el("li", {}, el("b", {}, place), ` ${sentence}`));
    if (lacking.length) wrong.push(el("li", {}, `The plans call ${lacking.join(", ")}, which this pool lacks.`));
    const shown = rows.slice(0, 5).map((row) => el("li", {}, el("b", {}, row.query), el("span", {}, `= ${row.answer}`), el("small", {}, `${row.split} · graded by ${row.verifier}`)));
    this.preview.replaceChildren(
      el("p.train-tasks-counts", {}, parts.join(" · ")), el("p.train-mute", {}, [form, ...notes].map((sentence) => `${sentence}.`).join(" ")), ...(wrong.length ? [el("ul.page-problems", {}, ...wrong)] : []),
      ...(shown.length ? [el("ol.page-task-list.train-tasks-list", { tabindex: "0", "aria-label": "Tasks that were read" }, ...shown)] : []),
      ...examples.map((example) => el("div", {}, el("p.train-mute", {}, `${example.verifier}: ${example.about}`), answerList(example.answers))),
    );
    this.recorded.offer(preview);
    this.add.hidden = !total || Boolean(new_pool);
    this.add.textContent = `Add ${count(total)} ${total === 1 ? "task" : "tasks"}`;
  }

  async send() {
    const reply = await this.panel.change({ action: "add_tasks", ...this.request });
    if (!reply.ok) return;
    this.clear();
    this.panel.open("");
  }
}

/**
 * The bytes of a file as base64.
 * @param {File} file
 * @returns {Promise<string>}
 */
function encode(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result).replace(/^[^,]*,?/, "")));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}
