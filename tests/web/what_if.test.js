// The draft of a plan while a person edits it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Draft } from "../../assets/web/what_if/draft.js";

const step = (id, worker, access = [], quote = "") => ({ id, worker, arguments: { text: quote || "x" }, access, problem: null, status: "OK" });
const draft = () => new Draft({ round: 1, steps: [step(1, "a"), step(2, "b", [1]), step(3, "c", [1, 2], "$1")], answer: "$3" }, [], 4);

test("an untouched draft has no edits", () => {
  assert.deepEqual(draft().edits(), []);
  assert.deepEqual([1, 2, 3].map((id) => draft().isChanged(id)), [false, false, false]);
});

test("a step that is taken away is seen no more, except by those that quote it", () => {
  const edited = draft();
  edited.remove(1);
  assert.deepEqual([edited.steps.get(2).access, edited.steps.get(3).access], [[], [1, 2]]);
  edited.restore(1);
  assert.equal(edited.steps.get(1).removed, false);
});

test("a new step has its required arguments and goes without a trace", () => {
  const edited = draft();
  const id = edited.add("d", { properties: { text: {}, more: {} }, required: ["text"] });
  assert.deepEqual([id, edited.steps.get(id).arguments], [4, { text: "" }]);
  assert.ok(edited.edits().length);
  edited.remove(id);
  assert.deepEqual(edited.edits(), []);
});
