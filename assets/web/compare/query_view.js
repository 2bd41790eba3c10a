// One query, several orchestrators: their graphs grow side by side, and what each does otherwise than the reference is
// marked and listed. Fed by one stream for all; which episodes are shown lives in the address (e=, reference=).

import { followEvents } from "../lib/api.js";
import { count, dollars, el, icon, seconds } from "../lib/dom.js";
import { Figure, table } from "./figure.js";
import { differenceChips, DIFFERENCES, differencesLegend, SideGraph } from "./graphs.js";
import { StepsSideBySide } from "./steps.js";
import { all, one, put, query } from "./address.js";
import { ACTIONS } from "../lib/icons.js";
import { describeSteps, outcomeChip } from "../lib/outcome.js";
import { needs } from "../lib/rights.js";
import { Thumbs, verdictChip } from "../run/verdict.js";

/** @typedef {import("./page.js").ComparePage} ComparePage */
/** @typedef {import("../run/graph_frame.js").Place} Place */
/** @typedef {import("../types").EpisodeView} EpisodeView */
/** @typedef {import("../types").StartedRun} StartedRun */

const ARRANGEMENTS = [["side", "Side by side"], ["stack", "Stacked"]];
const LEGIBLE = 0.55; // scale of a graph below which the names on its cards are cut
const MARGIN = 56; // pixels of a frame beside its graph

export class QueryView {
  /**
   * `page` sends commands, tells who is chosen and says things.
   * @param {ComparePage} page
   */
  constructor(page) {
    this.page = page;
    this.shown = ""; // what the address named
    /** @type {{ node: HTMLElement, head: HTMLElement, graph: SideGraph, thumbs: Thumbs }[]} */
    this.sides = [];
    this.root = el("div.compare-query");
    this.composer = el("section.train-card.compare-query-composer", { "aria-label": "Query" });
    this.notice = el("div.run-view-notice", { role: "status" });
    this.notice.hidden = true;
    this.bar = el("div.compare-query-bar");
    this.grid = el("div.compare-query-grid");
    this.below = el("div.compare-query-below");
    this.empty = el(
      "p.train-empty", {},
      "Choose two to four orchestrators above, write or draw a query, and press Compare: their graphs grow here side by side.",
    );
    this.steps = new StepsSideBySide();
    this.root.append(this.composer, this.notice, this.empty, this.bar, this.grid, this.below);
  }

  /** @param {import("../types").CompareChoices} reply */
  build(reply) {
    this.reply = reply;
    this.text = el("textarea.compare-query-text", {
      rows: "2", "aria-label": "Query", placeholder: "Ask something, or draw a query with a known answer.",
    });
    this.text.value = reply.query;
    this.text.addEventListener("input", () => (this.typed = true));
    this.pool = chooser("Pool", reply.pools.map((name) => [name, name]), reply.pool);
    this.pool.addEventListener("change", () => this.page.choosePool(this.pool.value));
    this.suite =
      chooser("Suite", reply.suites.map(({ family, level }) => [`${family} ${level}`, `${family} · level ${level}`]), "itinerary 3");
    const draw = el("button.page-button", { type: "button" }, "Draw a query");
    draw.addEventListener("click", () => this.draw());
    this.go = needs(el("button.page-primary", { type: "button" }, icon(ACTIONS.play), "Compare"), "compare/run");
    this.go.addEventListener("click", () => this.run());
    this.halt = needs(el("button.page-button", { type: "button" }, icon(ACTIONS.stop), "Stop"), "compare/stop");
    this.halt.hidden = true;
    this.halt.addEventListener("click", () => this.page.act({ action: "stop", episodes: all("e") }));
    const drawing = reply.suites.length ? [labelField("Suite", this.suite), draw] : [];
    const line = el("div.compare-query-line", {}, labelField("Pool", this.pool), ...drawing, this.go, this.halt);
    this.composer.replaceChildren(this.text, line);
    this.drawBar();
  }

