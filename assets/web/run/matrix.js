// The access matrix: rows are steps (who reads), columns are outputs (whose). Of a long run only the part that is seen
// stands in the document: a thousand steps have half a million pairs.

import { el } from "../lib/dom.js";

const WORDS = { used: "granted and used", granted: "granted, not used", none: "not granted" };
const WHOLE = 60; // steps that are drawn whole
const MARGIN = 12; // rows and columns that are drawn on each side of what is seen

/** @typedef {{ top: number, bottom: number, left: number, right: number }} Part rows and columns by index; ends excluded */

export class Matrix {
  /** @param {(step: number) => void} onSelect */
  constructor(onSelect) {
    this.onSelect = onSelect;
    this.root = el("section.run-matrix", { "aria-label": "Access matrix" });
    this.scroll = el("div.run-matrix-scroll", { tabindex: "-1" });
    this.scroll.addEventListener("scroll", () => requestAnimationFrame(() => this.drawSeen()));
    new ResizeObserver(() => this.drawSeen()).observe(this.scroll);
    this.key = el("div.run-matrix-key");
    for (const [state, text] of Object.entries(WORDS)) {
      this.key.append(el("span", {}, el("i", { class: `run-matrix-${state}` }), text));
    }
    this.root.append(this.scroll, this.key);
    this.clear();
  }

  clear() {
    /** @type {string} */
    this.shape = "";
    /** @type {import("../types").StepNode[]} */
    this.nodes = [];
    this.part = null;
    this.scroll.replaceChildren();
  }

  /** @param {import("../types").EpisodeView} view */
  draw(view) {
    const nodes = [...view.graph.nodes].sort((a, b) => a.id - b.id);
    const shape = JSON.stringify(nodes.map((node) => [node.id, node.access, node.used]));
    if (shape === this.shape) return;
    this.shape = shape;
    this.nodes = nodes;
    this.places = new Map(nodes.map((node, place) => [node.id, place]));
    this.isLong = nodes.length > WHOLE;
    this.root.classList.toggle("run-matrix-small", nodes.length > 24);
    this.root.classList.toggle("run-matrix-long", this.isLong);
    this.cell = null;
    this.key.hidden = !nodes.length;
    if (!nodes.length) {
      this.scroll.replaceChildren(el("p", {}, "No steps"));
      return;
    }
    const end = this.isLong ? 1 : nodes.length; // of a long run one cell first, to measure it
    this.drawPart({ top: 0, bottom: end, left: 0, right: end });
    this.drawSeen();
  }

  /** How large a cell is, in pixels, and how much the headings take. */
  measure() {
    const [row, cell] = [this.scroll.querySelector("tbody tr"), this.scroll.querySelector("tbody td")];
    const spacing = parseFloat(getComputedStyle(this.table).borderSpacing);
    this.cell = { width: cell.getBoundingClientRect().width + spacing, height: row.getBoundingClientRect().height + spacing };
    const box = this.table.getBoundingClientRect();
    this.heading = { width: box.width - this.cell.width, height: box.height - this.cell.height };
  }

  /** Draw what is seen of a long run, unless it stands there already. */
  drawSeen() {
    if (!this.isLong || !this.nodes.length || !this.scroll.clientHeight) return;
    const measured = Boolean(this.cell);
    if (!measured) this.measure();
    const seen = this.findSeen();
    if (measured && contains(this.part, seen)) return;
    const last = this.nodes.length;
    this.drawPart({
      top: Math.max(0, seen.top - MARGIN), bottom: Math.min(last, seen.bottom + MARGIN),
      left: Math.max(0, seen.left - MARGIN), right: Math.min(last, seen.right + MARGIN),
    });
  }

  /** @returns {Part} */
  findSeen() {
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.scroll;
    const last = this.nodes.length;
    return {
      top: Math.min(last, Math.floor(scrollTop / this.cell.height)),
      bottom: Math.min(last, Math.ceil((scrollTop + clientHeight) / this.cell.height)),
      left: Math.min(last, Math.floor(scrollLeft / this.cell.width)),
      right: Math.min(last, Math.ceil((scrollLeft + clientWidth) / this.cell.width)),
    };
  }

