// The access matrix: rows are steps (who reads), columns are outputs (whose).

import { el } from "../lib/dom.js";

const WORDS = { used: "granted and used", granted: "granted, not used", none: "not granted" };

export class Matrix {
  constructor(onSelect) {
    this.onSelect = onSelect;
    this.root = el("section.run-matrix", { "aria-label": "Access matrix" });
    this.scroll = el("div.run-matrix-scroll");
    const key = el("div.run-matrix-key");
    for (const [state, text] of Object.entries(WORDS)) {
      key.append(el("span", {}, el("i", { class: `run-matrix-${state}` }), text));
    }
    this.root.append(this.scroll, key);
    this.shape = "";
  }

  clear() {
    this.shape = "";
    this.scroll.replaceChildren();
  }

  /** @param {import("../types").EpisodeView} view */
  draw(view) {
    const nodes = [...view.graph.nodes].sort((a, b) => a.id - b.id);
    const shape = JSON.stringify(nodes.map((node) => [node.id, node.access, node.used]));
    if (shape === this.shape) return;
    this.shape = shape;
    this.root.classList.toggle("run-matrix-small", nodes.length > 24);
    const table =
      el("table", {}, el("caption.podium-offscreen", {}, "Which step may see which step's output"), header(nodes), this.body(nodes));
    this.scroll.replaceChildren(table);
  }

  /** @param {import("../types").StepNode[]} nodes */
  body(nodes) {
    const body = el("tbody");
    for (const node of nodes) {
      const button = el("button", { type: "button", title: node.worker }, `${node.id} ${node.worker}`);
      button.addEventListener("click", () => this.onSelect(node.id));
      const head = el("th", { scope: "row" }, button);
      const row = el("tr", { "data-row": node.id }, head, ...nodes.map((other) => cell(node, other)));
      row.addEventListener("click", () => this.onSelect(node.id));
      body.append(row);
    }
    return body;
  }

  select(step) {
    for (const row of this.scroll.querySelectorAll("tbody tr")) {
      row.setAttribute("aria-selected", String(Number(row.dataset.row) === step));
    }
  }
}

/** @param {import("../types").StepNode[]} nodes */
function header(nodes) {
  const row = el("tr", {}, el("td.run-matrix-corner", {}, "reads ↓  output of →"));
  for (const node of nodes) row.append(el("th", { scope: "col", title: node.worker }, node.id));
  return el("thead", {}, row);
}

/**
 * @param {import("../types").StepNode} node
 * @param {import("../types").StepNode} other
 */
function cell(node, other) {
  if (other.id >= node.id) return el("td.run-matrix-never");
  const state = !node.access.includes(other.id) ? "none" : node.used.includes(other.id) ? "used" : "granted";
  const text = `Step ${node.id}, output of step ${other.id}: ${WORDS[state]}`;
  return el("td", {}, el("i", { class: `run-matrix-${state}`, role: "img", "aria-label": text, title: text }));
}
