// The orchestration graph: cards as buttons, access-list entries as SVG edges. Coordinates come from the
// server; this file draws and selects. On narrow screens the same steps are a list. Every step has its button, but of a
// long run only buttons that are seen have contents.

import { el, svg } from "../lib/dom.js";
import { emptyCard, fillCard, makeCard, paintCard } from "./graph_card.js";
import { Frame } from "./graph_frame.js";

/** @typedef {import("./graph_card.js").Card} Card */
/** @typedef {import("../types").StepNode} StepNode */
/** @typedef {{ from: number, to: number | "answer", node: SVGPathElement }} EdgeLine */

const COLOURS = [1, 3, 4, 8, 5, 7]; // of workers: --podium-series-N, without those that look like a failure
const LONG = 300; // steps beyond which only what is seen has contents
const ROOMY = 80; // pixels of a card below which it has no room for the instruction
const READABLE = 150; // cards in the frame beyond which nobody can read one
const DOTS = 0.1; // scale of a long run below which edges cannot be seen

export class Graph {
  /**
   * @param {(step: number | null) => void} onSelect
   * @param {(round: number) => void} onTurn
   * @param {() => void} onFinal shows how a finalizer wrote the answer
   */
  constructor(onSelect, onTurn, onFinal = () => {}) {
    this.onSelect = onSelect;
    this.onTurn = onTurn;
    this.onFinal = onFinal;
    /** @type {Map<number, Card>} */
    this.cards = new Map();
    /** @type {Map<number, Card>} */
    this.items = new Map();
    this.lit = new Set(); // steps
    this.view = null;
    this.selected = null;
    this.build();
    this.listen();
  }

  build() {
    this.root = el("div.run-graph", { role: "group", "aria-label": "Orchestration graph" });
    this.world = el("div.run-graph-world");
    this.edges = svg("svg", { class: "run-graph-edges", "aria-hidden": "true" });
    this.veil = el("div.run-graph-veil");
    this.litEdges = svg("svg", { class: "run-graph-edges run-graph-edges-lit", "aria-hidden": "true" });
    this.world.append(this.edges);
    this.list = el("div.run-graph-list");
    this.legend = el("div.run-graph-legend", { "aria-hidden": "true" });
    for (const [name, label] of [["agent", "Agent"], ["tool", "Tool"], ["recursion", "Recursion"]]) {
      this.legend.append(el("span", { class: `run-graph-role-${name}` }, el("i"), label));
    }
    const used = el("span", {}, el("u.run-graph-line-used"), "used");
    this.legend.append(used, el("span", {}, el("u.run-graph-line-granted"), "granted only"));
    this.bar = el("div.run-graph-bar");
    /** @type {Record<string, HTMLButtonElement>} */
    this.buttons = {};
    for (const [name, text, label] of [
      ["view", "List", "Show as list"],
      ["errors", "Errors", "Show only what failed"],
      ["out", "−", "Zoom out"],
      ["fit", "Fit", "Fit the graph into the frame"],
      ["in", "+", "Zoom in"],
    ]) {
      const button = el("button", { type: "button", "aria-label": label, "data-action": name }, text);
      this.buttons[name] = button;
      this.bar.append(button);
    }
    this.frame = new Frame(this.root, this.world);
    this.frame.onApply = () => requestAnimationFrame(() => this.fillSeen());
    this.seen = new IntersectionObserver((changes) => this.fillListed(changes), { root: this.list, rootMargin: "200px" });
    this.live = el("div.podium-offscreen", { "aria-live": "polite" });
    this.failed = el("div.run-graph-failed");
    this.root.append(this.world, this.list, this.failed, this.legend, this.frame.minimap, this.bar, this.live);
    this.setView("graph");
  }

  /** Start over for another episode. */
  clear() {
    this.view = null;
    this.selected = null;
    this.frame.clear();
    for (const entry of this.cards.values()) entry.node.remove();
    this.cards.clear();
    this.items.clear();
    this.edges.replaceChildren();
    this.veil.remove();
    this.litEdges.remove();
    this.lit = new Set();
    this.list.replaceChildren();
    this.failed.replaceChildren();
    this.world.querySelectorAll(".run-graph-lane, .run-graph-answer").forEach((node) => node.remove());
  }

