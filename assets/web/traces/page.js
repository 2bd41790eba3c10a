// The Traces page: every past run, filtered on the server, each a link that reopens it.

import { getDocument, sendCommand } from "../lib/api.js";
import { button } from "../lib/controls.js";
import { count, dollars, el, heading, recall, remember, seconds } from "../lib/dom.js";
import { describeSteps } from "../lib/outcome.js";
import { plain, Toast } from "../lib/reply.js";
import { starButton } from "../lib/star.js";
import { needs } from "../lib/rights.js";

const FILTERS = ["text", "pool", "orchestrator", "state", "user", "source", "nested", "sort"];
const ALL = "all"; // sources, in the address: without one a person's own runs are shown
const REFRESH_MS = 4000;
/** @type {Record<string, string>} */
const WORDS = {
  gave_up: "gave up", max_rounds: "out of rounds", max_tokens: "out of tokens", max_cost: "out of budget", deadline: "out of time",
  orchestrator_failed: "orchestrator failed",
};
// Of a result, for its colour: an answer that nothing verified is odd, and so is a run that somebody cut short.
/** @type {Record<string, string>} */
const KINDS = { correct: "good", answered: "odd", stopped: "odd", interrupted: "odd", running: "running", waiting: "running", rejected: "odd" };

/** @type {Record<string, string>} */
const SIDES = { candidate: " · candidate", shadow: " · in the shadow" }; // of a deployment
/** @type {Record<string, string>} */
const SOURCES = { mine: "Mine", served: "Served", evaluation: "Evaluation", training: "Training" };
// Columns that the list can be sorted by, and the field of the summary behind each.
/** @type {Record<string, string>} */
const SORTS = { Result: "state", Orchestrator: "orchestrator", Pool: "pool", Steps: "steps", Time: "wall_s", Tokens: "tokens", Cost: "cost", Started: "started_at" };

const COLUMNS = ["Query", "Result", "Orchestrator", "Pool", "Source", "User", "Steps", "Time", "Tokens", "Cost", "Started", "Star"];

/** @param {HTMLElement} root */
export function mount(root) {
  new TracesPage(root).start();
}

class TracesPage {
  /** @param {HTMLElement} root */
  constructor(root) {
    /** @type {Record<string, string>} */
    this.filters = Object.fromEntries(FILTERS.map((name) => [name, recall(name) || ""]));
    this.filters.source ||= FILTERS.some((name) => this.filters[name]) ? ALL : "mine";
    this.shown = 0;
    this.bar = el("div.traces-bar");
    /** @type {Record<string, HTMLSelectElement>} */
    this.inputs = {};
    this.body = el("tbody");
    this.note = el("p.traces-note", { role: "status" });
    this.more = el("button.page-button.traces-more", { type: "button" }, "Show more");
    this.more.addEventListener("click", () => this.load(true));
    const table = (this.table = el("table.traces-table.traces-runs"));
    this.chosen = new Set();
    this.toast = new Toast();
    this.actions = el("div.traces-actions", { role: "toolbar", "aria-label": "Chosen runs" });
    this.actions.hidden = true;
    table.append(this.head(), this.body);
    const frame = el("div.traces-frame", {}, table);
    const page = el(
      "div.page-body.traces-page", {}, heading("Traces", "Every question that was run: its plan, its calls and its answer. Open one to look inside."), this.bar, this.actions, this.note, frame,
      this.more, this.toast.node,
    );
    root.replaceChildren(page);
    this.drawBar();
  }

  async start() {
    await this.load(false);
    setInterval(() => {
      if (document.visibilityState === "visible" && this.shown <= 50) this.load(false);
    }, REFRESH_MS);
  }

