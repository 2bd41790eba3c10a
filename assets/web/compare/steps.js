// One step as every orchestrator took it: what it was told, what it was allowed to see, what it returned.

import { getDocument } from "../lib/api.js";
import { el, icon, readable, seconds } from "../lib/dom.js";
import { STATUSES } from "../lib/icons.js";

/** @typedef {import("../types").StepDetail} StepDetail */
/** @typedef {{ episode: string, step: number | null, name: string, place: number }} Side */

export class StepsSideBySide {
  constructor() {
    this.root = el("section.compare-figure.compare-step", { "aria-label": "The selected step" });
    this.clear();
  }

  clear() {
    /** @type {symbol | null} */
    this.request = null;
    this.root.hidden = true;
  }

  /**
   * `sides` are {episode, step, name, place}; a step is null where an orchestrator has none.
   * @param {Side[]} sides
   */
  async show(sides) {
    const request = (this.request = Symbol());
    const details = await Promise.all(sides.map((side) => (side.step ? load(side) : null)));
    if (request !== this.request) return;
    const grid = el("div.compare-step-grid");
    grid.style.setProperty("--sides", String(sides.length));
    sides.forEach((side, number) => grid.append(column(side, details[number])));
    const title = el("div.compare-figure-title", {}, el("h3", {}, "The selected step, side by side"));
    const close = el("button.podium-link", { type: "button" }, "Close");
    close.addEventListener("click", () => this.clear());
    this.root.replaceChildren(el("header.compare-figure-head", {}, title, close), grid);
    this.root.hidden = false;
  }
}

/**
 * @param {Side} side
 * @returns {Promise<StepDetail | { problem: string }>}
 */
async function load({ episode, step }) {
  try {
    return await getDocument(`/api/episodes/${encodeURIComponent(episode)}/steps/${step}`);
  } catch (error) {
    return { problem: error.message };
  }
}

/**
 * @param {Side} side
 * @param {StepDetail | { problem: string } | null} detail
 */
function column(side, detail) {
  const dot = el("i.compare-query-dot");
  dot.style.background = `var(--podium-series-${side.place + 1})`;
  const box = el("article.compare-step-side", {}, el("h4", {}, dot, side.name));
  if (!detail) box.append(el("p.train-mute", {}, "Has no such step."));
  else if ("problem" in detail) box.append(el("p.run-inspector-problem", {}, `This cannot be shown: ${detail.problem}`));
  else box.append(...parts(detail));
  return box;
}

/** @param {import("../types").StepDetail} detail */
function parts(detail) {
  const [word, path] = STATUSES[detail.status] || STATUSES.PENDING;
  const status = el("span.podium-status", {}, icon(path), el("b", {}, word));
  const line = el(
    "div.compare-step-line", { "data-status": detail.status, "data-role": detail.role },
    el("b", {}, `Step ${detail.id} · ${detail.worker}`), status, el("span.train-mute", {}, seconds(detail.latency_s)),
  );
  const seen =
    detail.visible.length ? detail.visible.map((step) => `step ${step.step} (${step.worker})`).join(", ") : "its own instruction only";
  return [
    line, block("Told", readable(detail.arguments)), block("May see", seen),
    block(detail.error ? "Error" : "Returned", detail.error || readable(detail.value ?? "nothing yet")),
  ];
}

/**
 * @param {string} title
 * @param {string} words
 */
function block(title, words) {
  return el("div.compare-step-block", {}, el("h5", {}, title), el("pre", {}, words));
}
