// The orchestration graph: cards as buttons, access-list entries as SVG edges. Coordinates come from the
// server; this file draws, pans, zooms and selects. On narrow screens the same steps are a list.

import { count, el, icon, seconds, svg } from "./dom.js";
import { STATUSES, kindIcon } from "./icons.js";

const MINIMAP_FROM = 60; // steps
const SHORTEST = 250; // height of the frame in pixels: it follows the graph between these two
const TALLEST = 560;
const BAR = 46; // room for legend and buttons below the graph

export class Graph {
  constructor(onSelect, onTurn) {
    this.onSelect = onSelect;
    this.onTurn = onTurn;
    this.cards = new Map();
    this.items = new Map();
    this.view = null;
    this.selected = null;
    this.touched = false;
    this.at = { k: 1, x: 0, y: 0 };
    this.build();
    this.listen();
  }

  build() {
    this.root = el("div", "og", null, { role: "group", "aria-label": "Orchestration graph" });
    this.world = el("div", "og-world");
    this.edges = svg("svg", { class: "og-edges", "aria-hidden": "true" });
    this.world.append(this.edges);
    this.list = el("div", "og-list");
    this.legend = el("div", "og-legend", null, { "aria-hidden": "true" });
    for (const [name, label] of [["agent", "Agent"], ["tool", "Tool"], ["recursion", "Recursion"]]) {
      const entry = el("span", `og-role-${name}`);
      entry.append(el("i"), label);
      this.legend.append(entry);
    }
    const used = el("span");
    used.append(el("u", "og-line-used"), "used");
    const granted = el("span");
    granted.append(el("u", "og-line-granted"), "granted only");
    this.legend.append(used, granted);
    this.bar = el("div", "og-bar");
    this.buttons = {};
    for (const [name, text, label] of [
      ["view", "List", "Show as list"],
      ["errors", "Errors", "Show only what failed"],
      ["out", "−", "Zoom out"],
      ["fit", "Fit", "Fit the graph into the frame"],
      ["in", "+", "Zoom in"],
    ]) {
      const button = el("button", "", text, { type: "button", "aria-label": label, "data-action": name });
      this.buttons[name] = button;
      this.bar.append(button);
    }
    this.minimap = svg("svg", { class: "og-minimap", "aria-hidden": "true" });
    this.live = el("div", "pd-offscreen", null, { "aria-live": "polite" });
    this.failed = el("div", "og-failed");
    this.root.append(this.world, this.list, this.failed, this.legend, this.minimap, this.bar, this.live);
    this.setView("graph");
  }

  /** Start over for another episode. */
  clear() {
    this.view = null;
    this.selected = null;
    this.touched = false;
    for (const entry of this.cards.values()) entry.node.remove();
    this.cards.clear();
    this.items.clear();
    this.edges.replaceChildren();
    this.list.replaceChildren();
    this.failed.replaceChildren();
    this.world.querySelectorAll(".og-lane, .og-answer").forEach((node) => node.remove());
  }

  /** Take a whole view: place cards, draw edges, keep pan and selection. */
  draw(view) {
    this.view = view;
    const graph = view.graph;
    this.world.style.width = `${graph.width}px`;
    this.world.style.height = `${graph.height}px`;
    this.edges.setAttribute("width", graph.width);
    this.edges.setAttribute("height", graph.height);
    this.drawLanes(graph);
    this.drawCards(graph);
    this.drawEdges(graph);
    this.drawAnswer(graph.answer);
    this.drawList(graph);
    this.drawFailed(view);
    this.paint();
    if (!this.touched) this.fit();
    this.drawMinimap(graph);
  }

  drawLanes(graph) {
    this.world.querySelectorAll(".og-lane").forEach((node) => node.remove());
    for (const lane of graph.lanes) {
      const column = el("div", "og-lane");
      column.style.cssText = `left:${lane.x}px;width:${lane.width}px;height:${graph.height + 16}px`;
      const head = el("button", "og-lane-head", null, {
        type: "button",
        tabindex: "-1",
        "aria-label": `Round ${lane.round}: what the orchestrator wrote`,
      });
      head.append(el("b", "", lane.label), el("span", "", lane.note));
      head.addEventListener("click", () => this.onTurn(lane.round));
      column.append(head);
      this.world.prepend(column);
    }
  }

