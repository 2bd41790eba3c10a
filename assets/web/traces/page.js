// The Traces page: every past run, filtered on the server, each a link that reopens it.

import { getDocument } from "../lib/api.js";
import { count, dollars, el, heading, recall, remember, seconds } from "../lib/dom.js";
import { starButton } from "../lib/star.js";

const FILTERS = ["text", "pool", "orchestrator", "state", "user", "nested"];
const REFRESH_MS = 4000;
const WORDS = {
  gave_up: "gave up", max_rounds: "out of rounds", max_tokens: "out of tokens", max_cost: "out of budget", deadline: "out of time",
  orchestrator_failed: "orchestrator failed",
};
// Of a result, for its colour: an answer that nothing verified is odd, and so is a run that somebody cut short.
const KINDS = { correct: "good", answered: "odd", stopped: "odd", interrupted: "odd", running: "running" };

export function mount(root) {
  new TracesPage(root).start();
}

class TracesPage {
  constructor(root) {
    this.filters = Object.fromEntries(FILTERS.map((name) => [name, recall(name) || ""]));
    this.shown = 0;
    this.bar = el("div.traces-bar");
    this.inputs = {};
    this.body = el("tbody");
    this.note = el("p.traces-note", { role: "status" });
    this.more = el("button.page-button.traces-more", { type: "button" }, "Show more");
    this.more.addEventListener("click", () => this.load(true));
    const table = (this.table = el("table.traces-table"));
    table.append(head(), this.body);
    const frame = el("div.traces-frame", {}, table);
    const page = el(
      "div.traces-page", {}, heading("Traces", "Every run, exactly as it happened. Open one to look inside."), this.bar, this.note, frame,
      this.more,
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
    let waiting;
    text.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.set("text", text.value), 200);
    });
    this.bar.append(text);
    for (const [name, label] of [["pool", "All pools"], ["orchestrator", "All orchestrators"], ["state", "Any status"], ["user", "Everybody"]]) {
      const select = el("select.page-select", { "aria-label": label, "data-filter": name }, el("option", { value: "" }, label));
      select.addEventListener("change", () => this.set(name, select.value));
      this.inputs[name] = select;
      this.bar.append(select);
    }
    const box = el("input", { type: "checkbox" });
    box.checked = this.filters.nested === "1";
    box.addEventListener("change", () => this.set("nested", box.checked ? "1" : ""));
    this.bar.append(el("label.traces-nested", {}, box, "inner episodes too"));
  }

  set(name, value) {
    this.filters[name] = value;
    remember(name, value);
    this.load(false);
  }

  /** Fetch a page of rows; a newer request wins over one that is still under way. */
  async load(append) {
    const request = (this.request = Symbol());
    const query = new URLSearchParams({ ...this.filters, offset: String(append ? this.shown : 0) });
    try {
      const reply = await getDocument(`/api/traces?${query}`);
      if (request === this.request) this.take(reply, append);
    } catch {
      if (request === this.request) this.note.textContent = "The studio does not answer; trying again.";
    }
  }

  take(reply, append) {
    this.fill("pool", reply.pools);
    this.fill("orchestrator", reply.orchestrators);
    this.fill("state", reply.states, (state) => WORDS[state] || state);
    this.fill("user", reply.users);
    this.showUsers(reply.users.length > 0 || this.filters.user);
    const rows = reply.rows.map(row);
    if (append) this.body.append(...rows);
    else this.body.replaceChildren(...rows);
    this.shown = this.body.children.length;
    this.more.hidden = !reply.more;
    const filtered = Object.values(this.filters).some(Boolean);
    const nothing = filtered ? "No run matches these filters." : "Nothing has run yet. Press Run on the Run page.";
    this.note.textContent = reply.problem ? `Traces cannot be written: ${reply.problem}` : this.shown ? "" : nothing;
  }

  /** Who ran what is shown where people log in or clients have tokens. */
  showUsers(several) {
    this.inputs.user.hidden = !several;
    this.table.classList.toggle("traces-shared", Boolean(several));
  }

  fill(name, values, word = (value) => value) {
    const select = this.inputs[name];
    const chosen = this.filters[name];
    const choices = new Set([...values, ...(chosen ? [chosen] : [])]);
    if (select.options.length - 1 === choices.size) return;
    while (select.options.length > 1) select.remove(1);
    for (const value of choices) select.append(el("option", { value }, word(value)));
    select.value = chosen;
  }
}

function head() {
  const line = el("tr");
  for (const name of ["Query", "Result", "Orchestrator", "Pool", "User", "Steps", "Time", "Tokens", "Cost", "Started", "Star"])
    line.append(el("th", { scope: "col", "data-name": name }, name));
  return el("thead", {}, line);
}

function row(trace) {
  const link = el("a.traces-query", { href: `/?episode=${encodeURIComponent(trace.id)}`, title: trace.query }, trace.query);
  return el("tr", { "data-episode": trace.id }, cell("Query", link),
    cell("Result", result(trace)),
    cell("Orchestrator", trace.orchestrator),
    cell("Pool", trace.pool),
    cell("User", trace.user),
    cell("Steps", trace.failed_steps ? `${trace.steps} (${trace.failed_steps} failed)` : String(trace.steps)),
    cell("Time", seconds(trace.wall_s)),
    cell("Tokens", count(trace.tokens)),
    cell("Cost", dollars(trace.cost)),
    cell("Started", ago(trace.started_at)),
    cell("Star", starButton(trace.id, trace.starred)));
}

function cell(name, content) {
  return el("td", { "data-name": name }, content);
}

function result(trace) {
  const state = trace.correct === true ? "correct" : trace.correct === false ? "wrong" : trace.state;
  const kind = KINDS[state] || "bad";
  const word = trace.state === "answered" || trace.correct === null ? state : `${WORDS[trace.state] || trace.state}`;
  const box = el("span.traces-result", {}, el("span.traces-pill", { "data-kind": kind }, WORDS[word] || word));
  if (trace.answer) box.append(el("span.traces-answer", { title: trace.answer }, trace.answer));
  return box;
}

function ago(iso) {
  const then = new Date(iso);
  const passed = (Date.now() - then.getTime()) / 1000;
  const text = passed < 60 ? "just now"
    : passed < 3600 ? `${Math.floor(passed / 60)} min ago`
    : passed < 86400 ? `${Math.floor(passed / 3600)} h ago`
    : then.toLocaleDateString();
  return el("time", { datetime: iso, title: then.toLocaleString() }, text);
}
