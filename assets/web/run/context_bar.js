// What filled a prompt, as one bar by origin, with the limit of the model where it is known.

import { count, el } from "../lib/dom.js";

/** @type {Record<string, string>} */
const CUTS = { excerpt: "cut to its beginning", summary: "shortened by another agent" };

/** @param {import("../types").ContextBudget} budget */
export function contextBar(budget) {
  const sent = budget.slices.reduce((sum, part) => sum + part.tokens, 0);
  const scale = Math.max(budget.limit || 0, sent + budget.reply) || 1;
  const bar = el("div.run-context-bar", { "aria-hidden": "true" });
  for (const part of budget.slices) {
    bar.append(el("i", { "data-origin": part.origin, style: `width:${(100 * part.tokens) / scale}%`, title: `${part.label}: ${count(part.tokens)}` }));
  }
  if (budget.reply) bar.append(el("i", { "data-origin": "reply", style: `width:${(100 * budget.reply) / scale}%`, title: `Reply: ${count(budget.reply)}` }));
  return el(
    "div.run-context", { "data-testid": "context" }, el("p.run-inspector-about", {}, sentence(budget, sent)), bar,
    el("ul.run-context-parts", { "aria-label": "What the prompt is made of" }, ...budget.slices.map(line), ...(budget.reply ? [replyLine(budget.reply)] : [])),
  );
}

/**
 * @param {import("../types").ContextBudget} budget
 * @param {number} sent
 */
function sentence({ limit, reply }, sent) {
  if (limit === null) return `About ${count(sent)} tokens; how many this model takes is not known.`;
  return `About ${count(sent)} tokens and up to ${count(reply)} for the reply, of ${count(limit)}.`;
}

/** @param {import("../types").ContextSlice} part */
function line({ origin, label, tokens, whole, cut }) {
  const size = cut ? `${count(tokens)} of ${count(whole)}, ${CUTS[cut]}` : count(tokens);
  return el("li", { "data-cut": cut }, el("i", { "data-origin": origin, "aria-hidden": "true" }), el("span", {}, label), el("b", {}, size));
}

/** @param {number} reply */
function replyLine(reply) {
  return el("li", {}, el("i", { "data-origin": "reply", "aria-hidden": "true" }), el("span", {}, "Room for the reply"), el("b", {}, count(reply)));
}
