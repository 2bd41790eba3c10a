// A test of a worker: it is called with a sample input, or it is probed and the test says why it was not called.

import { plain } from "../lib/reply.js";
import { count, el, icon, seconds } from "../lib/dom.js";
import { STATUSES } from "../lib/icons.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */

const AT_A_TIME = 3;

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
  const reply = await page.command({ action: "test_worker", name, tried: page.tried.get(name)?.values || null });
  return reply.test || { status: "EXEC_ERR", how: "call", latency_s: null, input: "", text: plain(reply.problems), note: "" };
}

/**
 * Test every worker that is switched on, a few at a time, and say how many answered.
 * @param {PoolPage} page
 */
export async function testAll(page) {
  const { name: pool, workers } = page.state.pool;
  const names = workers.filter((worker) => worker.enabled).map((worker) => worker.name);
  const waiting = [...names];
  let done = 0;
  const work = async () => {
    for (let name = waiting.shift(); name; name = waiting.shift()) {
      const test = await testWorker(page, name);
      if (page.state.pool?.name !== pool) return;
      page.tests.set(name, test);
      page.showTesting(`Tested ${count((done += 1))} of ${count(names.length)} …`);
      page.drawGrid();
    }
  };
  page.showTesting(`Tested 0 of ${count(names.length)} …`);
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  page.showTesting("");
  if (page.state.pool?.name !== pool) return;
  await page.show();
  const tests = names.map((name) => page.tests.get(name));
  page.say(describeTests(tests), tests.some((test) => test?.status !== "OK"));
}

/** @param {(import("../types").WorkerTest | undefined)[]} tests */
function describeTests(tests) {
  const answered = tests.filter((test) => test?.how === "call" && test.status === "OK").length;
  const probed = tests.filter((test) => test?.how === "probe" && test.status === "OK").length;
  const failed = tests.length - answered - probed;
  return [
    `${count(answered)} of ${count(tests.length)} ${tests.length === 1 ? "worker" : "workers"} answered a call`,
    probed && `${count(probed)} only probed`, failed && `${count(failed)} failed`,
  ].filter(Boolean).join(", ");
}

/** @param {import("../types").WorkerTest} test */
export function testResult(test) {
  const [outcome, path] = STATUSES[test.status];
  const isProbe = test.how === "probe";
  const word = isProbe ? (test.status === "OK" ? "Probed" : "Not ready") : outcome;
  const status = el("span.podium-status", {}, icon(path), el("b", {}, word));
  const message = [isProbe ? "not called" : "called", seconds(test.latency_s)].filter(Boolean).join(" · ");
  const head = el("div.page-out-head", { "data-status": test.status }, status, el("span", {}, message));
  if (test.input) head.append(el("span.pool-input", { title: test.input }, `“${test.input}”`));
  return el(
    "div.pool-test", { role: "status", "data-status": test.status }, head,
    el("pre.page-value", { tabindex: "0", "aria-label": "Result" }, test.text), ...(test.note ? [el("p.pool-test-note", {}, test.note)] : []),
  );
}