  /** Show what the address names. */
  show() {
    const key = JSON.stringify([all("e"), one("reference")]);
    if (key === this.shown) return;
    this.shown = key;
    this.open(all("e"));
  }

  // Commands

  async draw() {
    const [family, level] = this.suite.value.split(" ");
    const reply = await this.page.act({ action: "draw", family, level: Number(level) });
    if (reply.ok) this.text.value = reply.query;
  }

  async run() {
    const orchestrators = this.page.choice();
    this.go.disabled = true;
    const reply = await this.page.act({ action: "run", pool: this.pool.value, query: this.text.value, orchestrators });
    this.go.disabled = false;
    if (!reply.ok) return;
    this.typed = this.chosen = false;
    /** @type {StartedRun[]} */
    const started = reply.started;
    const failed = started.filter((start) => start.problem);
    const episodes = started.filter((start) => start.episode).map((start) => start.episode);
    put({ e: episodes, reference: null, step: null });
    this.shown = JSON.stringify([episodes, ""]);
    this.open(episodes);
    this.unstarted = failed.map((start) => `${start.orchestrator} was not started: ${start.problem}`).join(" ");
    this.say(this.unstarted);
  }

  /** What a wrong run does otherwise tells more beside a right one: that is the reference, unless a person chose. */
  preferRight() {
    if (this.chosen || one("reference") || !this.state) return;
    /** @param {EpisodeView} view */
    const isRight = (view) => Boolean(view.episode.verdict?.correct);
    const right = this.state.views.findIndex(isRight);
    if (right > 0) this.changeReference(right);
  }

  /** @param {number} place */
  compareWith(place) {
    this.chosen = true;
    this.changeReference(place);
  }

  /** @param {number} place */
  changeReference(place) {
    put({ reference: place || null });
    this.show();
  }

  // The stream

  /** @param {string[]} episodes */
  open(episodes) {
    this.close();
    this.sides = [];
    this.grid.replaceChildren();
    this.below.replaceChildren();
    this.steps.clear();
    this.unstarted = "";
    this.say("");
    this.empty.hidden = episodes.length > 0;
    this.bar.hidden = !episodes.length;
    if (!episodes.length) return;
    const address = query({ e: episodes, reference: one("reference") });
    /** @type {Record<string, (document: any) => void>} */
    const handlers = {
      views: (document) => this.take(document),
      patch: (change) => this.patch(change),
      end: () => {
        this.close();
        this.preferRight();
      },
      problem: (sentence) => {
        this.say(sentence);
        this.close();
      },
    };
    this.stream = followEvents(`/api/compare/stream?${address}`, handlers, (state) => {
      if (state === "gone") this.say("One of these episodes is not in this data folder. Press Compare to run the query again.");
      else if (state === "lost") this.say("Connection lost. Reconnecting …");
    });
    this.halt.hidden = false;
  }

  close() {
    this.stream?.close();
    this.stream = null;
    if (this.halt) this.halt.hidden = true;
  }

  /** @param {string} text */
  say(text) {
    this.notice.textContent = text;
    this.notice.hidden = !text;
  }

  /** @param {import("../types").ComparisonDocument} reply */
  take(reply) {
    this.say(this.unstarted); // the connection is there, what it could not help stays told
    this.state = reply;
    const first = !this.sides.length;
    if (first) this.sides = reply.views.map((_, place) => this.side(place));
    this.arrange();
    reply.views.forEach((view, place) => {
      const side = this.sides[place];
      side.graph.draw(view);
      side.graph.mark(reply.diffs[place]);
      this.drawHead(place);
    });
    if (first && !this.typed) this.text.value = reply.views[0].episode.query;
    this.drawBelow();
  }

