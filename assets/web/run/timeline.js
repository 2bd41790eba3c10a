// The timeline: one row per orchestrator turn and per step, as a waterfall over the episode's seconds.

import { el, seconds } from "../lib/dom.js";

/** @typedef {import("../types").EpisodeView} EpisodeView */
/** @typedef {import("../types").StepNode} StepNode */
/** @typedef {import("../types").TurnView} TurnView */
/** @typedef {{ node: HTMLButtonElement, wait: HTMLElement, bar: HTMLElement, time: HTMLElement }} Row */

const CLOSE = 0.2; // share of the run below which the steps can be looked at alone

export class Timeline {
  /**
   * @param {(step: number) => void} onSelect
   * @param {(round: number) => void} onTurn
   */
  constructor(onSelect, onTurn) {
    this.onSelect = onSelect;
    this.onTurn = onTurn;
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    this.root = el("section.run-timeline", { "aria-label": "Timeline" });
    this.axis = el("div.run-timeline-axis", { "aria-hidden": "true" });
    this.body = el("div.run-timeline-body");
    const key = el("div.run-timeline-key");
    for (const [name, text] of [["wait", "waiting for a free worker"], ["critical", "critical path"]]) {
      key.append(el("span", {}, el("i", { class: `run-timeline-key-${name}` }), text));
    }
    this.zoom = el("button.podium-link", { type: "button", "aria-pressed": "false" }, "Zoom to the steps");
    this.zoom.addEventListener("click", () => this.toggleZoom());
    key.append(this.zoom);
    this.zoomed = false;
    this.root.append(this.axis, this.body, key);
  }

  clear() {
    this.rows.clear();
    this.body.replaceChildren();
    this.axis.replaceChildren();
  }

  /**
   * Draw everything as of `clock` seconds.
   * @param {EpisodeView} view
   * @param {number} clock
   */
  draw(view, clock) {
    this.drawn = { view, clock };
    const whole = Math.max(clock, view.totals.wall_s, 0.001);
    const steps = findSpan(view.graph.nodes, clock);
    this.zoom.hidden = !steps || steps.to - steps.from > whole * CLOSE;
    const { from, to } = this.zoomed && !this.zoom.hidden ? steps : { from: 0, to: whole };
    this.from = from;
    this.span = to - from;
    this.drawAxis(niceStep(this.span / 4));
    const ended = new Map(view.graph.nodes.map((node) => [node.id, node.ended_at]));
    const nodes = new Map(view.graph.nodes.map((node) => [node.id, node]));
    for (const turn of view.turns) {
      this.drawTurn(turn, clock);
      for (const id of turn.steps) {
        const node = nodes.get(id);
        if (node) this.drawStep(node, clock, turn, ended);
      }
    }
  }

  /** Planning may take seconds where the steps take thousandths: then these can be looked at alone. */
  toggleZoom() {
    this.zoomed = !this.zoomed;
    this.zoom.setAttribute("aria-pressed", String(this.zoomed));
    this.zoom.textContent = this.zoomed ? "Show the whole run" : "Zoom to the steps";
    this.draw(this.drawn.view, this.drawn.clock);
  }

  /** @param {number} step */
  drawAxis(step) {
    const ticks = [];
    for (let at = 0; at <= this.span + 1e-9; at += step) {
      const tick = el("span", {}, this.from + at === 0 ? "0" : at === 0 ? seconds(this.from) : `${this.from ? "+" : ""}${seconds(at)}`);
      tick.style.left = `${(100 * at) / this.span}%`;
      if (at / this.span < 0.94) ticks.push(tick);
    }
    this.axis.replaceChildren(...ticks);
  }

  /**
   * @param {HTMLElement} bar
   * @param {number} from
   * @param {number} to
   */
  place(bar, from, to) {
    const start = Math.max(from, this.from);
    const end = Math.min(to, this.from + this.span);
    bar.classList.toggle("run-timeline-outside", end < start);
    bar.style.left = `min(${(100 * (start - this.from)) / this.span}%, 100% - 3px)`; // a short step at the very end stays in sight
    bar.style.width = `${Math.max(0, (100 * (end - start)) / this.span)}%`;
  }

  /**
   * @param {TurnView} turn
   * @param {number} clock
   */
  drawTurn(turn, clock) {
    const label = this.drawn.view.graph.lanes.find((lane) => lane.round === turn.round)?.label || `Round ${turn.round}`;
    const row = this.row(`turn-${turn.round}`, label, "run-timeline-turn", () => this.onTurn(turn.round));
    row.node.dataset.status = turn.status;
    this.place(row.bar, turn.started_at, turn.ended_at ?? clock);
    row.time.textContent = seconds((turn.ended_at ?? clock) - turn.started_at);
  }

  /**
   * @param {StepNode} node
   * @param {number} clock
   * @param {TurnView} turn
   * @param {Map<number, number | null>} ended
   */
  drawStep(node, clock, turn, ended) {
    const row = this.row(`step-${node.id}`, `${node.id} · ${node.worker}`, "run-timeline-step", () => this.onSelect(node.id));
    row.node.dataset.status = node.status;
    row.node.dataset.role = node.role;
    row.node.classList.toggle("run-timeline-critical", Boolean(node.critical));
    const ready = Math.max(turn.ended_at ?? 0, ...node.access.map((id) => ended.get(id) ?? 0));
    const start = node.started_at ?? node.ended_at;
    this.place(row.wait, ready, start ?? (node.status === "PENDING" ? ready : clock));
    row.bar.hidden = start === null;
    if (start !== null) this.place(row.bar, start, node.ended_at ?? clock);
    row.time.textContent = node.reused ? "kept" : node.latency_s === null ? "" : seconds(node.latency_s);
  }

  /**
   * @param {string} key
   * @param {string} label
   * @param {string} className
   * @param {() => void} action
   * @returns {Row}
   */
  row(key, label, className, action) {
    let row = this.rows.get(key);
    if (row) return row;
    const node = el("button", { class: `run-timeline-row ${className}`, type: "button", "aria-pressed": "false", "data-key": key });
    row = { node, wait: el("i.run-timeline-wait"), bar: el("i.run-timeline-bar"), time: el("span.run-timeline-time") };
    const track = el("span.run-timeline-track", {}, row.wait, row.bar);
    node.append(el("span.run-timeline-label", {}, label), track, row.time);
    node.addEventListener("click", action);
    this.rows.set(key, row);
    this.body.append(node);
    return row;
  }

  /**
   * @param {number | null} step
   * @param {number | null} round
   */
  select(step, round) {
    const key = step ? `step-${step}` : round ? `turn-${round}` : null;
    for (const [name, row] of this.rows) row.node.setAttribute("aria-pressed", String(name === key));
  }
}

/**
 * From the first step's start to the last one's end; null before any has begun.
 * @param {StepNode[]} nodes
 * @param {number} clock
 */
function findSpan(nodes, clock) {
  const begun = nodes.filter((node) => node.started_at !== null);
  if (!begun.length) return null;
  const from = Math.min(...begun.map((node) => node.started_at));
  const to = Math.max(...begun.map((node) => node.ended_at ?? clock));
  return { from, to: Math.max(to, from + 1e-4) };
}

/**
 * 1, 2 or 5 times a power of ten.
 * @param {number} raw
 */
function niceStep(raw) {
  const power = 10 ** Math.floor(Math.log10(raw));
  const lead = raw / power;
  return power * (lead > 5 ? 10 : lead > 2 ? 5 : lead > 1 ? 2 : 1);
}
