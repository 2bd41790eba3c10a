// A test of a worker: its sample is called, or it is probed.

import { plain } from "../lib/reply.js";
import { el, icon, seconds } from "../lib/dom.js";
import { STATUSES } from "../lib/icons.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */

/**
 * Test a worker and show what came of it on its card.
 * @param {PoolPage} page
 * @param {string} name
 * @param {HTMLButtonElement | null} node
 */
export async function testOnCard(page, name, node = null) {
  node?.classList.add("page-busy");
  if (node) node.disabled = true;
  const test = await testWorker(page, name);
  page.tests.set(name, test);
  await page.show();
}

/**
 * Call the worker's sample, or probe it. Never throws: what went wrong is the result.
 * @param {PoolPage} page
 * @param {string} name
 * @returns {Promise<import("../types").WorkerTest>}
 */
export async function testWorker(page, name) {
  const reply = await page.command({ action: "test_worker", name });
  return reply.test || { status: "EXEC_ERR", how: "call", latency_s: null, asked: "", text: plain(reply.problems) };
}

/** @param {import("../types").WorkerTest} test */
export function testResult(test) {
  const [outcome, path] = STATUSES[test.status];
  const word = test.how === "probe" && test.status === "OK" ? "There" : outcome; // what was not called has not worked
  const status = el("span.podium-status", {}, icon(path), el("b", {}, word));
  const message = [test.how === "probe" ? "looked at, not called" : "called", seconds(test.latency_s)].filter(Boolean).join(" · ");
  const head = el("div.page-out-head", { "data-status": test.status }, status, el("span", {}, message));
  if (test.asked) head.append(el("span.pool-asked", { title: test.asked }, `“${test.asked}”`));
  return el(
    "div.pool-test", { role: "status", "data-status": test.status }, head,
    el("pre.page-value", { tabindex: "0", "aria-label": "Result" }, test.text),
  );
}