  /** @param {import("../types").ComparisonPatch} change */
  patch(change) {
    const view = this.state?.views[change.place];
    if (!view) return;
    const changed = new Map(change.nodes.map((node) => [node.id, node]));
    for (const node of view.graph.nodes) Object.assign(node, changed.get(node.id));
    Object.assign(view, { clock_s: change.clock_s, episode: change.episode, turns: change.turns, totals: change.totals });
    const { graph } = this.sides[change.place];
    graph.drawAnswer(view.graph.answer);
    graph.paint();
    graph.mark(this.state.diffs[change.place]);
    this.drawHead(change.place);
    this.drawTable();
  }

  // Drawing

  drawBar() {
    const chips = el("div.page-chips", { role: "group", "aria-label": "Arrangement" });
    for (const [name, label] of ARRANGEMENTS) {
      const chip = el("button.page-chip", { type: "button", "data-arrange": name }, label);
      chip.addEventListener("click", () => this.chooseArrangement(name));
      chips.append(chip);
    }
    this.bar.replaceChildren(chips, differencesLegend());
    this.arrange();
  }

  /** @param {string} name */
  chooseArrangement(name) {
    put({ arrange: name });
    this.arrange();
  }

  /** Graphs stand side by side where their names stay whole, unless a person chose. */
  arrange() {
    const columns = this.sides.length === 3 ? 3 : 2; // three leave no place empty
    this.grid.style.setProperty("--columns", String(columns));
    const widest = Math.max(0, ...(this.state?.views || []).map(({ graph }) => graph.width));
    const fits = widest * LEGIBLE <= this.grid.clientWidth / columns - MARGIN;
    const name = one("arrange") || (fits ? "side" : "stack");
    if (this.grid.dataset.arrange === name) return;
    this.grid.dataset.arrange = name;
    for (const chip of this.bar.querySelectorAll("[data-arrange]"))
      chip.setAttribute("aria-pressed", String(chip.dataset.arrange === name));
    for (const side of this.sides) side.graph.follow(null, true);
  }

  /** @param {number} place */
  side(place) {
    const head = el("header.compare-query-head");
    const graph =
      new SideGraph((step) => this.select(place, step), () => this.open_(place), (at, fitted) => this.moveAll(place, at, fitted));
    const node = el("section.compare-query-side", { "data-place": place }, head, graph.root);
    this.grid.append(node);
    const thumbs = new Thumbs((verdict) => {
      this.state.views[place].episode.verdict = verdict;
      this.drawHead(place);
      this.drawTable();
    });
    return { node, head, graph, thumbs };
  }

  /**
   * @param {number} from
   * @param {Place} at
   * @param {boolean} fitted
   */
  moveAll(from, at, fitted) {
    this.sides.forEach((side, place) => place !== from && side.graph.follow(at, fitted));
  }

  /** @param {number} place */
  drawHead(place) {
    const { episode, totals } = this.state.views[place];
    const reference = place === this.state.reference;
    const dot = el("i.compare-query-dot");
    dot.style.background = `var(--podium-series-${place + 1})`;
    const line = el(
      "div.compare-query-title", {}, dot, el("h3", { title: episode.orchestrator }, this.page.label(episode.orchestrator)), outcomeChip(episode),
    );
    const facts = el("div.compare-query-facts", {}, answer(episode), ...agreement(episode), ...(episode.verdict ? [verdictChip(episode.verdict)] : []), ...this.sides[place].thumbs.show(episode));
    const figures = el("div.compare-query-figures");
    for (const [name, value] of [["Time", seconds(totals.wall_s)], ["Steps", describeSteps(totals.counts)], ["Tokens", count(totals.tokens_in + totals.tokens_out)], ["Cost", dollars(totals.cost)]]) {
      figures.append(el("span", {}, `${name} `, el("b", {}, String(value))));
    }
    const foot = el("div.compare-query-foot");
    const links = el("span.compare-query-links");
    if (reference) foot.append(el("span.compare-graph-chip.compare-query-reference", {}, "reference"));
    else {
      const against = el("button.podium-link", { type: "button" }, "Make it the reference");
      against.addEventListener("click", () => this.compareWith(place));
      foot.append(differenceChips(this.state.diffs[place]));
      links.append(against);
    }
    links.append(el("a.podium-link", { href: `/?episode=${encodeURIComponent(episode.id)}` }, "Open in Run"));
    foot.append(links);
    this.sides[place].head.replaceChildren(line, facts, figures, foot);
    this.sides[place].node.dataset.state = episode.state;
  }

