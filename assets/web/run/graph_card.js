// One step of the graph as a button: who, what it is told, how it went. The same card stands in the list. Of a long run
// only cards that are seen have contents; what a card is called and how it looks from afar needs none.

import { count, el, icon, seconds } from "../lib/dom.js";
import { STATUSES, kindIcon } from "../lib/icons.js";

const WIDE = 20; // letters of a name that stand in one line
const SIZES = [[12, 23], [24, 19.5], [Infinity, 17]]; // letters of number and name, and the most pixels they are written in from afar

/** @typedef {import("../types").StepNode} StepNode */
/**
 * @typedef {{ node: HTMLButtonElement, step: StepNode, most: number, more: HTMLElement[], parts: ReturnType<typeof makeParts> | null,
 *   isFull: boolean, key: string | null }} Card
 */

/**
 * A card without contents.
 * @param {import("../types").StepNode} node
 * @param {HTMLElement[]} more what stands below its own contents
 * @returns {Card}
 */
export function makeCard(node, more = []) {
  const marks = { "data-id": node.id, "data-role": node.role, "aria-pressed": "false" };
  const card = el("button.run-graph-card", { type: "button", ...marks });
  card.classList.toggle("run-graph-wordy", node.worker.length > WIDE);
  const letters = `${node.id} · ${node.worker}`.length;
  const most = SIZES.find(([limit]) => letters <= limit)[1];
  return { node: card, step: node, most, more, parts: null, isFull: false, key: null };
}

/**
 * Give a card its contents.
 * @param {Card} entry
 */
export function fillCard(entry) {
  if (entry.isFull) return;
  entry.isFull = true;
  entry.parts ||= makeParts(entry.step);
  entry.node.prepend(...entry.parts.all, ...entry.more);
  paintParts(entry.parts, entry.step);
}

/**
 * Take a card's contents away; its place stays as large as it is.
 * @param {Card} entry
 */
export function emptyCard(entry) {
  if (!entry.isFull) return;
  entry.isFull = false;
  if (!entry.node.style.height) entry.node.style.minHeight = `${entry.node.offsetHeight}px`;
  for (const part of [...entry.parts.all, ...entry.more]) part.remove();
}

/** @param {import("../types").StepNode} node */
function makeParts(node) {
  const status = el("span.run-graph-status");
  const head = el("div.run-graph-head", {}, icon(kindIcon(node)), el("span.run-graph-name", {}, `${node.id} · `, ...breakable(node.worker)));
  const time = el("span");
  const tokens = el("span");
  const text = el("div.run-graph-text");
  return { all: [head, text, el("div.run-graph-foot", {}, time, tokens, status)], text, status, time, tokens };
}

/** A name that a line may break behind its underscores.
 * @param {string} name */
function breakable(name) {
  return name.split(/(?<=_)/).flatMap((part, place) => (place ? [el("wbr"), part] : [part]));
}

/**
 * Show how a step is. Returns the word for it when that is news, and null otherwise.
 * @param {Card | undefined} entry
 * @param {import("../types").StepNode} node
 */
export function paintCard(entry, node) {
  const key = `${node.instruction}|${node.status}|${node.latency_s}|${node.tokens_out}|${node.critical}`;
  if (!entry || entry.key === key) return null;
  const first = entry.key === null;
  entry.key = key;
  entry.step = node;
  const [word] = STATUSES[node.status] || STATUSES.PENDING;
  entry.node.dataset.status = node.status;
  entry.node.classList.toggle("run-graph-critical", Boolean(node.critical));
  if (entry.isFull) paintParts(entry.parts, node);
  const seen = node.access.length ? `sees steps ${node.access.join(", ")}` : "sees its own instruction only";
  const took = node.latency_s === null ? "" : `, ${seconds(node.latency_s)}`;
  entry.node.setAttribute(
    "aria-label",
    `Step ${node.id}, ${node.role} ${node.worker}, round ${node.round}, ${word}${took}, ${seen}. ${node.instruction}`,
  );
  return first ? null : word;
}

/**
 * @param {ReturnType<typeof makeParts>} parts
 * @param {import("../types").StepNode} node
 */
function paintParts(parts, node) {
  const [word, path] = STATUSES[node.status] || STATUSES.PENDING;
  parts.text.textContent = node.need ? `${node.need}: ${node.instruction}` : node.instruction;
  parts.text.title = [node.planned && `planned as ${node.planned}`, node.choice].filter(Boolean).join("\n");
  parts.status.replaceChildren(icon(path), el("b", {}, word));
  parts.time.textContent = node.reused ? "kept" : seconds(node.latency_s);
  const tokens = node.tokens_in + node.tokens_out;
  parts.tokens.textContent = tokens ? `${count(node.tokens_in)} → ${count(node.tokens_out)} tok` : node.code || "";
}