  /** Draw a part in its place. Readers of the screen hear how large the whole is; the focus stays on its step.
   * @param {Part} part */
  drawPart(part) {
    this.part = part;
    const focused = /** @type {HTMLElement} */ (this.scroll.contains(document.activeElement) ? document.activeElement.closest("[data-row]") : null);
    const columns = this.nodes.slice(part.left, part.right);
    this.table = el("table", this.sizes(), el("caption.podium-offscreen", {}, "Which step may see which step's output"), this.header(columns), this.body(columns));
    if (this.cell) this.scroll.replaceChildren(this.wrap(part));
    else this.scroll.replaceChildren(this.table);
    this.select(this.step);
    if (!focused) return;
    const button = /** @type {HTMLElement} */ (this.scroll.querySelector(`[data-row="${focused.dataset.row}"] button`));
    (button || this.scroll).focus({ preventScroll: true });
  }

  sizes() {
    const whole = String(this.nodes.length + 1);
    return this.isLong ? { "aria-rowcount": whole, "aria-colcount": whole } : {};
  }

  /**
   * The table where its part belongs, in a box of the whole's size.
   * @param {Part} part
   */
  wrap({ top, left }) {
    const count = this.nodes.length;
    const box = el("div.run-matrix-whole");
    box.style.width = `${this.heading.width + count * this.cell.width}px`;
    box.style.height = `${this.heading.height + count * this.cell.height}px`;
    this.table.style.left = `${left * this.cell.width}px`;
    this.table.style.top = `${top * this.cell.height}px`;
    box.append(this.table);
    return box;
  }

  /** @param {import("../types").StepNode[]} columns */
  header(columns) {
    const row = el("tr", this.isLong ? { "aria-rowindex": "1" } : {}, el("td.run-matrix-corner", {}, "reads ↓  output of →"));
    for (const node of columns) row.append(el("th", { scope: "col", title: node.worker, ...this.index("col", node) }, node.id));
    return el("thead", {}, row);
  }

  /** @param {import("../types").StepNode[]} columns */
  body(columns) {
    const body = el("tbody");
    for (const node of this.nodes.slice(this.part.top, this.part.bottom)) {
      const button = el("button", { type: "button", title: node.worker }, `${node.id} ${node.worker}`);
      button.addEventListener("click", () => this.onSelect(node.id));
      const head = el("th", { scope: "row" }, button);
      const [access, used] = [new Set(node.access), new Set(node.used)];
      const cells = columns.map((other) => this.fillCell(node, other, access, used));
      const row = el("tr", { "data-row": node.id, ...this.index("row", node) }, head, ...cells);
      row.addEventListener("click", () => this.onSelect(node.id));
      body.append(row);
    }
    return body;
  }

  /**
   * @param {import("../types").StepNode} node
   * @param {import("../types").StepNode} other
   * @param {Set<number>} access
   * @param {Set<number>} used
   */
  fillCell(node, other, access, used) {
    const index = this.index("col", other);
    if (other.id >= node.id) return el("td.run-matrix-never", index);
    const state = !access.has(other.id) ? "none" : used.has(other.id) ? "used" : "granted";
    const text = `Step ${node.id}, output of step ${other.id}: ${WORDS[state]}`;
    return el("td", index, el("i", { class: `run-matrix-${state}`, role: "img", "aria-label": text, title: text }));
  }

  /**
   * Where a step stands in the whole: the headings are the first row and column.
   * @param {"row"|"col"} way
   * @param {import("../types").StepNode} node
   */
  index(way, node) {
    return this.isLong ? { [`aria-${way}index`]: String(this.places.get(node.id) + 2) } : {};
  }

  /** @param {number | null} step */
  select(step) {
    this.step = step;
    for (const row of this.scroll.querySelectorAll("tbody tr")) {
      row.setAttribute("aria-selected", String(Number(row.dataset.row) === step));
    }
  }
}

/**
 * @param {Part} part
 * @param {Part} seen
 */
function contains(part, seen) {
  return seen.top >= part.top && seen.bottom <= part.bottom && seen.left >= part.left && seen.right <= part.right;
}