  drawBelow() {
    this.tableBox = el("div");
    const lists = el("div.compare-query-lists");
    this.state.diffs.forEach((diff, place) => diff && lists.append(this.differences(diff, place)));
    this.below.replaceChildren(this.tableBox, lists, this.steps.root, this.exports());
    this.drawTable();
  }

  drawTable() {
    const rows = this.state.views.map((view, place) => ({ ...view, place }));
    /** @type {import("./figure.js").Column<EpisodeView & { place: number }>[]} */
    const columns = [
      {
        label: "Orchestrator", text: (row) => row.episode.orchestrator,
        node: (row) => nameSide(row.place, this.page.label(row.episode.orchestrator)),
      },
      {
        label: "Answer", text: (row) => row.episode.answer ?? "",
        node: (row) => el("span.compare-query-answer-cell", {}, row.episode.answer ?? "–"),
      },
      { label: "Correct", text: (row) => (row.episode.verdict ? (row.episode.verdict.correct ? "yes" : "no") : "not known") },
      { label: "Time", number: true, text: (row) => seconds(row.totals.wall_s), csv: [["wall_s", (row) => row.totals.wall_s]] },
      {
        label: "Speed-up", number: true, text: (row) => (row.totals.speedup ? `${row.totals.speedup.toFixed(2)}×` : "–"),
        csv: [["speedup", (row) => row.totals.speedup]], title: "Serial time over wall time",
      },
      { label: "Rounds", number: true, text: (row) => String(row.totals.rounds), csv: [["rounds", (row) => row.totals.rounds]] },
      {
        label: "Steps", number: true, text: (row) => describeSteps(row.totals.counts),
        csv: [["steps", (row) => row.totals.counts.steps], ["other_tries", (row) => row.totals.counts.tries]],
      },
      {
        label: "Width", number: true, text: (row) => String(row.totals.width), csv: [["width", (row) => row.totals.width]],
        title: "Most steps that could run at once",
      },
      {
        label: "Tokens", number: true, text: (row) => count(row.totals.tokens_in + row.totals.tokens_out),
        csv: [["tokens_in", (row) => row.totals.tokens_in], ["tokens_out", (row) => row.totals.tokens_out]],
      },
      { label: "Cost", number: true, text: (row) => dollars(row.totals.cost), csv: [["cost_usd", (row) => row.totals.cost]] },
    ];
    this.tableBox.replaceChildren(table({ name: "query", title: "Answers and figures", columns, rows, key: (row) => row.episode.id }));
  }

  /**
   * What one graph does otherwise, as sentences; each opens its step.
   * @param {import("../types").GraphDiffDocument} diff
   * @param {number} place
   */
  differences(diff, place) {
    const name = this.page.label(this.state.views[place].episode.orchestrator);
    const reference = this.page.label(this.state.views[this.state.reference].episode.orchestrator);
    const title = el("div.compare-figure-title", {}, el("h3", {}, name), el("p", {}, `against ${reference}`));
    const head = el("header.compare-figure-head", {}, title);
    const list = el("ol.compare-query-entries");
    const differing = diff.entries.filter((entry) => !entry.what.includes("same"));
    for (const entry of differing) list.append(this.entry(entry, place));
    const same = diff.entries.length - differing.length;
    const root = el(
      "section.compare-figure.compare-query-list", { "aria-label": `${name} against the reference`, "data-diff": place }, head,
      differing.length ? list : el("p.train-mute", {}, same ? "The same graph: every step, place and access list." : "Neither has steps."),
    );
    if (differing.length && same) root.append(el("p.train-mute", {}, `${same} ${same === 1 ? "step is" : "steps are"} the same.`));
    return root;
  }