  /** Rounds whose output was no turn have no steps to show: say what was wrong with each. */
  drawFailed(view) {
    const rounds = view.turns.filter((turn) => turn.error);
    this.failed.replaceChildren();
    this.failed.classList.toggle("og-alone", !view.graph.nodes.length);
    for (const turn of rounds) {
      const chip = el("button", "", null, { type: "button" });
      chip.append(el("b", "", `Round ${turn.round}: no valid turn`), el("span", "", turn.error));
      chip.addEventListener("click", () => this.onTurn(turn.round));
      this.failed.append(chip);
    }
  }

  drawCards(graph) {
    const gone = new Set(this.cards.keys());
    for (const node of graph.nodes) {
      let entry = this.cards.get(node.id);
      if (!entry) {
        entry = makeCard(node);
        entry.node.tabIndex = this.cards.size ? -1 : 0;
        this.cards.set(node.id, entry);
        this.world.append(entry.node);
      }
      gone.delete(node.id);
      const width = graph.node_width;
      entry.node.style.cssText = `left:${node.x}px;top:${node.y}px;width:${width}px;height:${graph.node_height}px`;
    }
    for (const id of gone) {
      this.cards.get(id).node.remove();
      this.cards.delete(id);
    }
  }

  drawEdges(graph) {
    this.paths = [];
    this.edges.replaceChildren();
    for (const edge of graph.edges) {
      const path = svg("path", { d: edge.path, class: edge.used ? "og-used" : "og-granted" });
      this.edges.append(path);
      this.paths.push({ ...edge, node: path });
    }
    for (const [index, d] of (graph.answer?.paths || []).entries()) {
      const path = svg("path", { d, class: "og-used og-to-answer" });
      this.edges.append(path);
      this.paths.push({ from: graph.answer.from[index], to: "answer", node: path });
    }
  }

  drawAnswer(place) {
    this.world.querySelector(".og-answer")?.remove();
    if (!place) return;
    const card = el("div", "og-answer");
    const text = this.view.episode.answer;
    card.style.cssText = `left:${place.x}px;top:${place.y}px;width:${place.width}px;height:${place.height}px`;
    card.append(el("b", "", "Answer"), el("span", "", text ?? "not yet"));
    const verdict = this.view.episode.verdict;
    if (verdict) card.dataset.correct = verdict.correct;
    this.world.append(card);
  }

  drawList(graph) {
    this.items.clear();
    this.list.replaceChildren();
    let round = 0;
    for (const node of [...graph.nodes].sort((a, b) => a.id - b.id)) {
      if (node.round !== round) {
        round = node.round;
        this.list.append(el("h2", "", `Round ${round}`));
      }
      const entry = makeCard(node);
      const seen = node.access.length ? `Sees ${node.access.join(", ")}` : "Sees its own instruction only";
      entry.node.append(el("div", "og-sees", seen));
      this.list.append(entry.node);
      this.items.set(node.id, entry);
    }
  }

  /** Take changed nodes without touching the shape. */
  patch(nodes) {
    if (!this.view) return;
    for (const change of nodes) {
      const node = this.view.graph.nodes.find((known) => known.id === change.id);
      if (node) Object.assign(node, change);
    }
    this.paint();
  }

  paint() {
    const status = new Map();
    for (const node of this.view.graph.nodes) {
      status.set(node.id, node.status);
      for (const entries of [this.cards, this.items]) this.paintCard(entries.get(node.id), node, entries === this.cards);
    }
    for (const edge of this.paths) edge.node.classList.toggle("og-flows", status.get(edge.to) === "RUNNING");
    this.select(this.selected);
  }

