// What forms make of what stands in their boxes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { EvaluationForm } from "../../assets/web/compare/evaluation_form.js";
import { keyField } from "../../assets/web/lib/fields.js";
import { Form } from "../../assets/web/lib/form.js";
import { openFakePage, settle } from "./fake_page.js";

const CHOICES = {
  pool: "starter", orchestrators: [{ name: "a" }], baselines: [], families: ["f"], held_out: [], conditions: ["seen"], workers: [],
};
const BAD = { validity: { badInput: true }, value: "" };

/** @param {string} address @param {any} page */
function openEvaluation(address, page = {}) {
  openFakePage(address);
  const form = new EvaluationForm(/** @type {any} */ ({ label: (name) => name, ...page }));
  form.build(/** @type {any} */ (CHOICES));
  return form;
}

test("a number that is none is told at its field, and is not left out as if nothing were written", () => {
  openFakePage();
  const form = new Form({ properties: { max_cost: { type: "number" } } });
  assert.deepEqual(form.read(), {});
  Object.assign(form.fields.get("max_cost").input, BAD);
  assert.throws(() => form.read(), /write a number/);
});

test("a cap that is no number does not become none", () => {
  const form = openEvaluation("http://podium/compare?o=a");
  assert.deepEqual([form.draft().count, form.draft().max_cost], [60, null]);
  Object.assign(form.numbers.max_cost.querySelector("input"), BAD);
  assert.equal(form.draft().max_cost, "?");
});

test("an orchestrator that is chosen without being offered has a box, so that it can be left out", () => {
  const form = openEvaluation("http://podium/compare?o=a&o=gone");
  form.root.open = false;
  form.follow(["late"]);
  assert.deepEqual([...form.fields.orchestrators].map(([name, box]) => [name, box.checked]), [["a", true], ["gone", true], ["late", true]]);
  form.tick("orchestrators", "gone", false);
  assert.deepEqual(form.draft().orchestrators, ["a", "late"]);
});

test("a start that is prevented asks again what is missing, and one that is under way is not sent twice", async () => {
  const asked = [];
  const ask = async ({ action }) => {
    asked.push(action);
    return action === "check" ? { ok: true, missing: [], yaml: "" } : { ok: true, message: "", job: "j" };
  };
  const form = openEvaluation("http://podium/compare?o=a", { ask, say: () => {}, showEvaluation: () => {} });
  form.root.open = true;
  form.go.setAttribute("aria-disabled", "true");
  await form.submit();
  await Promise.all([form.submit(), form.submit()]);
  assert.deepEqual(asked, ["check", "evaluate"]);
});

test("a reference that could not be checked has no tick of the one before", async () => {
  openFakePage();
  let reply = /** @type {any} */ ({ ok: true, resolves: true, sentence: "It is set." });
  const { node, input } = keyField({ send: async () => reply }, { label: "Key", value: "env:OLD" });
  await settle();
  assert.match(node.textContent, /It is set/);
  reply = { ok: false, problems: [["", "No answer."]] };
  input.value = "env:NEW";
  await input.hear("change");
  await settle();
  const state = node.inside.find((part) => part.className === "form-key-state");
  assert.deepEqual([state.textContent, state.dataset.state], ["No answer.", "missing"]);
});
