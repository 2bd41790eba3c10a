// Which part of the graph is seen: it fits by itself until somebody pans or zooms, by wheel, pointer or two fingers.
// Of a large graph a small map shows where one is.

import { svg } from "../lib/dom.js";

/** @typedef {{ k: number, x: number, y: number }} Place */
/** @typedef {{ x: number, y: number, x0: number, y0: number }} Pointer */

const MINIMAP_FROM = 60; // steps
const SHORTEST = 250; // height of the frame in pixels: it follows the graph between these two
const TALLEST = 640;
const ABOVE = 300; // pixels of a screen that stand above the graph: the query, the answer
const TURN = 32; // room for edges that turn beside the graph
const BAR = 46; // room for legend and buttons below the graph

export class Frame {
  /**
   * `root` shows a part of `world`. `onMove(at, fitted)` hears where somebody has moved it.
   * @param {HTMLElement} root
   * @param {HTMLElement} world
   */
  constructor(root, world) {
    this.root = root;
    this.world = world;
    this.minimap = svg("svg", { class: "run-graph-minimap", "aria-hidden": "true" });
    this.moved = false; // whether the last press was a drag
    this.at = { k: 1, x: 0, y: 0 }; // how large, and by how many pixels from the frame's corner
    this.onMove = /** @type {(at: Place, fitted: boolean) => void} */ (() => {});
    this.onApply = () => {}; // hears that another part is seen
    this.clear();
    root.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    this.listenToPointers();
  }

  clear() {
    this.size = null;
    this.touched = false;
  }

  /**
   * Take the graph's size, in pixels. What somebody has chosen to look at stays.
   * @param {import("../types").Graph} graph
   */
  draw(graph) {
    this.size = graph;
    this.world.style.width = `${graph.width}px`;
    this.world.style.height = `${graph.height}px`;
    this.settle();
    this.drawMinimap(graph);
  }

  /** Fit, unless somebody has moved it. */
  settle() {
    if (!this.touched) this.fit();
  }

  /** @param {import("../types").Graph} graph */
  drawMinimap(graph) {
    const many = graph.nodes.length >= MINIMAP_FROM;
    this.minimap.classList.toggle("run-graph-shown", many);
    if (!many) return;
    this.minimap.setAttribute("viewBox", `0 0 ${graph.width} ${graph.height}`);
    const dots = graph.nodes.map((node) =>
      svg("rect", {
        x: node.x, y: node.y, width: graph.node_width, height: graph.node_height, "data-status": node.status,
      }),
    );
    this.seen = svg("rect", { class: "run-graph-frame" });
    this.minimap.replaceChildren(...dots, this.seen);
    this.apply();
  }

  apply() {
    const { k, x, y } = this.at;
    this.world.style.transform = `translate(${x}px,${y}px) scale(${k})`;
    this.root.style.setProperty("--k", String(k));
    this.root.classList.toggle("run-graph-far", k < 0.78);
    this.root.classList.toggle("run-graph-very-far", k < 0.3);
    this.root.dataset.zoom = k.toFixed(2);
    if (this.seen) {
      const box = this.root.getBoundingClientRect();
      for (const [name, value] of Object.entries({ x: -x / k, y: -y / k, width: box.width / k, height: box.height / k }))
        this.seen.setAttribute(name, String(value));
    }
    this.onApply();
  }

  fit() {
    if (!this.size) return;
    const box = this.root.getBoundingClientRect();
    const { width, height, lanes } = this.size;
    const turns = new Set(lanes.map((lane) => lane.y)).size > 1 ? TURN : 0; // of edges that lead to the next band
    if (!box.width || !width) return;
    const margin = 20;
    const tallest = Math.min(TALLEST, Math.max(380, innerHeight - ABOVE)); // the whole graph on one screen
    const wide = (box.width - 2 * margin) / (width + 2 * turns);
    const tall = (tallest - BAR - 2 * margin) / (height + 16);
    const k = Math.max(0.05, Math.min(1.1, wide, tall));
    const needed = (height + 16) * k + 2 * margin + BAR;
    this.root.style.height = this.root.dataset.view === "list" ? "" : `${Math.max(SHORTEST, needed)}px`;
    const frame = this.root.clientHeight;
    this.at = { k, x: (box.width - width * k) / 2, y: Math.max(margin / 2, (frame - BAR - (height + 16) * k) / 2) };
    this.apply();
  }