  paintCard(entry, node, speaks) {
    const key = `${node.status}|${node.latency_s}|${node.tokens_out}|${node.critical}`;
    if (!entry || entry.key === key) return;
    const first = entry.key === undefined;
    entry.key = key;
    const [word, path] = STATUSES[node.status] || STATUSES.PENDING;
    entry.node.dataset.status = node.status;
    entry.node.classList.toggle("og-critical", Boolean(node.critical));
    entry.status.replaceChildren(icon(path), el("b", "", word));
    entry.time.textContent = node.reused ? "kept" : seconds(node.latency_s);
    const tokens = node.tokens_in + node.tokens_out;
    entry.tokens.textContent = tokens ? `${count(node.tokens_in)} → ${count(node.tokens_out)} tok` : node.code || "";
    const seen = node.access.length ? `sees steps ${node.access.join(", ")}` : "sees its own instruction only";
    const took = node.latency_s === null ? "" : `, ${seconds(node.latency_s)}`;
    entry.node.setAttribute(
      "aria-label",
      `Step ${node.id}, ${node.role} ${node.worker}, round ${node.round}, ${word}${took}, ${seen}. ${node.instruction}`,
    );
    if (speaks && !first && node.status !== "RUNNING") this.live.textContent = `Step ${node.id} ${node.worker}: ${word}`;
  }

  /** Light a step and exactly what it may see; null lights everything. */
  select(id) {
    const node = this.view?.graph.nodes.find((known) => known.id === id);
    this.selected = node ? id : null;
    this.root.classList.toggle("og-selecting", Boolean(node));
    const lit = new Set(node ? [...node.access, id] : []);
    for (const entries of [this.cards, this.items]) {
      for (const [key, entry] of entries) {
        entry.node.classList.toggle("og-lit", lit.has(key));
        entry.node.setAttribute("aria-pressed", String(key === id));
      }
    }
    for (const edge of this.paths || []) edge.node.classList.toggle("og-lit", edge.to === id);
  }

  drawMinimap(graph) {
    const many = graph.nodes.length >= MINIMAP_FROM;
    this.minimap.classList.toggle("og-shown", many);
    if (!many) return;
    this.minimap.setAttribute("viewBox", `0 0 ${graph.width} ${graph.height}`);
    const dots = graph.nodes.map((node) =>
      svg("rect", {
        x: node.x, y: node.y, width: graph.node_width, height: graph.node_height, class: `og-dot-${node.status}`,
      }),
    );
    this.frame = svg("rect", { class: "og-frame" });
    this.minimap.replaceChildren(...dots, this.frame);
    this.apply();
  }

  apply() {
    const { k, x, y } = this.at;
    this.world.style.transform = `translate(${x}px,${y}px) scale(${k})`;
    this.root.classList.toggle("og-far", k < 0.55);
    this.root.classList.toggle("og-very-far", k < 0.3);
    this.root.dataset.zoom = k.toFixed(2);
    if (this.frame) {
      const box = this.root.getBoundingClientRect();
      for (const [name, value] of [["x", -x / k], ["y", -y / k], ["width", box.width / k], ["height", box.height / k]])
        this.frame.setAttribute(name, value);
    }
  }

  fit() {
    if (!this.view) return;
    const box = this.root.getBoundingClientRect();
    const { width, height } = this.view.graph;
    if (!box.width || !width) return;
    const margin = 28;
    const wide = (box.width - 2 * margin) / width;
    const tall = (TALLEST - BAR - 2 * margin) / (height + 16);
    const k = Math.max(0.05, Math.min(1.1, wide, tall));
    const needed = (height + 16) * k + 2 * margin + BAR;
    this.root.style.height = this.root.dataset.view === "list" ? "" : `${Math.max(SHORTEST, needed)}px`;
    const frame = this.root.clientHeight;
    this.at = { k, x: (box.width - width * k) / 2, y: Math.max(margin / 2, (frame - BAR - (height + 16) * k) / 2) };
    this.apply();
  }

  zoom(factor, px, py) {
    const box = this.root.getBoundingClientRect();
    const x = px ?? box.width / 2;
    const y = py ?? box.height / 2;
    const k = Math.min(2.5, Math.max(0.05, this.at.k * factor));
    this.at = { k, x: x - ((x - this.at.x) * k) / this.at.k, y: y - ((y - this.at.y) * k) / this.at.k };
    this.touched = true;
    this.apply();
  }

  setView(name) {
    this.root.dataset.view = name;
    const other = name === "list" ? "Graph" : "List";
    this.buttons.view.textContent = other;
    this.buttons.view.setAttribute("aria-label", `Show as ${other.toLowerCase()}`);
    if (name === "list") this.root.style.height = "";
    if (name === "graph" && !this.touched) this.fit();
  }

