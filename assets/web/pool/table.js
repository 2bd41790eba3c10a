// The pool as a table: a worker is a row, its columns sort, and a row opens the worker's card.

import { button, select } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { workerCard } from "./card.js";
import { COLUMNS, NOTHING, sortWorkers } from "./table_columns.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */
/** @typedef {import("../types").WorkerCard} WorkerCard */
const VIEWS = [["cards", "Cards"], ["table", "Table"]];
const STORED_VIEW = "podium-pool-view";
/** Which view the person chose last. */
export function recallView() {
  return localStorage.getItem(STORED_VIEW) === "table" ? "table" : "cards";
}

/**
 * The switch between cards and table.
 * @param {PoolPage} page
 */
export function viewSwitch(page) {
  const group = el("div.pool-view", { role: "group", "aria-label": "View" });
  for (const [view, label] of VIEWS) {
    const choice = button(label, () => {
      localStorage.setItem(STORED_VIEW, view);
      page.view = view;
      page.drawTools();
      page.drawGrid();
      page.tools.querySelector(`[data-key="view-${view}"]`)?.focus();
    }, "page-chip");
    choice.setAttribute("aria-pressed", String(page.view === view));
    choice.dataset.key = `view-${view}`;
    group.append(choice);
  }
  return group;
}

/**
 * @param {PoolPage} page
 * @param {WorkerCard[]} workers
 */
export function workerTable(page, workers) {
  const { column, descending } = page.sort;
  const line = el("tr");
  for (const { name, largestFirst = false } of COLUMNS) {
    const head = el("th", { scope: "col", "data-name": name });
    const sort = button(name, () => sortBy(page, name, column === name ? !descending : largestFirst), "traces-sort");
    sort.dataset.key = `sort-${name}`;
    if (column === name) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    head.append(sort);
    line.append(head);
  }
  const rows = sortWorkers(workers, page.tests, page.sort).map((worker) => workerRow(page, worker));
  const table = el("table.pool-table", {}, el("thead", {}, line), el("tbody", {}, ...rows));
  return el("div.pool-table-frame", {}, sortPicker(page), table);
}

/**
 * Show a worker's card in the drawer.
 * @param {PoolPage} page
 * @param {string} name
 */
function openCard(page, name) {
  const frame = el("div.pool-opened", { "data-name": name }, workerCard(page, page.worker(name)));
  page.drawer.open(name, [frame]);
}

/**
 * Draw the card in the drawer anew, where one is open.
 * @param {PoolPage} page
 */
export function redrawOpenCard(page) {
  const frame = page.drawer.node.querySelector(".pool-opened");
  if (!page.drawer.node.open || !frame) return;
  const worker = page.worker(frame.dataset.name || "");
  const focused = document.activeElement?.dataset?.key;
  if (!worker) return page.drawer.close();
  frame.replaceChildren(workerCard(page, worker));
  if (focused) frame.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

/**
 * @param {PoolPage} page
 * @param {string} column
 * @param {boolean} descending
 */
function sortBy(page, column, descending) {
  page.sort = { column, descending };
  page.drawGrid();
}

/**
 * On a phone, where the table has no head: what it is sorted by.
 * @param {PoolPage} page
 */
function sortPicker(page) {
  const options = [["", "Order of the pool"], ...COLUMNS.map(({ name }) => [name, name])];
  const picker = select(options, page.sort.column, (column) => {
    sortBy(page, column, COLUMNS.find(({ name }) => name === column)?.largestFirst || false);
  });
  picker.dataset.key = "sort";
  return el("label.pool-sort", {}, "Sort by", picker);
}

/**
 * @param {PoolPage} page
 * @param {WorkerCard} worker
 */
function workerRow(page, worker) {
  const row = el("tr", { "data-name": worker.name, "data-role": worker.role });
  row.classList.toggle("page-off", !worker.enabled);
  row.classList.toggle("pool-linked", worker.name === page.linked);
  for (const { name, value, draw } of COLUMNS) {
    const content = draw ? draw(worker, page.tests) : String(value(worker, page.tests));
    const cell = el("td", { "data-name": name, ...(typeof content === "string" ? { title: content } : {}) }, content);
    cell.classList.toggle("pool-nothing", [NOTHING, "0"].includes(cell.textContent || ""));
    row.append(cell);
  }
  row.addEventListener("click", () => openCard(page, worker.name)); // a press of the name bubbles up to here
  return row;
}
