// The credit beside a run.

import assert from "node:assert/strict";
import { test } from "node:test";

import { attach } from "../../assets/web/credit/credit.js";
import { el } from "../../assets/web/lib/dom.js";
import { holdRequests, openFakePage, settle } from "./fake_page.js";

test("a credit that could not be measured is not told beside another run", async () => {
  openFakePage();
  const held = holdRequests();
  const run = (id) => ({ episode: { id, state: "ended" }, graph: { nodes: [1] } });
  const view = { state: run("one"), below: el("div"), full: el("div") };
  attach(/** @type {any} */ (view));
  const measured = view.below.querySelector("button").click();
  await settle();
  view.state = run("two");
  await view.full.hear("marked");
  await held[0].fail();
  await measured;
  assert.doesNotMatch(view.below.textContent, /does not answer/);
});
