// An evaluation graded again: its tasks as they are now, edited here or taken from another source, the ranking before
// and now, and every answer that changed sides. Nothing is stored before a person keeps it.

import { sendCommand } from "../lib/api.js";
import { busy, button } from "../lib/controls.js";
import { count, el } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { plain } from "../lib/reply.js";
import { needs } from "../lib/rights.js";
import { TaskForm } from "../tasks/task_form.js";
import { all } from "./address.js";
import { table } from "./figure.js";
import { emptyState } from "./filters.js";
import { difference, percent, plural } from "./formats.js";

/** @typedef {import("../types").RegradeTask} RegradeTask */
/** @typedef {import("../types").RegradingDocument} RegradingDocument */
/** @typedef {Record<string, string>} Written what the form of a task holds */

const SEARCH_MS = 300;
const EDIT = { title: "Edit this task", about: "", split: "" };

export class RegradeView {
  /** @param {import("./page.js").ComparePage} page */
  constructor(page) {
    this.page = page;
    this.job = "";
    /** @type {Map<string, Written>} edited tasks by query */
    this.edits = new Map();
    this.source = el("input", { type: "text", autocomplete: "off", spellcheck: "false", list: "compare-regrade-sources" });
    this.sources = el("datalist", { id: "compare-regrade-sources" });
    this.sourceField = labelField("Tasks as they are now", this.source, "practice:POOL, hub:OWNER/NAME or file:PATH. Tasks are matched by their query.");
    this.typed = false;
    this.note = el("p.train-mute", { role: "status" });
    this.source.addEventListener("change", () => {
      this.typed = true;
      return this.load();
    });
    this.search = el("input.compare-regrade-search", { type: "search", placeholder: "Find a query", "aria-label": "Find a query" });
    this.search.addEventListener("input", () => {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.load(), SEARCH_MS);
    });
    this.tasks = el("div.compare-regrade-tasks");
    this.form = this.buildForm();
    this.judges = needs(el("input", { type: "checkbox" }), "compare/keep_regrading");
    this.go = button("Grade again", () => busy(this.go, "Grading …", () => this.grade()), "page-primary");
    this.wrong = el("p.compare-regrade-problem", { role: "alert" });
    this.result = el("div.compare-regrade-result", { "aria-live": "polite" });
    const foot = el("div.compare-regrade-foot", {}, this.go, el("label.compare-regrade-judges", {}, this.judges, "Ask judges, too: these calls cost"));
    this.card = el(
      "section.train-card.compare-regrade", { "aria-label": "Tasks" },
      el("p.train-mute", {}, "Change a task's answer or how it is graded, and see what its stored answers count for then. No worker is called."),
      this.sourceField.node, this.note, this.sources, this.search, this.tasks, this.form.root, foot, this.wrong,
    );
    this.empty = el("div");
    this.root = el("div.compare-regrade-view", {}, this.empty, this.card, this.result);
  }

  /** The form of the Tasks panel, for a task whose query stays. */
  buildForm() {
    const form = new TaskForm({
      page: { ask: (request) => sendCommand("train", request) }, pool: "",
      open: () => (form.root.hidden = true),
      change: async ({ task }) => {
        this.edits.set(this.editing, task);
        this.drawTasks();
        this.clearResult();
        return { ok: true, problems: [] };
      },
    }, EDIT);
    form.inputs.query.readOnly = true;
    form.fields.split.node.hidden = form.fields.plan.node.hidden = true;
    form.save.textContent = "Use this";
    form.root.classList.add("compare-regrade-form");
    form.root.hidden = true;
    return form;
  }

  /** @param {boolean} again */
  async show(again = false) {
    if (!this.page.jobs.jobs) await this.page.jobs.load();
    const chosen = all("job");
    const jobs = chosen.length ? chosen : (this.page.jobs.jobs || []).filter((job) => job.episodes).slice(0, 1).map((job) => job.id);
    const hint = jobs.length > 1 ? "Several evaluations are chosen above. Leave the one that is to be graded again." : "";
    this.empty.hidden = jobs.length === 1;
    this.card.hidden = this.result.hidden = jobs.length !== 1;
    if (jobs.length !== 1) this.empty.replaceChildren(hint ? el("div.compare-empty", {}, el("p", {}, hint)) : emptyState("There is no evaluation yet.", this.page));
    else if (jobs[0] !== this.job || again) this.open(jobs[0]);
  }

  /** @param {string} job */
  open(job) {
    if (job !== this.job) {
      this.job = job;
      this.edits.clear();
      this.source.value = this.search.value = "";
      this.typed = false;
      this.clearResult();
    }
    return this.load();
  }

  async load() {
    const request = (this.loading = Symbol());
    const reply = await this.page.ask({
      action: "regrade_tasks", job: this.job, source: this.source.value.trim(), search: this.search.value,
    });
    if (request !== this.loading) return;
    this.say(reply.ok ? reply.tasks.problem : plain(reply.problems));
    this.go.disabled = !reply.ok;
    if (!reply.ok) return;
    /** @type {import("../types").RegradeTasks} */
    const tasks = reply.tasks;
    this.shown = tasks;
    this.form.panel.pool = tasks.pool;
    if (!this.source.value) this.source.value = tasks.source;
    this.sources.replaceChildren(...tasks.sources.map((value) => el("option", { value })));
    this.drawTasks();
  }

  /** What is wrong with a source that was typed; with the evaluation's own it is no mistake of anybody.
   * @param {string} problem */
  say(problem) {
    this.sourceField.say(this.typed ? problem : "");
    this.note.textContent = this.typed || !problem ? "" : `${problem.charAt(0).toUpperCase()}${problem.slice(1)}.`;
    this.note.hidden = !this.note.textContent;
  }

  drawTasks() {
    const { rows, total } = this.shown;
    const more = total > rows.length ? `The first ${rows.length} of ${count(total)} queries; find the others by their words.` : plural(total, "query", "queries");
    /** @type {import("./figure.js").Column<RegradeTask>[]} */
    const columns = [
      { label: "Query", text: (row) => row.query, node: (row) => el("span.compare-regrade-query", { title: row.query }, row.query) },
      { label: "Expected", text: (row) => row.answer, node: (row) => this.describeAnswer(row) },
      { label: "Graded by", text: (row) => this.edits.get(row.query)?.verifier || row.verifier || "no task now" },
      { label: "Right so far", number: true, text: (row) => `${row.right} of ${row.episodes}` },
      { label: "Edit", text: () => "", node: (row) => this.editButton(row) },
    ];
    this.tasks.replaceChildren(table({ name: "regrade-tasks", title: "Tasks", about: more, columns, rows, key: (row) => row.query }));
    this.tasks.querySelector(".compare-figure-exports")?.remove();
  }

  /** @param {RegradeTask} row */
  describeAnswer(row) {
    const edit = this.edits.get(row.query);
    return el("span", {}, edit ? edit.answer || "by the function" : row.answer || "–", edit ? el("span.page-tag", {}, "edited") : "");
  }

  /** @param {RegradeTask} row */
  editButton(row) {
    const edit = needs(button("Edit", () => this.edit(row), "podium-link"), "compare/keep_regrading");
    edit.setAttribute("aria-label", `Edit the task: ${row.query.slice(0, 80)}`);
    if (!this.edits.has(row.query)) return edit;
    const undo = button("Undo", () => {
      this.edits.delete(row.query);
      this.drawTasks();
      this.clearResult();
    }, "podium-link");
    undo.setAttribute("aria-label", `Undo the edit of: ${row.query.slice(0, 80)}`);
    return el("span.compare-regrade-edit", {}, edit, undo);
  }

  /** @param {RegradeTask} row */
  edit(row) {
    this.editing = row.query;
    this.form.set(row);
    const edit = this.edits.get(row.query);
    if (edit) for (const [name, value] of Object.entries(edit)) this.form.inputs[/** @type {"answer"} */ (name)].value = value;
    this.form.adapt();
    this.form.root.hidden = false;
    this.form.root.scrollIntoView({ block: "nearest" });
    this.form.inputs.answer.focus();
  }

  request() {
    return { job: this.job, source: this.source.value.trim(), edits: [...this.edits.values()], ask_judges: this.judges.checked };
  }

  async grade() {
    this.form.root.hidden = true;
    this.clearResult();
    const reply = await this.page.ask({ action: "regrade", ...this.request() });
    this.wrong.textContent = reply.ok ? "" : plain(reply.problems);
    if (reply.ok) this.drawResult(reply.regrading);
  }

  clearResult() {
    this.wrong.textContent = "";
    this.result.replaceChildren();
  }

  /** @param {RegradingDocument} regrading */
  drawResult(regrading) {
    this.colours = new Map();
    const { total, episodes, became_right: right } = regrading;
    const sides = total ? `: ${count(right)} became right, ${count(total - right)} became wrong` : "";
    const left = regrading.left.map(({ reason, count: many }) => el("li", {}, `${count(many)} stay as they were: ${reason}`));
    const lead = el("div.compare-regrade-lead", {}, el("p", { role: "status" }, `${count(total)} of ${count(episodes)} answers changed sides${sides}.`),
      left.length ? el("ul", {}, ...left) : "");
    this.result.replaceChildren(lead, this.ranking(regrading), ...(total ? [this.sides(regrading), this.keeping(regrading)] : []));
    this.result.scrollIntoView({ block: "nearest" });
  }

  /** @param {RegradingDocument} regrading */
  ranking({ ranking }) {
    const conditions = new Set(ranking.map((row) => row.condition));
    const before = [...ranking].sort((one, other) => other.before - one.before);
    /** @param {import("../types").RankRow} row */
    const place = (row) => {
      /** @param {import("../types").RankRow[]} rows */
      const mates = (rows) => rows.filter((mate) => mate.condition === row.condition).indexOf(row) + 1;
      const [was, now] = [mates(before), mates(ranking)];
      return was === now ? String(now) : `${now}, was ${was}`;
    };
    /** @type {import("./figure.js").Column<import("../types").RankRow>[]} */
    const columns = [
      { label: "Orchestrator", text: (row) => row.label, csv: [["orchestrator", (row) => row.orchestrator]] },
      ...(conditions.size > 1 ? [{ label: "Condition", text: (/** @type {import("../types").RankRow} */ row) => row.condition }] : []),
      { label: "Place", number: true, text: place },
      { label: "Before", number: true, text: (row) => percent(row.before), csv: [["before", (row) => row.before]] },
      { label: "Now", number: true, text: (row) => percent(row.after), csv: [["now", (row) => row.after]] },
      {
        label: "Difference in points", number: true, text: (row) => difference(row.difference),
        csv: [["difference", (row) => row.difference[0]], ["low", (row) => row.difference[1]], ["high", (row) => row.difference[2]]],
      },
    ];
    return table({
      name: "regrade-ranking", title: "Ranking before and now", about: "Shares of tasks solved; differences with 95 % intervals over tasks.",
      columns, rows: ranking, key: (row) => `${row.orchestrator} ${row.condition}`,
    });
  }

  /** @param {RegradingDocument} regrading */
  sides({ changed, total }) {
    /** @typedef {import("../types").ChangedSide} ChangedSide */
    /** @type {import("./figure.js").Column<ChangedSide>[]} */
    const columns = [
      {
        label: "Now", text: (row) => (row.correct ? "right" : "wrong"),
        node: (row) => el("span.compare-regrade-side", { "data-right": String(row.correct) }, row.correct ? "right" : "wrong"),
      },
      { label: "Orchestrator", text: (row) => row.label },
      { label: "Query", text: (row) => row.query, node: (row) => el("span.compare-regrade-query", { title: row.query }, row.query) },
      { label: "Answer", text: (row) => row.answer || "none" },
      { label: "Expected now", text: (row) => row.expected || "by a function" },
      {
        label: "Trace", text: (row) => row.episode,
        node: (row) => el("a.podium-link", { href: `/?episode=${encodeURIComponent(row.episode)}`, "aria-label": `Open the run of ${row.label}` }, "Run"),
      },
    ];
    const about = total > changed.length ? `The first ${changed.length} of ${count(total)}.` : "";
    return table({ name: "regrade-sides", title: "Answers that changed sides", about, columns, rows: changed, key: (row) => row.episode });
  }

  /** @param {RegradingDocument} regrading */
  keeping({ total, digest }) {
    const wrong = el("p.compare-regrade-problem", { role: "alert" });
    const keep = needs(button("Keep these verdicts", () => {
      if (!confirm(`Store these verdicts? ${plural(total, "answer")} and the evaluation's figures change. The old rows stay in the job's folder.`)) return;
      busy(keep, "Storing …", async () => {
        const reply = await this.page.ask({ action: "keep_regrading", ...this.request(), digest });
        if (!reply.ok) return void (wrong.textContent = plain(reply.problems));
        this.page.say(reply.message);
        this.clearResult();
        return this.load();
      });
    }), "compare/keep_regrading");
    return el("div.compare-regrade-keep", {}, keep, el("span.train-mute", {}, "Nothing is stored until then."), wrong);
  }
}
