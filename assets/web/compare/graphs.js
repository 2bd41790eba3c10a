// Graphs side by side: the Run page's graph with marks of what differs from the reference. Coordinates come from the
// server, the same step at the same place in every graph; panning or zooming one moves all.

import { el, svg } from "../lib/dom.js";
import { canvas, text } from "./charts.js";
import { Graph } from "../run/graph.js";

/** @typedef {import("../run/graph_frame.js").Place} Place */
/** @typedef {import("../types").DiffEntry["what"][number]} Mark */

const NARROW = 760; // pixels of the window below which a graph is a list

/** kind of difference -> [word, sign]; the order is that of the legend
 * @type {Record<string, [string, string]>} */
export const DIFFERENCES = {
  same: ["same", "="],
  worker: ["other worker", "⇄"],
  arguments: ["other arguments", "≠"],
  access: ["other access", "◧"],
  moved: ["moved", "→"],
  added: ["only here", "+"],
  removed: ["not here", "−"],
};

export class SideGraph extends Graph {
  /**
   * `onMove(at)` hears where this graph was panned or zoomed to.
   * @param {(step: number | null) => void} onSelect
   * @param {(round: number) => void} onTurn
   * @param {(at: Place, fitted: boolean) => void} onMove
   */
  constructor(onSelect, onTurn, onMove) {
    super(onSelect, onTurn);
    this.frame.onMove = onMove;
  }

  /** @param {"list" | "graph"} name */
  setView(name) {
    super.setView(name === "list" && innerWidth >= NARROW && !this.pickedView ? "graph" : name);
  }

  /** @param {string} name */
  act(name) {
    this.pickedView = name === "view";
    super.act(name);
    this.pickedView = false;
  }

  /**
   * Go where another graph went.
   * @param {Place | null} at
   * @param {boolean} fitted
   */
  follow(at, fitted) {
    this.frame.follow(at, fitted);
  }

  /**
   * Say on every step in what it differs from the reference; `diff` is null for the reference itself.
   * @param {import("../types").GraphDiffDocument|null} diff
   */
  mark(diff) {
    this.diff = diff;
    for (const entries of [this.cards, this.items]) for (const [id, entry] of entries) badge(entry.node, diff ? diff.marks[id] : null);
    this.world.querySelectorAll(".run-graph-ghost").forEach((node) => node.remove());
    this.list.querySelectorAll(".compare-graph-gone").forEach((node) => node.remove());
    if (!diff) return;
    for (const ghost of diff.ghosts) {
      const card = el("div.run-graph-ghost", { "data-differs": "removed" });
      const { node_width: width, node_height: height } = this.view.graph;
      card.style.cssText = `left:${ghost.x}px;top:${ghost.y}px;width:${width}px;height:${height}px`;
      card.append(el("b", {}, `− ${ghost.worker}`), el("span", {}, `not here (step ${ghost.id} of the reference)`));
      this.world.append(card);
      this.list.append(el("p.compare-graph-gone", {}, `− Step ${ghost.id} of the reference (${ghost.worker}) is not here.`));
    }
  }

  /** The graph with its marks as a picture, for exports. */
  picture() {
    const { graph, episode } = this.view;
    const root = canvas(Math.max(graph.width, 240), Math.max(graph.height, 60), episode.orchestrator);
    for (const edge of graph.edges)
      root.append(svg("path", { d: edge.path, class: edge.used ? "compare-graph-edge" : "compare-graph-edge compare-graph-granted" }));
    for (const d of graph.answer?.paths || []) root.append(svg("path", { d, class: "compare-graph-edge" }));
    for (const lane of graph.lanes) root.append(text(lane.label, lane.x + 14, lane.y + 18, "compare-chart-label"));
    for (const node of graph.nodes)
      root.append(...box(node, graph, this.diff?.marks[node.id], `${node.id} · ${node.worker}`, node.instruction));
    for (const ghost of this.diff?.ghosts || []) root.append(...box(ghost, graph, ["removed"], `− ${ghost.worker}`, "not here"));
    if (graph.answer) root.append(...box(graph.answer, graph, null, "Answer", episode.answer ?? "not yet"));
    return root;
  }
}

/**
 * @param {{ x: number, y: number }} place
 * @param {import("../types").Graph} graph
 * @param {Mark[] | null} marks
 * @param {string} title
 * @param {string} words
 */
function box(place, { node_width: width, node_height: height }, marks, title, words) {
  const differs = marks ? marks[0] : "none";
  const rect = svg("rect", { x: place.x, y: place.y, width, height, rx: 11, class: "compare-graph-box", "data-differs": differs });
  const label = marks ? message(marks) : "";
  return [
    rect, text(short(title, 24), place.x + 14, place.y + 22, "compare-graph-title"),
    text(short(String(words), 28), place.x + 14, place.y + 44, "compare-chart-value"),
    text(label, place.x + 14, place.y + 66, "compare-graph-told"),
  ];
}

/**
 * @param {string} words
 * @param {number} most
 */
function short(words, most) {
  return words.length > most ? `${words.slice(0, most - 1)}…` : words;
}

/**
 * "other worker, moved"
 * @param {Mark[]} kinds
 */
function message(kinds) {
  return kinds.map((kind) => DIFFERENCES[kind][0]).join(", ");
}

/**
 * @param {HTMLElement} card
 * @param {Mark[] | null} kinds
 */
function badge(card, kinds) {
  card.querySelector(".compare-graph-badge")?.remove();
  const label = (card.getAttribute("aria-label") || "").replace(/ Compared with the reference: .*$/, "");
  if (!kinds) {
    delete card.dataset.differs;
    card.setAttribute("aria-label", label);
    return;
  }
  card.dataset.differs = kinds[0];
  const words = message(kinds);
  const badge =
    el("span.compare-graph-badge", { title: words }, el("i", {}, kinds.map((kind) => DIFFERENCES[kind][1]).join("")), el("b", {}, words));
  card.append(badge);
  card.setAttribute("aria-label", `${label} Compared with the reference: ${words}.`);
}

/** What the marks mean, with colour, sign and word. */
export function differencesLegend() {
  const root = el("div.compare-graph-legend", { role: "note", "aria-label": "What the marks mean" });
  for (const [kind, [word, sign]] of Object.entries(DIFFERENCES)) {
    root.append(el("span", { "data-differs": kind }, el("i", {}, sign), word));
  }
  return root;
}

/**
 * How many steps are the same and how many differ in what, as chips.
 * @param {import("../types").GraphDiffDocument} diff
 */
export function differenceChips(diff) {
  const root = el("div.compare-graph-chips");
  if (diff.empty) {
    root.append(el("span.compare-graph-chip", { "data-differs": "same" }, "the same graph"));
    return root;
  }
  for (const [kind, [word, sign]] of Object.entries(DIFFERENCES)) {
    if (!diff.counts[kind]) continue;
    const chip = el(
      "span.compare-graph-chip", { "data-differs": kind, "data-count": diff.counts[kind] }, el("i", {}, sign),
      `${diff.counts[kind]} ${word}`,
    );
    root.append(chip);
  }
  return root;
}
