// The columns of the pool's table: what stands in them, and in which order they bring the workers.

import { button } from "../lib/controls.js";
import { count, dollars, el, icon, seconds } from "../lib/dom.js";
import { LIGHTS, STATUSES, kindIcon } from "../lib/icons.js";

/** @typedef {import("../types").WorkerCard} WorkerCard */
/** @typedef {import("../types").WorkerTest} WorkerTest */
/** @typedef {Map<string, WorkerTest>} Tests */
/**
 * @typedef {{
 *   name: string, value: (worker: WorkerCard, tests: Tests) => string | number | null,
 *   draw?: (worker: WorkerCard, tests: Tests) => Node | string, largestFirst?: boolean,
 * }} Column
 */

export const NOTHING = "–";
const URGENCY = ["failing", "degraded", "unknown", "ok", "off"]; // of the column Test: what needs a look first

/** @type {Column[]} */
export const COLUMNS = [
  { name: "Name", value: (worker) => worker.name, draw: drawName },
  { name: "Kind", value: (worker) => worker.label },
  { name: "What it does", value: (worker) => worker.description },
  { name: "Effects", value: (worker) => (worker.may_have_effects ? "may change" : "only reads") },
  { name: "Test", value: (worker, tests) => URGENCY.indexOf(readState(worker, tests).light), draw: drawState },
  { name: "Calls", value: (worker) => worker.calls, draw: (worker) => count(worker.calls), largestFirst: true },
  { name: "Success", value: (worker) => worker.success, draw: (worker) => percent(worker.success), largestFirst: true },
  { name: "Median", value: (worker) => worker.median_latency_s, draw: (worker) => seconds(worker.median_latency_s) || NOTHING, largestFirst: true },
  { name: "Cost", value: costOf, draw: drawCost, largestFirst: true },
];

/**
 * Workers in the order of a column; those without a value stand last either way.
 * @param {WorkerCard[]} workers
 * @param {Tests} tests
 * @param {{ column: string, descending: boolean }} sort "" keeps the order of the pool
 */
export function sortWorkers(workers, tests, { column, descending }) {
  const chosen = COLUMNS.find(({ name }) => name === column);
  if (!chosen) return workers;
  return [...workers].sort((one, other) => {
    const [left, right] = [chosen.value(one, tests), chosen.value(other, tests)];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    const order = typeof left === "number" ? left - Number(right) : left.localeCompare(String(right));
    return descending ? -order : order;
  });
}

/** @param {WorkerCard} worker */
function drawName(worker) {
  const open = button("", () => {}, "pool-row-name");
  open.append(el("span.page-badge", {}, icon(kindIcon(worker))), el("span", {}, worker.name));
  open.dataset.key = `open-${worker.name}`;
  return open;
}

/**
 * @param {WorkerCard} worker
 * @param {Tests} tests
 */
function drawState(worker, tests) {
  const { light, word, path, title } = readState(worker, tests);
  return el("span.page-health", { "data-health": light, title }, icon(path), el("b", {}, word));
}

/**
 * What a test said since the page was opened, or else the worker's light.
 * @param {WorkerCard} worker
 * @param {Tests} tests
 */
function readState(worker, tests) {
  const test = worker.enabled ? tests.get(worker.name) : undefined;
  if (test) {
    const isOk = test.status === "OK";
    const word = isOk ? (test.how === "call" ? "Answered" : "Probed") : "Failed";
    return { light: isOk ? "ok" : "failing", word, path: STATUSES[test.status][1], title: test.text };
  }
  const light = worker.enabled ? worker.light.light : "off";
  const [word, path] = LIGHTS[light];
  return { light, word, path, title: worker.light.sentence };
}

/** @param {number | null} share */
function percent(share) {
  return share === null ? NOTHING : `${Math.round(share * 100)} %`;
}

/** @param {WorkerCard} worker */
function drawCost(worker) {
  const cost = costOf(worker);
  return cost === null ? NOTHING : dollars(cost);
}

/**
 * US dollars of a call; null where it is not known.
 * @param {WorkerCard} worker
 */
function costOf(worker) {
  const hasPrice = worker.price_in || worker.price_out || worker.price_call;
  return worker.cost_call ?? (worker.free || (worker.place === "here" && !hasPrice) ? 0 : null);
}