  act(name) {
    if (name === "view") this.setView(this.root.dataset.view === "list" ? "graph" : "list");
    if (name === "errors") {
      const on = this.root.classList.toggle("og-errors");
      this.buttons.errors.setAttribute("aria-pressed", String(on));
    }
    if (name === "in") this.zoom(1.25);
    if (name === "out") this.zoom(0.8);
    if (name === "fit") {
      this.touched = false;
      this.fit();
    }
  }

  listen() {
    this.root.addEventListener("click", (event) => {
      const card = event.target.closest(".og-card");
      const button = event.target.closest(".og-bar button");
      if (card) this.onSelect(Number(card.dataset.id));
      else if (button) this.act(button.dataset.action);
      else if (!this.moved && !event.target.closest(".og-lane-head, .og-failed")) this.onSelect(null);
    });
    this.root.addEventListener("keydown", (event) => this.onKey(event));
    this.root.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    this.listenToPointers();
    let narrow = null;
    new ResizeObserver(() => {
      const now = this.root.clientWidth > 0 && this.root.clientWidth < 560;
      if (now !== narrow && this.root.clientWidth) this.setView(now ? "list" : "graph");
      narrow = now;
      if (!this.touched) this.fit();
    }).observe(this.root);
  }

  listenToPointers() {
    const pointers = new Map();
    this.root.addEventListener("pointerdown", (event) => {
      this.moved = false;
      if (this.root.dataset.view === "list" || event.target.closest(".og-bar, .og-failed")) return;
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
    for (const name of ["pointerup", "pointercancel"])
      this.root.addEventListener(name, (event) => pointers.delete(event.pointerId));
  }

  pan(old, now, pointer) {
    if (!this.moved && Math.hypot(now.x - now.x0, now.y - now.y0) < 4) return;
    if (!this.moved) this.root.setPointerCapture(pointer);
    this.moved = true;
    this.touched = true;
    this.at.x += now.x - old.x;
    this.at.y += now.y - old.y;
    this.apply();
  }

  pinch(old, now, other) {
    const before = Math.hypot(old.x - other.x, old.y - other.y);
    const after = Math.hypot(now.x - other.x, now.y - other.y);
    const box = this.root.getBoundingClientRect();
    this.moved = true;
    if (before > 0) this.zoom(after / before, (now.x + other.x) / 2 - box.left, (now.y + other.y) / 2 - box.top);
  }

  onWheel(event) {
    if (this.root.dataset.view === "list") return;
    if (!(event.ctrlKey || event.metaKey) && !this.root.contains(document.activeElement)) return;
    event.preventDefault();
    const box = this.root.getBoundingClientRect();
    this.zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
  }

  onKey(event) {
    if (event.key === "Escape") this.onSelect(null);
    else if (event.key === "+" || event.key === "=") this.act("in");
    else if (event.key === "-") this.act("out");
    else if (event.key === "0") this.act("fit");
    else this.moveFocus(event);
  }

  moveFocus(event) {
    const card = event.target.closest?.(".og-world .og-card");
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
    this.bringIntoFrame(target);
  }

  bringIntoFrame(node) {
    const frame = this.root.getBoundingClientRect();
    const box = node.getBoundingClientRect();
    this.at.x += Math.max(0, frame.left - box.left + 20) - Math.max(0, box.right - frame.right + 20);
    this.at.y += Math.max(0, frame.top - box.top + 20) - Math.max(0, box.bottom - frame.bottom + 20);
    this.apply();
  }
}

/** The next card in a direction: columns first for left and right, the same column for up and down. */
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

function makeCard(node) {
  const card = el("button", "og-card", null, { type: "button", "data-id": node.id, "data-role": node.role });
  const head = el("div", "og-head");
  const status = el("span", "og-status");
  head.append(icon(kindIcon(node.kind, node.role)), el("span", "og-name", `${node.id} · ${node.worker}`), status);
  const foot = el("div", "og-foot");
  const time = el("span");
  const tokens = el("span");
  foot.append(time, tokens);
  card.append(head, el("div", "og-text", node.instruction), foot);
  return { node: card, status, time, tokens };
}