  /**
   * Take a whole view: place cards, draw edges, keep pan and selection.
   * @param {import("../types").EpisodeView} view
   */
  draw(view) {
    this.view = view;
    const graph = view.graph;
    this.isLong = graph.nodes.length > LONG;
    this.root.classList.toggle("run-graph-long", this.isLong);
    this.root.classList.toggle("run-graph-dense", graph.node_height < ROOMY);
    this.edges.setAttribute("width", String(graph.width));
    this.edges.setAttribute("height", String(graph.height));
    this.drawLanes(graph);
    this.drawCards(graph);
    this.drawEdges(graph);
    this.drawAnswer(graph.answer);
    this.drawList(graph);
    this.drawFailed(view);
    this.paint();
    this.frame.draw(graph);
  }

  /** @param {import("../types").Graph} graph */
  drawLanes(graph) {
    this.world.querySelectorAll(".run-graph-lane").forEach((node) => node.remove());
    for (const lane of graph.lanes) {
      const column = el("div.run-graph-lane");
      column.classList.toggle("run-graph-narrow", lane.width < 2 * graph.node_width);
      column.style.cssText = `left:${lane.x}px;top:${lane.y}px;width:${lane.width}px;height:${lane.height}px`;
      const head = el("button.run-graph-lane-head", {
        type: "button",
        tabindex: "-1",
        "aria-label": `Round ${lane.round}: what the orchestrator wrote`,
      }, el("b", {}, lane.label), el("span", {}, lane.note));
      head.addEventListener("click", () => this.onTurn(lane.round));
      column.append(head);
      this.world.prepend(column);
    }
  }

  /**
   * Rounds whose output was no turn have no steps to show: say what was wrong, once for rounds that failed alike.
   * @param {import("../types").EpisodeView} view
   */
  drawFailed(view) {
    this.failed.replaceChildren();
    const alone = !view.graph.nodes.length;
    this.failed.classList.toggle("run-graph-alone", alone);
    if (alone) this.root.append(this.failed);
    else this.root.after(this.failed); // below the graph: on it they would cover steps
    for (const { error, rounds } of alike(view.turns)) {
      const chip = el("button", { type: "button" }, el("b", {}, `${spoken(rounds)}: no valid turn`), el("span", {}, error));
      chip.addEventListener("click", () => this.onTurn(rounds[0]));
      this.failed.append(chip);
    }
  }

  /** @param {import("../types").Graph} graph */
  drawCards(graph) {
    const gone = new Set(this.cards.keys());
    const workers = [...new Set(graph.nodes.map((node) => node.worker))];
    for (const node of graph.nodes) {
      let entry = this.cards.get(node.id);
      if (!entry) {
        entry = makeCard(node);
        entry.node.tabIndex = this.cards.size ? -1 : 0;
        this.cards.set(node.id, entry);
        this.world.append(entry.node);
      }
      if (!this.isLong) fillCard(entry);
      gone.delete(node.id);
      const width = graph.node_width;
      const colour = `--worker:var(--podium-series-${COLOURS[workers.indexOf(node.worker) % COLOURS.length]})`;
      entry.node.style.cssText = `left:${node.x}px;top:${node.y}px;width:${width}px;height:${graph.node_height}px;--most:${entry.most}px;${colour}`;
    }
    for (const id of gone) {
      this.cards.get(id).node.remove();
      this.cards.delete(id);
    }
  }

  /** @param {import("../types").Graph} graph */
  drawEdges(graph) {
    /** @type {EdgeLine[]} */
    this.paths = [];
    this.edges.replaceChildren();
    const layers = new Map(graph.nodes.map((node) => [node.id, node.layer]));
    for (const edge of graph.edges) {
      const isFar = layers.get(edge.to) - layers.get(edge.from) > 1; // it runs through columns that it has nothing to do with
      const path = svg("path", { d: edge.path, class: `${edge.used ? "run-graph-used" : "run-graph-granted"}${isFar ? " run-graph-through" : ""}` });
      this.edges.append(path);
      this.paths.push({ ...edge, node: path });
    }
    for (const [index, d] of (graph.answer?.paths || []).entries()) {
      const path = svg("path", { d, class: "run-graph-used run-graph-to-answer" });
      this.edges.append(path);
      this.paths.push({ from: graph.answer.from[index], to: "answer", node: path });
    }
  }

