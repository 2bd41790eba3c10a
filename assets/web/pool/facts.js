// A worker's track record on its card: how often it alone was right, how fast and for how much, and by which runs.

import { busy, button } from "../lib/controls.js";
import { count, dollars, el, seconds } from "../lib/dom.js";
import { needs } from "../lib/rights.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */
/** @typedef {import("../types").WorkerFacts} WorkerFacts */

const WHO_READS = "Orchestrators that choose a worker by its outcomes go by these: the router, a cascade with a score, +who=. A model that plans reads the description alone.";

/**
 * @param {PoolPage} page
 * @param {import("../types").WorkerCard} worker
 * @param {WorkerFacts} facts
 */
export function factsOf(page, worker, facts) {
  const { graded, right, median_s: median, cost, topics } = facts;
  const refresh = needs(button("Refresh", () => busy(refresh, "Reading …", () => refreshFacts(page, worker.name)), "podium-link"), "pool/refresh_facts");
  refresh.setAttribute("aria-label", `Refresh the facts of ${worker.name}`);
  refresh.title = "Compute them from all stored runs";
  const share = `Right alone in ${count(right)} of ${count(graded)}`;
  const rest = [`${seconds(median)} at the median`, `${dollars(cost)} a question`].join(", ");
  const box = el(
    "section.pool-facts", { "aria-label": `Facts of ${worker.name}`, title: WHO_READS },
    el("p", {}, el("b", {}, share), ` · ${rest}`), el("p.pool-facts-from", {}, describeSource(facts), refresh),
  );
  if (topics.length > 1) box.append(byTopic(topics));
  return box;
}

/** @param {WorkerFacts} facts */
function describeSource({ newest, read, computed_at: computed }) {
  const runs = read === null ? "all graded runs of this pool" : `this pool's newest graded runs, ${count(read)} at most`;
  const last = newest ? `, the last of ${new Date(newest).toLocaleDateString()}` : "";
  return `From ${runs}${last}. Computed at ${new Date(computed).toLocaleTimeString()}. `;
}

/** @param {WorkerFacts["topics"]} topics */
function byTopic(topics) {
  const rows = topics.map(({ topic, graded, right }) => el("li", {}, el("span", {}, topic), el("b", {}, `${count(right)} of ${count(graded)}`)));
  return el("details", {}, el("summary", {}, `By ${topics.length} topics`), el("ul", {}, ...rows));
}

/**
 * @param {PoolPage} page
 * @param {string} name
 */
async function refreshFacts(page, name) {
  const reply = await page.act({ action: "refresh_facts", name });
  if (!reply.ok || !reply.facts) return;
  page.facts.set(name, reply.facts);
  await page.show();
}
