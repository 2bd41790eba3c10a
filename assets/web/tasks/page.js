// The Tasks page: what people and clients asked and somebody judged, accepted as tasks, edited or struck, many at once.

import { sendCommand } from "../lib/api.js";
import { busy, button, select } from "../lib/controls.js";
import { el, heading, recall, remember } from "../lib/dom.js";
import { plain, Toast } from "../lib/reply.js";
import { needs } from "../lib/rights.js";
import { AsideTasks } from "./aside.js";
import { CandidateRow } from "./candidate.js";
import { TrafficSettings } from "./traffic_settings.js";

const ABOUT = "What was asked and judged, and may become a task of the pool's own. Nothing is learnt before you accept it.";
// How the list can be narrowed, and which candidates stay.
/** @type {Record<string, [string, (row: import("../types").CandidateLine) => boolean]>} */
const VIEWS = {
  all: ["All", () => true],
  ready: ["Ready", (row) => !row.concern],
  look: ["Need a look", (row) => Boolean(row.concern)],
};

/** @param {HTMLElement} root */
export function mount(root) {
  new TasksPage(root).start();
}

class TasksPage {
  /** @param {HTMLElement} root */
  constructor(root) {
    /** @type {CandidateRow[]} */
    this.rows = [];
    /** @type {Map<string, CandidateRow>} those that the view leaves out too, by id: what is typed in them stays */
    this.rowsById = new Map();
    /** @type {Map<string, string>} why candidates were not accepted, by id */
    this.refused = new Map();
    this.view = "all";
    this.place = 0;
    this.requests = 0;
    this.shownRequest = 0; // the request whose candidates are shown
    this.working = false; // questions are being accepted or struck
    this.toast = new Toast();
    this.pool = select([], "", (name) => this.open(name));
    this.pool.setAttribute("aria-label", "Pool");
    this.views = el("div.page-chips", { role: "group", "aria-label": "Which questions" });
    this.all = el("input", { type: "checkbox" });
    this.all.addEventListener("change", () => this.chooseAll(this.all.checked));
    this.chosen = el("span.tasks-chosen", { role: "status" });
    this.acceptButton = needs(button("Accept", () => this.accept(), "page-primary"), "tasks/accept");
    this.strikeButton = needs(button("Strike", () => this.strike()), "tasks/strike");
    const all = el("label.tasks-all", {}, this.all, "Choose all shown");
    this.bar = el("div.tasks-bar", { role: "toolbar", "aria-label": "Chosen questions" }, all, this.chosen, this.acceptButton, this.strikeButton);
    this.list = el("div.tasks-list", { role: "list", "aria-label": "Candidates" });
    this.note = el("p.tasks-note", { role: "status" });
    this.keys = el("p.tasks-keys", {}, "Keys: ", ...["j", "k"].flatMap((key) => [el("kbd", {}, key), " "]), "move, ",
      el("kbd", {}, "x"), " choose, ", el("kbd", {}, "a"), " accept, ", el("kbd", {}, "s"), " strike, ", el("kbd", {}, "e"), " edit");
    this.settings = new TrafficSettings((action, fields) => this.send(action, fields));
    this.aside = new AsideTasks((queries) => this.putBack(queries));
    const tools = el("div.page-tools", {}, this.pool, this.views);
    const main = el("div.tasks-main", {}, tools, this.bar, this.note, this.list, this.keys, this.aside.node);
    root.replaceChildren(
      el("div.page-body.tasks-page", {}, heading("Tasks", ABOUT), el("div.tasks-columns", {}, main, this.settings.node), this.toast.node),
    );
    document.addEventListener("keydown", (event) => this.press(event));
  }

  async start() {
    await this.open(recall("pool") || "");
  }

  /** @param {string} pool */
  async open(pool) {
    this.refused.clear();
    await this.send("candidates", pool ? { pool } : {});
  }

  /**
   * Send a command about the pool that is shown, and show what it replies, unless a later reply is shown already.
   * @param {string} action
   * @param {Record<string, any>} fields
   */
  async send(action, fields) {
    const request = ++this.requests;
    const reply = await sendCommand("tasks", { action, pool: this.state?.pool || "", ...fields });
    if (!reply.ok) {
      if (this.state) this.pool.value = this.state.pool; // another one that was chosen is not shown
      this.toast.say(plain(reply.problems), true);
      if (!this.rows.length) this.note.textContent = plain(reply.problems);
      return reply;
    }
    if (reply.candidates && request > this.shownRequest) {
      this.shownRequest = request;
      this.take(reply.candidates);
    }
    return reply;
  }

  /** @param {import("../types").CandidatesDocument} state */
  take(state) {
    this.state = state;
    remember("pool", state.pool);
    this.pool.replaceChildren(...state.pools.map((name) => el("option", { value: name }, name)));
    this.pool.value = state.pool;
    this.settings.show(state.settings, state.pool);
    this.aside.show(state);
    this.draw();
  }

