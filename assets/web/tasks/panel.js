// The Tasks panel: what a recipe learns on. The own tasks of a pool are made, pasted, uploaded, written, edited and
// struck here; of every other source it shows some, with how they are graded.

/** @typedef {import("../types").TasksDocument} TasksDocument */
/** @typedef {import("../types").TaskRow} TaskRow */
/** @typedef {import("../lib/api.js").Command} Command */
/** @typedef {import("../types").RecipeDocument["recipe"]} Recipe */
/** @typedef {"make" | "paste" | "write" | "own" | ""} Way */

import { busy, button, select } from "../lib/controls.js";
import { count, el, icon } from "../lib/dom.js";
import { ACTIONS } from "../lib/icons.js";
import { plain } from "../lib/reply.js";
import { needs } from "../lib/rights.js";
import { MakeTasks } from "./make.js";
import { PasteTasks } from "./paste.js";
import { TaskForm } from "./task_form.js";

const OWN = "practice:";
const SPLITS = [["", "All"], ["train", "To learn"], ["validation", "To watch"], ["test", "To measure"]];
/** @type {[Way, string, string][]} */
const WAYS = [
  ["make", "Make tasks", "make_tasks"], ["paste", "Paste or upload", "add_tasks"], ["write", "Write one", "save_task"],
  ["own", "Ask in your words", "save_task"]];
const OWN_WORDS = {
  title: "A question in your words, to measure with",
  about: "Type it as you would ask it, with its right answer. It is asked before and after a training, and never trained on. Six or more say most.",
  split: "test",
};
const SEARCH_MS = 300;

export class TasksPanel {
  /**
   * `page` knows the recipe, asks the server and takes another recipe in its place.
   * @param {import("../train/page.js").TrainPage} page
   */
  constructor(page) {
    this.page = page;
    this.split = this.words = "";
    this.first = 0;
    this.root = el("section.train-card.train-tasks", { "aria-label": "Tasks" });
    this.problem = el("p.form-general", { role: "alert" });
    this.picker = select([], "", (value) => page.chooseTasks(value));
    this.picker.setAttribute("aria-label", "Where the tasks come from");
    this.about = el("p.train-mute");
    this.graded = el("ul.train-tasks-graded");
    this.problems = el("ul.page-problems.train-tasks-problems");
    this.ways = el("div.page-chips", { role: "group", "aria-label": "Add tasks" });
    this.work = el("div.train-tasks-work");
    this.tools = el("div.train-tasks-tools");
    this.list = el("ol.page-task-list.train-tasks-list", { tabindex: "0", "aria-label": "Tasks of this recipe" });
    this.more = el("div.train-tasks-more");
    this.struck = el("details.train-tasks-struck");
    this.forms = { make: new MakeTasks(this), paste: new PasteTasks(this), write: new TaskForm(this), own: new TaskForm(this, OWN_WORDS) };
    const head = el("header.train-recipe-head", {}, el("div", {}, el("h2", {}, "Tasks"), this.about), this.picker);
    this.root.append(
      head, this.ways, this.forms.make.making.root, this.work, this.problem, this.graded, this.problems, this.tools, this.list,
      this.more, this.struck,
    );
    this.shown = ""; // the tasks' recipe
    this.drawWays();
    this.drawTools();
    takeDrops(this.root, (files) => {
      this.open("paste");
      this.forms.paste.takeDropped(files);
    });
  }

  /**
   * Show the tasks of a recipe; asks the server only where they are others than those shown.
   * @param {Recipe} recipe
   * @param {string[]} pools
   */
  async show(recipe, pools) {
    const key = JSON.stringify([recipe.tasks.source, recipe.tasks.levels]);
    this.drawPicker(recipe, pools);
    if (key === this.shown) return;
    this.shown = key;
    this.first = 0;
    this.open("");
    await this.send({ action: "tasks", source: recipe.tasks.source, levels: recipe.tasks.levels });
  }

  /**
   * @param {Recipe} recipe
   * @param {string[]} pools
   */
  drawPicker(recipe, pools) {
    const { source } = recipe.tasks;
    const own = pools.map((name) => [`${OWN}${name}`, `Own tasks of ${name}`]);
    const others = own.some(([value]) => value === source) ? own : [[source, source], ...own];
    this.picker.replaceChildren(...others.map(([value, label]) => el("option", { value }, label)));
    this.picker.value = source;
  }

  get pool() {
    return this.tasks?.pool || "";
  }

  /**
   * Send a command about the tasks and take what they are then. Returns the reply.
   * @param {Command} request
   */
  async send(request) {
    const about = this.pool ? { pool: this.pool } : {};
    const latest = (this.request = Symbol());
    const reply = await this.page.ask({ ...about, split: this.split, words: this.words, first: this.first, ...request });
    if (latest !== this.request) return reply; // another recipe's tasks have been asked for since
    this.problem.textContent = reply.ok ? "" : plain(reply.problems);
    if (reply.ok && reply.message) this.page.toast.say(reply.message);
    if (reply.tasks) this.take(reply.tasks);
    return reply;
  }

  /**
   * A command that changes tasks: what is missing for a start may have changed with them.
   * @param {Command} request
   */
  async change(request) {
    const reply = await this.send(request);
    if (reply.ok) this.page.check();
    return reply;
  }

  refresh() {
    return this.send({ action: "tasks", source: this.tasks.source });
  }

