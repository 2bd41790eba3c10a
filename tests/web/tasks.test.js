// The Tasks page: what is typed and chosen there stays, and keys do nothing twice.

import assert from "node:assert/strict";
import { test } from "node:test";

import { mount } from "../../assets/web/tasks/page.js";
import { holdRequests, openFakePage, settle } from "./fake_page.js";

const line = (id, concern = "") => ({
  id, query: `What is ${id}?`, answer: "", split: "train", concern, reason: "", marks: [], evidence: [], more: 0, also: [], choices: [], group: id,
});
const SETTINGS = { retries: 0 };
const state = (pool, rows) => ({ pool, pools: ["p", "q"], rows, total: rows.length, splits: ["train"], settings: SETTINGS, aside: [] });

/** The page with two candidates, and its requests from then on. */
async function openTasks() {
  const document = openFakePage();
  const held = holdRequests();
  mount(/** @type {any} */ (document.body));
  await held.shift().reply({ ok: true, candidates: state("p", [line("a"), line("b", "answer")]) });
  const { body } = document;
  const chip = (text) => body.inside.find((node) => node.className === "page-chip" && node.textContent.startsWith(text));
  const rows = () => body.inside.filter((node) => node.className === "tasks-row");
  const press = (key, more = {}) => document.hear("keydown", { key, ...more });
  return { body, held, chip, rows, press };
}

test("what is typed in a question stays when another view is looked at", async () => {
  const { chip, rows } = await openTasks();
  rows()[1].querySelectorAll("input")[1].value = "typed";
  await chip("Ready").click();
  assert.equal(rows().length, 1);
  await chip("All").click();
  assert.equal(rows()[1].querySelectorAll("input")[1].value, "typed");
});

test("a key that is pressed again before the reply strikes nothing twice, nor does one that is held down", async () => {
  const { body, held, press } = await openTasks();
  await press("s", { repeat: true });
  assert.equal(held.length, 0);
  press("s");
  press("s");
  press("a");
  await settle();
  assert.deepEqual(held.map(({ body: sent }) => sent.ids), [["a"]]);
  await held.shift().reply({ ok: true, message: "1 struck", struck: ["a"], candidates: state("p", [line("b")]) });
  const named = body.inside.filter((node) => node.tagName === "BUTTON").map((node) => node.textContent);
  assert.ok(named.includes("Strike") && named.includes("Accept") && named.includes("Undo"));
  press("s");
  await settle();
  assert.deepEqual(held[0].body.ids, ["b"]);
});

test("the pool that was chosen last is shown, whichever reply comes first, and one that is refused is not", async () => {
  const { body, held, rows } = await openTasks();
  const pool = body.querySelector("select");
  for (const name of ["q", "p"]) {
    pool.value = name;
    pool.hear("change");
  }
  await held[1].reply({ ok: true, candidates: state("p", [line("new")]) });
  await held[0].reply({ ok: true, candidates: state("q", [line("x"), line("y")]) });
  assert.deepEqual([pool.value, rows().length], ["p", 1]);
  pool.value = "q";
  pool.hear("change");
  await held[2].fail();
  assert.equal(pool.value, "p");
});