  draw() {
    const state = /** @type {import("../types").CandidatesDocument} */ (this.state);
    this.rowsById = new Map(state.rows.map((line) => [line.id, this.rowOf(line)]));
    this.drawViews(state.rows);
    this.rows = state.rows.filter(VIEWS[this.view][1]).map((line) => this.rowsById.get(line.id));
    const groups = new Map();
    for (const row of this.rows) groups.set(row.line.group, [...(groups.get(row.line.group) || []), row]);
    this.list.replaceChildren(...[...groups.values()].map(drawGroup));
    const rest = state.total - state.rows.length;
    this.note.textContent = this.describe(state.total) || (rest > 0 ? `${rest} more follow as these are settled.` : "");
    this.bar.hidden = this.keys.hidden = !this.rows.length;
    this.moveTo(Math.min(this.place, Math.max(0, this.rows.length - 1)), false);
    this.count();
  }

  /** @param {import("../types").CandidateLine} line */
  rowOf(line) {
    const row = this.rowsById.get(line.id)?.take(line) || new CandidateRow(line, this.state.splits, () => this.count());
    row.say(this.refused.get(line.id) || "");
    return row;
  }

  /** @param {import("../types").CandidateLine[]} rows */
  drawViews(rows) {
    this.views.replaceChildren(...Object.entries(VIEWS).map(([name, [label, stays]]) => {
      const chip = button(`${label} ${rows.filter(stays).length}`, () => {
        this.view = name;
        this.draw();
      }, "page-chip");
      chip.setAttribute("aria-pressed", String(this.view === name));
      return chip;
    }));
  }

  /** Why nothing is shown; "" where something is. @param {number} total */
  describe(total) {
    if (this.rows.length) return "";
    if (total) return "No question fits this view.";
    return "Nothing waits. Judge answers with the thumbs of the Run page, correct a plan with What if, or let clients of a served model send verdicts.";
  }

  count() {
    const number = this.rows.filter((row) => row.isChosen).length;
    this.chosen.textContent = number ? `${number} chosen` : "";
    this.all.checked = number > 0 && number === this.rows.length;
    this.all.indeterminate = number > 0 && number < this.rows.length;
    for (const node of [this.acceptButton, this.strikeButton]) node.disabled = !number;
  }

  /** @param {boolean} on */
  chooseAll(on) {
    for (const row of this.rows) row.choose(on);
    this.count();
  }

  /** The chosen rows, or the one that the keys are at. */
  listChosen() {
    const rows = this.rows.filter((row) => row.isChosen);
    return rows.length ? rows : this.rows.slice(this.place, this.place + 1);
  }

  async accept() {
    const rows = this.listChosen();
    if (!rows.length) return;
    const reply = await this.settle(this.acceptButton, "Accepting …", "accept", { choices: rows.map((row) => row.read()) });
    if (!reply?.ok) return;
    for (const row of rows) this.refused.delete(row.line.id);
    for (const [id, reason] of Object.entries(reply.refused)) this.refused.set(id, String(reason));
    for (const row of this.rows) row.say(this.refused.get(row.line.id) || "");
    this.toast.say(reply.message, Object.keys(reply.refused).length > 0);
  }

  async strike() {
    const ids = this.listChosen().map((row) => row.line.id);
    if (!ids.length) return;
    const reply = await this.settle(this.strikeButton, "Striking …", "strike", { ids });
    if (reply?.ok) this.toast.say(reply.message, false, ["Undo", () => this.send("restore", { struck: reply.struck })]);
  }

  /**
   * Send what becomes of the chosen ones; null while an earlier press is still under way, as a key does not wait.
   * @param {HTMLElement} node
   * @param {string} word
   * @param {string} action
   * @param {Record<string, any>} fields
   */
  async settle(node, word, action, fields) {
    if (this.working) return null;
    this.working = true;
    try {
      return await busy(node, word, () => this.send(action, fields));
    } finally {
      this.working = false;
      this.count();
    }
  }

  /** @param {string[]} queries */
  async putBack(queries) {
    const reply = await this.send("put_back", { queries });
    if (reply.ok) this.toast.say(reply.message);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const target = event.target instanceof Element ? event.target : document.body;
    if (event.key === "Escape" && this.list.contains(target)) this.rows[this.place]?.focus();
    const typing = target.closest("input:not([type=checkbox]), textarea, select, dialog, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !this.rows.length) return;
    /** @type {Record<string, () => unknown>} */
    const work = {
      j: () => this.moveTo(Math.min(this.place + 1, this.rows.length - 1)),
      k: () => this.moveTo(Math.max(this.place - 1, 0)),
      x: () => {
        this.rows[this.place].choose(!this.rows[this.place].isChosen);
        this.count();
      },
      a: () => this.acceptButton.dataset.refused || this.accept(),
      s: () => this.strikeButton.dataset.refused || this.strike(),
      e: () => this.rows[this.place].edit(),
    };
    if (!work[event.key]) return;
    event.preventDefault();
    if (event.repeat && "as".includes(event.key)) return; // a key that is held down settles one choice
    work[event.key]();
  }

  /**
   * @param {number} place
   * @param {boolean} focus
   */
  moveTo(place, focus = true) {
    this.place = place;
    for (const [other, row] of this.rows.entries()) row.mark(other === place);
    if (focus) this.rows[place]?.focus();
  }
}

/** Near-duplicates in one frame. @param {CandidateRow[]} rows */
function drawGroup(rows) {
  const head = rows.length > 1 ? el("p.tasks-group-about", {}, "Near-duplicates: they go into one split.") : "";
  return el("div.tasks-group", { role: "listitem" }, head, ...rows.map((row) => row.node));
}
