// The order of the rows in the pool's table.

import assert from "node:assert/strict";
import { test } from "node:test";

import { sortWorkers } from "../../assets/web/pool/table_columns.js";

const WORKERS = [
  { name: "mail", enabled: true, light: { light: "ok" }, success: null, calls: 0 },
  { name: "atlas", enabled: true, light: { light: "failing" }, success: 0.5, calls: 4 },
  { name: "zoo", enabled: false, light: { light: "ok" }, success: 1, calls: 12 },
];
const TESTED = new Map([["mail", { status: "EXEC_ERR", how: "call", text: "no server" }]]);

/** @param {string} column @param {boolean} descending @param {Map<string, any>} tests */
function order(column, descending = false, tests = new Map()) {
  return sortWorkers(/** @type {any} */ (WORKERS), tests, { column, descending }).map(({ name }) => name);
}

test("rows keep the order of the pool until a column is chosen", () => {
  assert.deepEqual(order(""), ["mail", "atlas", "zoo"]);
  assert.deepEqual(order("Name"), ["atlas", "mail", "zoo"]);
  assert.deepEqual(order("Calls", true), ["zoo", "atlas", "mail"]);
});

test("a worker without a value stands last either way", () => {
  assert.equal(order("Success").at(-1), "mail");
  assert.equal(order("Success", true).at(-1), "mail");
});

test("what fails stands first by its test, and a test of this visit outweighs the light", () => {
  assert.deepEqual(order("Test"), ["atlas", "mail", "zoo"]);
  assert.deepEqual(order("Test", false, TESTED).slice(0, 2).sort(), ["atlas", "mail"]);
  assert.deepEqual(order("Test", true, TESTED)[0], "zoo");
});