  /** @param {import("../types").AnswerNode|null} place */
  drawAnswer(place) {
    this.world.querySelector(".run-graph-answer")?.remove();
    if (!place) return;
    const { answer: text, final } = this.view.episode;
    const call = final?.worker ? final : null; // a worker's, with more to show
    const card = el(call ? "button.run-graph-answer" : "div.run-graph-answer", call ? { type: "button", title: call.sentence } : {});
    if (call) card.addEventListener("click", () => this.onFinal());
    card.style.cssText = `left:${place.x}px;top:${place.y}px;width:${place.width}px;height:${place.height}px`;
    card.append(el("b", {}, call?.state === "OK" ? `Final answer written by ${call.worker}` : "Answer"), el("span", {}, text ?? "not yet"));
    const verdict = this.view.episode.verdict;
    if (verdict) card.dataset.correct = String(verdict.correct);
    this.world.append(card);
  }

  /** Cards of a long run get contents while they are in the frame, and few enough there to be read. */
  fillSeen() {
    if (!this.isLong || !this.view) return;
    const { nodes, node_width: width, node_height: height } = this.view.graph;
    const { k, x, y } = this.frame.at;
    this.root.classList.toggle("run-graph-dots", k < DOTS);
    const [right, bottom] = [this.root.clientWidth, this.root.clientHeight];
    const seen = nodes.filter((node) =>
      (node.x + width) * k + x > 0 && node.x * k + x < right && (node.y + height) * k + y > 0 && node.y * k + y < bottom);
    const full = new Set(seen.length > READABLE ? [] : seen.map((node) => node.id));
    for (const [id, entry] of this.cards) (full.has(id) ? fillCard : emptyCard)(entry);
  }

  /** @param {IntersectionObserverEntry[]} changes */
  fillListed(changes) {
    for (const { target, isIntersecting } of changes) {
      const entry = this.items.get(Number(/** @type {HTMLElement} */ (target).dataset.id));
      if (entry?.node === target) (isIntersecting ? fillCard : emptyCard)(entry);
    }
  }

  /** @param {import("../types").Graph} graph */
  drawList(graph) {
    this.seen.disconnect();
    this.items.clear();
    this.list.replaceChildren();
    if (!graph.nodes.length) this.list.append(el("p", {}, "No steps"));
    let round = 0;
    for (const node of [...graph.nodes].sort((a, b) => a.id - b.id)) {
      if (node.round !== round) {
        round = node.round;
        this.list.append(el("h2", {}, graph.lanes.find((lane) => lane.round === round)?.label || `Round ${round}`));
      }
      const seen = node.access.length ? `Sees ${node.access.join(", ")}` : "Sees its own instruction only";
      const entry = makeCard(node, [el("div.run-graph-sees", {}, seen)]);
      if (this.isLong) this.seen.observe(entry.node);
      else fillCard(entry);
      this.list.append(entry.node);
      this.items.set(node.id, entry);
    }
  }

  paint() {
    const status = new Map();
    for (const node of this.view.graph.nodes) {
      status.set(node.id, node.status);
      const news = paintCard(this.cards.get(node.id), node);
      if (news && node.status !== "RUNNING") this.live.textContent = `Step ${node.id} ${node.worker}: ${news}`;
      paintCard(this.items.get(node.id), node);
    }
    for (const edge of this.paths) edge.node.classList.toggle("run-graph-flows", status.get(edge.to) === "RUNNING");
    this.select(this.selected);
  }

  /**
   * Light a step and exactly what it may see; null lights everything.
   * @param {number | null} id
   */
  select(id) {
    const node = this.view?.graph.nodes.find((candidate) => candidate.id === id);
    const before = this.selected;
    this.selected = node ? id : null;
    const changed = new Set(this.lit);
    this.lit = new Set(node ? [...node.access, id] : []);
    for (const key of this.lit) changed.add(key);
    for (const entries of [this.cards, this.items]) {
      for (const key of changed) entries.get(key)?.node.classList.toggle("run-graph-lit", this.lit.has(key));
      entries.get(before)?.node.setAttribute("aria-pressed", "false");
      entries.get(this.selected)?.node.setAttribute("aria-pressed", "true");
    }
    if (this.isLong) this.veilOthers();
    else this.dimOthers();
  }

  dimOthers() {
    this.root.classList.toggle("run-graph-selecting", this.selected !== null);
    for (const edge of this.paths || []) edge.node.classList.toggle("run-graph-lit", edge.to === this.selected);
  }