  drawBar() {
    const text = el("input.page-search", { type: "search", placeholder: "Search query, answer or id", "aria-label": "Search" });
    text.value = this.filters.text;
    /** @type {number | undefined} */
    let waiting;
    text.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.set("text", text.value), 200);
    });
    this.bar.append(text);
    for (const [name, label] of [["pool", "All pools"], ["orchestrator", "All orchestrators"], ["state", "Any status"], ["user", "Everybody"], ["source", "All sources"]]) {
      const every = el("option", { value: name === "source" ? ALL : "" }, label);
      const select = el("select.page-select", { "aria-label": label, "data-filter": name }, every);
      select.addEventListener("change", () => this.set(name, select.value));
      this.inputs[name] = select;
      this.bar.append(select);
    }
    const box = el("input", { type: "checkbox" });
    box.checked = this.filters.nested === "1";
    box.addEventListener("change", () => this.set("nested", box.checked ? "1" : ""));
    this.bar.append(el("label.traces-nested", {}, box, "inner episodes too"));
  }

  /** @param {string} name @param {string} value */
  set(name, value) {
    this.filters[name] = value;
    remember(name, value);
    this.load(false);
  }

  /** Fetch a page of rows; a newer request wins over one that is still under way. @param {boolean} append */
  async load(append) {
    const request = (this.request = Symbol());
    const source = this.filters.source === ALL ? "" : this.filters.source;
    const query = new URLSearchParams({ ...this.filters, source, offset: String(append ? this.shown : 0) });
    try {
      const reply = await getDocument(`/api/traces?${query}`);
      if (request === this.request) this.take(reply, append);
    } catch {
      if (request === this.request) this.note.textContent = "The studio does not answer; trying again.";
    }
  }

  /**
   * @param {import("../types").TracePage} reply
   * @param {boolean} append
   */
  take(reply, append) {
    this.fill("pool", reply.pools);
    this.fill("orchestrator", Object.keys(reply.orchestrators), (name) => reply.orchestrators[name] || name);
    this.fill("state", reply.states, (state) => WORDS[state] || state);
    this.fill("user", reply.users);
    this.fill("source", reply.sources, (source) => SOURCES[source] || source);
    this.table.classList.toggle("traces-one-source", this.filters.source !== ALL);
    this.showUsers(reply.users.length > 0 || Boolean(this.filters.user));
    const rows = reply.rows.map((trace) => this.row(trace));
    if (append) this.body.append(...rows);
    else this.body.replaceChildren(...rows);
    this.shown = this.body.children.length;
    this.more.hidden = !reply.more;
    const nothing = this.describeNothing();
    this.note.textContent = reply.problem ? `Traces cannot be written: ${reply.problem}` : this.shown ? "" : nothing;
  }

  /** Why no run is shown. */
  describeNothing() {
    const chosen = FILTERS.filter((name) => this.filters[name] && !["sort", "source"].includes(name));
    if (chosen.length) return "No run matches these filters.";
    if (this.filters.source === ALL) return "Nothing has run yet. Press Run on the Run page.";
    return "No run has this source. Press Run on the Run page, or choose all sources.";
  }

  /** The head: a box that chooses all that is shown, and columns that sort. */
  head() {
    const line = el("tr");
    this.all = el("input", { type: "checkbox", "aria-label": "Choose all that are shown" });
    this.all.addEventListener("change", () => {
      for (const box of this.body.querySelectorAll("input")) this.choose(box.dataset.choose || "", this.all.checked, box);
    });
    line.append(el("th", { scope: "col", "data-name": "Choose" }, this.all));
    for (const name of COLUMNS) {
      const column = el("th", { scope: "col", "data-name": name });
      const sort = SORTS[name];
      if (sort) {
        const button = el("button.traces-sort", { type: "button", "data-sort": sort }, name);
        button.addEventListener("click", () => this.sortBy(sort));
        column.append(button);
      } else column.append(name);
      line.append(column);
    }
    this.headLine = line;
    this.showSort();
    return el("thead", {}, line);
  }

  /** Sort by a column: the largest first, then the other way round. @param {string} sort */
  sortBy(sort) {
    const now = this.filters.sort || "-started_at";
    this.set("sort", now === `-${sort}` ? sort : `-${sort}`);
    this.showSort();
  }

  showSort() {
    const now = this.filters.sort || "-started_at";
    for (const button of this.headLine.querySelectorAll(".traces-sort")) {
      const column = button.closest("th");
      const name = button.dataset.sort;
      const order = now === name ? "ascending" : now === `-${name}` ? "descending" : "";
      if (order) column.setAttribute("aria-sort", order);
      else column.removeAttribute("aria-sort");
    }
  }

  /** @param {import("../types").TraceLine} trace */
  row(trace) {
    const link = el("a.traces-query", { href: `/?episode=${encodeURIComponent(trace.id)}`, title: trace.query }, trace.query);
    const box = el("input", { type: "checkbox", "data-choose": trace.id, "aria-label": `Choose ${trace.query}` });
    box.checked = this.chosen.has(trace.id);
    box.addEventListener("change", () => this.choose(trace.id, box.checked));
    return el("tr", { "data-episode": trace.id }, cell("Choose", box), cell("Query", link),
      cell("Result", result(trace)),
      cell("Orchestrator", el("span", { title: trace.orchestrator }, trace.orchestrator_label, SIDES[trace.side])),
      cell("Pool", trace.pool),
      cell("Source", SOURCES[trace.source] || ""),
      cell("User", trace.user),
      cell("Steps", describeSteps(trace.counts)),
      cell("Time", seconds(trace.wall_s)),
      cell("Tokens", count(trace.tokens)),
      cell("Cost", dollars(trace.cost)),
      cell("Started", ago(trace.started_at)),
      cell("Star", starButton(trace.id, trace.starred)));
  }

  /** @param {string} id @param {boolean} on @param {HTMLInputElement | null} box */
  choose(id, on, box = null) {
    if (box) box.checked = on;
    if (on) this.chosen.add(id);
    else this.chosen.delete(id);
    this.drawActions();
  }

  /** What can be done with the chosen runs. */
  drawActions() {
    const number = this.chosen.size;
    this.actions.hidden = number === 0;
    if (!number) this.all.checked = false;
    const clear = button("Clear", () => this.clear());
    this.actions.replaceChildren(
      el("span.traces-chosen", {}, number === 1 ? "1 run" : `${number} runs`),
      needs(button("Star", () => this.act("star", { on: true })), "traces/star"),
      needs(button("Take the star back", () => this.act("star", { on: false })), "traces/star"),
      needs(button("Delete", () => this.askToDelete()), "traces/delete"), clear,
    );
  }

  clear() {
    this.chosen.clear();
    for (const box of this.body.querySelectorAll("input")) box.checked = false;
    this.drawActions();
  }

  /** @param {string} action */
  async act(action, fields = {}) {
    const reply = await sendCommand("traces", { action, ids: [...this.chosen], ...fields });
    this.toast.say(reply.ok ? reply.message : plain(reply.problems), !reply.ok);
    if (reply.ok) {
      this.clear();
      this.load(false);
    }
    return reply;
  }

  /** Say what depends on the chosen runs; a second press deletes them. */
  async askToDelete() {
    const reply = await sendCommand("traces", { action: "check", ids: [...this.chosen] });
    if (!reply.ok || reply.blocking.length) {
      this.toast.say(reply.ok ? reply.blocking.join("; ") : plain(reply.problems), true);
      return;
    }
    if (!reply.affected.length) {
      this.remove();
      return;
    }
    this.actions.replaceChildren(
      el("span.traces-chosen", {}, `${reply.affected.join("; ")}.`),
      button("Delete all the same", () => this.remove()), button("Keep them", () => this.drawActions()),
    );
  }

  async remove() {
    const reply = await this.act("delete");
    if (!reply.ok) return;
    this.actions.hidden = false;
    this.actions.replaceChildren(
      el("span.traces-chosen", {}, reply.message),
      button("Undo", async () => {
        const back = await sendCommand("traces", { action: "restore", trash: reply.trash });
        this.toast.say(back.ok ? back.message : plain(back.problems), !back.ok);
        this.drawActions();
        this.load(false);
      }),
    );
  }

  /** Who ran what is shown where people log in or clients have tokens. @param {boolean} several */
  showUsers(several) {
    this.inputs.user.hidden = !several;
    this.table.classList.toggle("traces-shared", several);
  }

  /** @param {string} name @param {string[]} values */
  fill(name, values, word = (/** @type {string} */ value) => value) {
    const select = this.inputs[name];
    const chosen = this.filters[name];
    const choices = new Set([...values, ...(chosen && chosen !== ALL ? [chosen] : [])]);
    if (select.options.length - 1 === choices.size) return;
    while (select.options.length > 1) select.remove(1);
    for (const value of choices) select.append(el("option", { value }, word(value)));
    select.value = chosen;
  }
}

/** @param {string} name @param {Node | string} content */
function cell(name, content) {
  return el("td", { "data-name": name, ...(typeof content === "string" ? { title: content } : {}) }, content);
}

/** @param {import("../types").TraceLine} trace */
function result(trace) {
  const state = trace.correct === true ? "correct" : trace.correct === false ? "wrong" : trace.state;
  const kind = KINDS[state] || "bad";
  const word = trace.state === "answered" || trace.correct === null ? state : `${WORDS[trace.state] || trace.state}`;
  const box = el("span.traces-result", {}, el("span.traces-pill", { "data-kind": kind }, WORDS[word] || word));
  if (trace.answer) box.append(el("span.traces-answer", { title: trace.answer }, trace.answer));
  return box;
}

/** @param {string} iso */
function ago(iso) {
  const then = new Date(iso);
  const passed = (Date.now() - then.getTime()) / 1000;
  const text = passed < 60 ? "just now"
    : passed < 3600 ? `${Math.floor(passed / 60)} min ago`
    : passed < 86400 ? `${Math.floor(passed / 3600)} h ago`
    : then.toLocaleDateString();
  return el("time", { datetime: iso, title: then.toLocaleString() }, text);
}
