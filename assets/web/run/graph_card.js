// One step of the graph as a button: who, what it is told, how it went. The same card stands in the list.

import { count, el, icon, seconds } from "../lib/dom.js";
import { STATUSES, kindIcon } from "../lib/icons.js";

/** @param {import("../types").StepNode} node */
export function makeCard(node) {
  const status = el("span.run-graph-status");
  const head = el("div.run-graph-head", {}, icon(kindIcon(node)), el("span.run-graph-name", {}, `${node.id} · ${node.worker}`), status);
  const time = el("span");
  const tokens = el("span");
  const foot = el("div.run-graph-foot", {}, time, tokens);
  const card = el(
    "button.run-graph-card", { type: "button", "data-id": node.id, "data-role": node.role }, head,
    el("div.run-graph-text", {}, node.need ? `${node.need}: ${node.instruction}` : node.instruction), foot,
  );
  return { node: card, status, time, tokens };
}

/**
 * Show how a step is. Returns the word for it when that is news, and null otherwise.
 * @param {*} entry
 * @param {import("../types").StepNode} node
 */
export function paintCard(entry, node) {
  const key = `${node.status}|${node.latency_s}|${node.tokens_out}|${node.critical}`;
  if (!entry || entry.key === key) return null;
  const first = entry.key === undefined;
  entry.key = key;
  const [word, path] = STATUSES[node.status] || STATUSES.PENDING;
  entry.node.dataset.status = node.status;
  entry.node.classList.toggle("run-graph-critical", Boolean(node.critical));
  entry.status.replaceChildren(icon(path), el("b", {}, word));
  entry.time.textContent = node.reused ? "kept" : seconds(node.latency_s);
  const tokens = node.tokens_in + node.tokens_out;
  entry.tokens.textContent = tokens ? `${count(node.tokens_in)} → ${count(node.tokens_out)} tok` : node.code || "";
  const seen = node.access.length ? `sees steps ${node.access.join(", ")}` : "sees its own instruction only";
  const took = node.latency_s === null ? "" : `, ${seconds(node.latency_s)}`;
  entry.node.setAttribute(
    "aria-label",
    `Step ${node.id}, ${node.role} ${node.worker}, round ${node.round}, ${word}${took}, ${seen}. ${node.instruction}`,
  );
  return first ? null : word;
}