  /** @param {TasksDocument} tasks */
  take(tasks) {
    this.tasks = tasks;
    const own = Boolean(tasks.pool);
    this.ways.hidden = this.tools.hidden = !own;
    this.about.textContent = summary(tasks);
    this.graded.replaceChildren(...Object.entries(tasks.verifiers).map(([kind, what]) => el("li", {}, el("b", {}, kind), what)));
    this.problems.replaceChildren(...tasks.problems.map(({ place, sentence }) => el("li", {}, el("b", {}, place), ` ${sentence}`)));
    this.list.replaceChildren(...tasks.rows.map((row) => this.item(row)));
    this.drawMore();
    this.drawStruck();
    this.forms.make.take(tasks);
    if (own && !tasks.made && !tasks.own && !this.way) this.open("make");
  }

  /** @param {TaskRow} row */
  item(row) {
    const plan = row.workers.length ? row.workers.join(" → ") : "no plan";
    const facts = [row.split, `graded by ${row.verifier}`, plan, row.checked && `checked by ${row.checked}`, row.origin === "own" ? "yours" : ""].filter(Boolean);
    const text = el("div", {}, el("b", {}, row.query), el("span", {}, `= ${row.answer}`), el("small", {}, facts.join(" · ")));
    const node = el("li", { "data-origin": row.origin }, text);
    if (row.origin) {
      const edit = needs(iconButton(`Edit: ${row.query}`, ACTIONS.pencil, () => this.open("write", row)), "train/save_task");
      const drop = () => this.change({ action: "strike_task", query: row.query, based_on: row.based_on });
      const strike = needs(iconButton(`Strike: ${row.query}`, ACTIONS.cross, drop), "train/strike_task");
      node.append(el("span.train-tasks-do", {}, edit, strike));
    }
    return node;
  }

  drawMore() {
    const { first, total, rows } = this.tasks;
    const last = first + rows.length;
    /** @type {(label: string, place: number, on: boolean) => HTMLButtonElement} */
    const go = (label, place, on) => {
      const node = button(label, () => {
        this.first = place;
        this.refresh();
      });
      node.disabled = !on;
      return node;
    };
    const paged = this.pool && total > rows.length;
    this.more.replaceChildren(...(paged
      ? [go("Before", Math.max(0, first - 50), first > 0), el("span.train-mute", {}, `${count(first + 1)} to ${count(last)} of ${count(total)}`), go("Next", last, last < total)]
      : []));
  }

  drawStruck() {
    const { struck } = this.tasks;
    this.struck.hidden = !struck.length;
    /** @param {string} query */
    const back = (query) => {
      const put = needs(button("Put back", () => this.change({ action: "restore_task", query }), "podium-link"), "train/restore_task");
      return el("li", {}, el("span", {}, query), put);
    };
    this.struck.replaceChildren(
      el("summary", {}, `${count(struck.length)} struck: not made again`), el("ul", {}, ...struck.map(back)),
    );
  }

  drawWays() {
    for (const [name, label, command] of WAYS) {
      const chip = needs(button(label, () => this.open(this.way === name ? "" : name), "page-chip"), `train/${command}`);
      chip.dataset.way = name;
      this.ways.append(chip);
    }
  }

  drawTools() {
    const chips = el("div.page-chips", { role: "group", "aria-label": "Split" });
    for (const [name, label] of SPLITS) {
      const chip = button(label, () => {
        this.split = name;
        this.first = 0;
        for (const other of chips.children) other.setAttribute("aria-pressed", String(other === chip));
        this.refresh();
      }, "page-chip");
      chip.setAttribute("aria-pressed", String(name === ""));
      chips.append(chip);
    }
    const search = el("input.page-search", { type: "search", placeholder: "Search tasks", "aria-label": "Search tasks" });
    search.addEventListener("input", () => {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => {
        this.words = search.value;
        this.first = 0;
        this.refresh();
      }, SEARCH_MS);
    });
    this.tools.append(chips, search);
  }

  /**
   * Open one way to add tasks, or none; `row` is the task that is edited.
   * @param {Way} way
   * @param {TaskRow | null} row
   */
  open(way, row = null) {
    this.way = way;
    for (const chip of this.ways.children) chip.setAttribute("aria-pressed", String(chip.dataset.way === way));
    if (way === "write" || way === "own") this.forms[way].set(row);
    this.work.replaceChildren(...(way ? [this.forms[way].root] : []));
    if (row) this.work.scrollIntoView({ block: "center" });
  }
}

/**
 * Let files be dropped on a part of the page.
 * @param {HTMLElement} root
 * @param {(files: FileList) => void} take
 */
function takeDrops(root, take) {
  root.addEventListener("dragover", (event) => event.preventDefault());
  root.addEventListener("drop", (event) => {
    const files = event.dataTransfer?.files;
    if (!files?.length) return;
    event.preventDefault();
    take(files);
  });
}

/** @param {TasksDocument} tasks */
function summary({ counts, made, own, with_plan: planned, pool, total }) {
  if (!pool && !Object.keys(counts).length) return `Made as they are needed, for training and for measuring apart. ${total} of them below.`;
  const all = Object.values(counts).reduce((sum, many) => sum + many, 0);
  if (!all) return "No tasks yet. Let them be made from calls that the workers answer, paste your own, or write one.";
  const parts = [`${count(all)} tasks: ${counts.train} to learn, ${counts.validation} to watch, ${counts.test} to measure`];
  if (pool) parts.push(`${count(made)} made, ${count(own)} yours`);
  parts.push(planned === all ? "all with a reference plan, a teacher without a key" : `${count(planned)} with a reference plan`);
  return `${parts.join(" · ")}.`;
}

/**
 * @param {string} label
 * @param {string} path
 * @param {() => unknown} work
 */
function iconButton(label, path, work) {
  const node = button("", () => busy(node, "", work), "page-close");
  node.append(icon(path));
  node.setAttribute("aria-label", label);
  return node;
}
