// Figures, words and schemas as every page writes and reads them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { count, dollars, seconds } from "../../assets/web/lib/dom.js";
import { resolveRule } from "../../assets/web/lib/form.js";
import { describeSteps, isOver } from "../../assets/web/lib/outcome.js";

test("a time is never written with 60 seconds, and keeps three digits", () => {
  const times = [[null, ""], [0.0042, "4.2 ms"], [0.05, "50 ms"], [9.999, "10.0 s"], [59.96, "1 min 0 s"], [119.7, "2 min 0 s"]];
  for (const [value, text] of times) assert.equal(seconds(value), text);
});

test("money below a cent keeps its figures", () => {
  assert.deepEqual([dollars(0), dollars(0.00012), dollars(1.5)], ["$0", "$0.00012", "$1.50"]);
  assert.equal(count(1234567), "1,234,567");
});

test("steps are told apart from other tries", () => {
  assert.equal(describeSteps({ steps: 1, failed: 0, tries: 0 }, "step"), "1 step");
  assert.equal(describeSteps({ steps: 2, failed: 1, tries: 1 }, "step"), "2 steps (1 failed), 1 other try");
});

test("an episode that waits for approval is not over", () => {
  assert.deepEqual(["running", "waiting", "ended"].map((state) => isOver({ state })), [false, false, true]);
  assert.equal(isOver(undefined), false);
});

test("a nullable reference keeps its own title and default", () => {
  const schema = { $defs: { Judge: { type: "object", description: "Who judges." } } };
  const rule = { anyOf: [{ $ref: "#/$defs/Judge" }, { type: "null" }], title: "Judge", default: null };
  const full = resolveRule(rule, schema);
  assert.deepEqual([full.type, full.title, full.default, full.nullable], ["object", "Judge", null, true]);
});