  /** What is not lit fades behind one veil: to fade a thousand cards takes a second. */
  veilOthers() {
    this.root.classList.remove("run-graph-selecting");
    const lit = this.paths.filter((edge) => edge.to === this.selected).map((edge) => /** @type {SVGPathElement} */ (edge.node.cloneNode()));
    for (const path of lit) path.classList.add("run-graph-lit");
    this.litEdges.replaceChildren(...lit);
    if (this.selected === null) this.veil.remove();
    else if (!this.veil.isConnected) this.world.append(this.veil, this.litEdges);
  }

  /** @param {"list" | "graph"} name */
  setView(name) {
    this.root.dataset.view = name;
    const other = name === "list" ? "Graph" : "List";
    this.buttons.view.textContent = other;
    this.buttons.view.setAttribute("aria-label", `Show as ${other.toLowerCase()}`);
    if (name === "list") this.root.style.height = "";
    if (name === "graph") this.frame.settle();
  }

  /** @param {string} name */
  act(name) {
    if (name === "view") this.setView(this.root.dataset.view === "list" ? "graph" : "list");
    if (name === "errors") {
      const on = this.root.classList.toggle("run-graph-errors");
      this.buttons.errors.setAttribute("aria-pressed", String(on));
    }
    if (name === "in") this.frame.zoom(1.25);
    if (name === "out") this.frame.zoom(0.8);
    if (name === "fit") this.frame.refit();
  }

  listen() {
    this.root.addEventListener("click", (event) => {
      const target = /** @type {Element} */ (event.target);
    const card = target.closest(".run-graph-card");
      const button = target.closest(".run-graph-bar button");
      if (card) this.onSelect(Number(card.dataset.id));
      else if (button) this.act(button.dataset.action);
      else if (!this.frame.moved && !target.closest(".run-graph-lane-head, .run-graph-failed, .run-graph-answer")) this.onSelect(null);
    });
    this.root.addEventListener("keydown", (event) => this.onKey(event));
    /** @type {boolean | null} */
    let narrow = null;
    new ResizeObserver(() => {
      const now = this.root.clientWidth > 0 && this.root.clientWidth < 560;
      if (now !== narrow && this.root.clientWidth) this.setView(now ? "list" : "graph");
      narrow = now;
      this.frame.settle();
    }).observe(this.root);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.key === "Escape") this.onSelect(null);
    else if (event.key === "+" || event.key === "=") this.act("in");
    else if (event.key === "-") this.act("out");
    else if (event.key === "0") this.act("fit");
    else this.moveFocus(event);
  }

  /** @param {KeyboardEvent} event */
  moveFocus(event) {
    const card = /** @type {HTMLElement} */ (event.target).closest(".run-graph-world .run-graph-card");
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (!card || !step) return;
    event.preventDefault();
    const from = this.view.graph.nodes.find((node) => node.id === Number(card.dataset.id));
    const to = nearest(from, this.view.graph.nodes, step);
    if (!to) return;
    card.tabIndex = -1;
    const target = this.cards.get(to.id).node;
    target.tabIndex = 0;
    target.focus({ preventScroll: true });
    this.frame.bringIntoFrame(target);
  }
}

/**
 * The next card in a direction: columns first for left and right, the same column for up and down.
 * @param {StepNode} from
 * @param {StepNode[]} nodes
 * @param {number[]} way
 */
function nearest(from, nodes, [dx, dy]) {
  let best = null;
  let least = Infinity;
  for (const node of nodes) {
    const x = node.x - from.x;
    const y = node.y - from.y;
    const ahead = dx ? Math.sign(x) === dx : Math.abs(x) < 5 && Math.sign(y) === dy;
    const distance = dx ? Math.abs(x) + 2 * Math.abs(y) : Math.abs(y);
    if (ahead && distance < least) [best, least] = [node, distance];
  }
  return best;
}

/**
 * Failed rounds, those in a row with one error together: [{error, rounds}].
 * @param {import("../types").TurnView[]} turns
 */
function alike(turns) {
  /** @type {{ error: string, rounds: number[] }[]} */
  const edges = [];
  for (const { round, error } of turns.filter((turn) => turn.error)) {
    const last = edges.at(-1);
    if (last?.error === error && last.rounds.at(-1) === round - 1) last.rounds.push(round);
    else edges.push({ error, rounds: [round] });
  }
  return edges;
}

/** @param {number[]} rounds */
function spoken(rounds) {
  if (rounds.length === 1) return `Round ${rounds[0]}`;
  return `Rounds ${rounds[0]} ${rounds.length > 2 ? "to" : "and"} ${rounds.at(-1)}`;
}
