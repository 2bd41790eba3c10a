// What an import added: each worker ready to be called, and tested at once where the person came with a text.

import { button } from "../lib/controls.js";
import { count, el, icon } from "../lib/dom.js";
import { ACTIONS } from "../lib/icons.js";
import { tryPanel } from "./worker_dialogs.js";
import { testResult, testWorker } from "./worker_test.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */

const MOST_TESTS = 6; // more at once is a wait; "Test all" on the page does the rest
const AT_A_TIME = 3;

/**
 * @param {PoolPage} page
 * @param {string[]} names
 * @param {boolean} tests
 */
export async function openAdded(page, names, tests = false) {
  const boxes = names.map((name) => addedBox(page, name));
  if (!tests) await boxes[0].fill();
  boxes[0].node.open = true;
  const title = names.length === 1 ? `Added ${names[0]}` : `Added ${count(names.length)} workers`;
  const done = button("Done", () => page.drawer.close(), tests ? "page-primary" : "");
  const lead = el("p.page-lead", { role: "status" }, tests ? "Testing …" : "Call one to see that it works.");
  page.drawer.open(title, [lead, ...boxes.map((box) => box.node), page.drawer.foot(done)], {
    focus: boxes[0].node.querySelector(".page-primary") || done,
  });
  if (tests) lead.textContent = await testBoxes(page, boxes);
}

/**
 * @param {PoolPage} page
 * @param {string} name
 */
function addedBox(page, name) {
  const worker = page.worker(name);
  const summary = el("summary", {}, icon(ACTIONS.check), el("b", {}, name), el("span", {}, worker.description));
  const node = el("details.pool-import-added", { "data-name": name }, summary);
  const fill = async () => {
    if (node.dataset.filled) return;
    node.dataset.filled = "1";
    const panel = await tryPanel(page, worker);
    if (panel) node.append(...panel.parts, panel.call);
  };
  node.addEventListener("toggle", () => node.open && fill());
  return { name, node, summary, fill };
}

/**
 * Test the first of what was added; what came of it stands in each box. Returns a sentence about all.
 * @param {PoolPage} page
 * @param {{ name: string, node: HTMLDetailsElement, summary: HTMLElement }[]} boxes
 */
async function testBoxes(page, boxes) {
  const waiting = boxes.slice(0, MOST_TESTS);
  const number = waiting.length;
  let well = 0;
  const work = async () => {
    for (let box = waiting.shift(); box; box = waiting.shift()) {
      const test = await testWorker(page, box.name);
      page.tests.set(box.name, test);
      well += test.status === "OK" ? 1 : 0;
      box.summary.after(testResult(test));
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  await page.show();
  const rest = boxes.length > number ? ` The first ${count(number)} were tested; “Test all” on the page tests the others.` : "";
  if (number === 1) return well ? "It is ready." : "It is not ready yet.";
  return `${count(well)} of ${count(number)} are ready.${rest}`;
}