  /**
   * @param {number} factor
   * @param {number} [px]
   * @param {number} [py]
   */
  zoom(factor, px, py) {
    const box = this.root.getBoundingClientRect();
    const x = px ?? box.width / 2;
    const y = py ?? box.height / 2;
    const k = Math.min(2.5, Math.max(0.05, this.at.k * factor));
    this.at = { k, x: x - ((x - this.at.x) * k) / this.at.k, y: y - ((y - this.at.y) * k) / this.at.k };
    this.touched = true;
    this.apply();
    this.onMove(this.at, false);
  }

  /** Go back to the whole graph, as somebody has asked. */
  refit() {
    this.touched = false;
    this.fit();
    this.onMove(this.at, true);
  }

  /**
   * Go where another frame went.
   * @param {Place} at
   * @param {boolean} fitted
   */
  follow(at, fitted) {
    this.touched = !fitted;
    if (fitted) return this.fit();
    this.at = { ...at };
    return this.apply();
  }

  listenToPointers() {
    /** @type {Map<number, Pointer>} */
    const pointers = new Map();
    this.root.addEventListener("pointerdown", (event) => {
      this.moved = false;
      const target = /** @type {Element} */ (event.target);
      if (this.root.dataset.view === "list" || target.closest(".run-graph-bar, .run-graph-failed")) return;
      pointers.set(event.pointerId, { x: event.clientX, y: event.clientY, x0: event.clientX, y0: event.clientY });
    });
    this.root.addEventListener("pointermove", (event) => {
      const old = pointers.get(event.pointerId);
      if (!old) return;
      const now = { ...old, x: event.clientX, y: event.clientY };
      pointers.set(event.pointerId, now);
      if (pointers.size === 2) this.pinch(old, now, [...pointers.entries()].find(([id]) => id !== event.pointerId)[1]);
      else this.pan(old, now, event.pointerId);
    });
    /** @param {PointerEvent} event */
    const forget = (event) => pointers.delete(event.pointerId);
    this.root.addEventListener("pointerup", forget);
    this.root.addEventListener("pointercancel", forget);
  }

  /**
   * @param {Pointer} old
   * @param {Pointer} now
   * @param {number} pointer
   */
  pan(old, now, pointer) {
    if (!this.moved && Math.hypot(now.x - now.x0, now.y - now.y0) < 4) return;
    if (!this.moved) this.root.setPointerCapture(pointer);
    this.moved = true;
    this.touched = true;
    this.at.x += now.x - old.x;
    this.at.y += now.y - old.y;
    this.apply();
    this.onMove(this.at, false);
  }

  /**
   * @param {Pointer} old
   * @param {Pointer} now
   * @param {Pointer} other
   */
  pinch(old, now, other) {
    const before = Math.hypot(old.x - other.x, old.y - other.y);
    const after = Math.hypot(now.x - other.x, now.y - other.y);
    const box = this.root.getBoundingClientRect();
    this.moved = true;
    if (before > 0) this.zoom(after / before, (now.x + other.x) / 2 - box.left, (now.y + other.y) / 2 - box.top);
  }

  /** @param {WheelEvent} event */
  onWheel(event) {
    if (this.root.dataset.view === "list") return;
    if (!(event.ctrlKey || event.metaKey) && !this.root.contains(document.activeElement)) return;
    event.preventDefault();
    const box = this.root.getBoundingClientRect();
    this.zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
  }

  /**
   * Pan as far as it takes to see a card whole.
   * @param {HTMLElement} node
   */
  bringIntoFrame(node) {
    const frame = this.root.getBoundingClientRect();
    const box = node.getBoundingClientRect();
    this.at.x += Math.max(0, frame.left - box.left + 20) - Math.max(0, box.right - frame.right + 20);
    this.at.y += Math.max(0, frame.top - box.top + 20) - Math.max(0, box.bottom - frame.bottom + 20);
    this.apply();
  }
}