  /**
   * @param {import("../types").DiffEntry} entry
   * @param {number} place
   */
  entry(entry, place) {
    const words = el("span");
    entry.says.forEach((sentence, number) => words.append(...(number ? [el("br")] : []), `${sentence}.`));
    const button = el(
      "button.compare-query-entry", { type: "button", "data-differs": entry.what[0], "data-slot": entry.slot },
      el(
        "i", { title: entry.what.map((kind) => DIFFERENCES[kind][0]).join(", ") }, entry.what.map((kind) => DIFFERENCES[kind][1]).join(""),
      ),
      words,
    );
    button.addEventListener("click", () => (entry.right ? this.select(place, entry.right) : this.select(this.state.reference, entry.left)));
    return el("li", {}, button);
  }

  exports() {
    const root = el("div.compare-query-exports");
    this.state.views.forEach((view, place) => {
      const name = `graph-${place + 1}`;
      const figure = new Figure({
        name, title: `Graph of ${this.page.label(view.episode.orchestrator)}`, draw: () => this.sides[place].graph.picture(),
        data: () => this.stepData(place), show: el("span.podium-offscreen", {}, "The graph above"),
      });
      root.append(figure.root);
    });
    return root;
  }

  /** @param {number} place */
  stepData(place) {
    const { graph } = this.state.views[place];
    const marks = this.state.diffs[place]?.marks || {};
    return {
      columns: ["step", "round", "worker", "access", "status", "latency_s", "against_reference", "instruction"],
      rows: graph.nodes.map((node) => [
        node.id, node.round, node.worker, node.access.join(" "), node.status, node.latency_s, (marks[node.id] || []).join(" "),
        node.instruction,
      ]),
    };
  }

  // Selection: the same step in every graph

  /**
   * @param {number} place
   * @param {number | null} step
   */
  select(place, step) {
    const slot = step ? this.state.slots[place][step] : null;
    const steps = this.state.slots.map((slots) => Number(Object.keys(slots).find((id) => slots[id] === slot)) || null);
    this.sides.forEach((side, number) => side.graph.select(slot ? steps[number] : null));
    for (const button of this.below.querySelectorAll(".compare-query-entry"))
      button.setAttribute("aria-pressed", String(Number(button.dataset.slot) === slot));
    if (slot) this.steps.show(this.state.views.map((view, number) => ({
      episode: view.episode.id, name: this.page.label(view.episode.orchestrator), step: steps[number], place: number,
    })));
    else this.steps.clear();
  }

  /** @param {number} place */
  open_(place) {
    location.href = `/?${query({ episode: this.state.views[place].episode.id })}`;
  }
}

/**
 * @param {number} place
 * @param {string} label
 */
function nameSide(place, label) {
  const dot = el("i.compare-query-dot");
  dot.style.background = `var(--podium-series-${place + 1})`;
  return el("span.compare-query-named", {}, dot, label);
}

/** @param {import("../types").EpisodeHead} episode */
function answer(episode) {
  if (episode.answer !== null) return el("output.compare-query-answer", { title: episode.answer }, episode.answer);
  return el("span.train-mute", {}, episode.state === "running" ? "no answer yet" : episode.reason || "no answer");
}

/** How many of the drawn plans came to the answer. @param {import("../types").EpisodeHead} episode */
function agreement({ agreement: plans }) {
  return plans ? [el("span.compare-query-agreement", { "data-unsure": String(plans.unsure), "data-testid": "agreement" }, plans.sentence)] : [];
}

/**
 * @param {string} label
 * @param {string[][]} choices
 * @param {string} value
 */
function chooser(label, choices, value) {
  const select = el("select.page-select", { "aria-label": label });
  for (const [name, words] of choices) select.append(el("option", { value: name }, words));
  select.value = value;
  return select;
}

/**
 * @param {string} words
 * @param {HTMLElement} input
 */
function labelField(words, input) {
  return el("label.compare-query-field", {}, el("span", {}, words), input);
}
