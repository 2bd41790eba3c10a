// Buttons that are busy, drawers that close, and links that are copied or taken back.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Drawer, busy } from "../../assets/web/lib/controls.js";
import { copyButton, el, icon } from "../../assets/web/lib/dom.js";
import { shareLine } from "../../assets/web/lib/share_line.js";
import { holdRequests, openFakePage, settle } from "./fake_page.js";

test("a drawer closes at a press on the veil, not at one that began or ended inside", async () => {
  openFakePage();
  const { node } = new Drawer();
  Object.assign(node, { getBoundingClientRect: () => ({ left: 10, right: 20, top: 0, bottom: 50 }) });
  const veil = { clientX: 5, clientY: 5 };
  const padding = { clientX: 11, clientY: 5 };
  for (const [began, ended, open] of [[padding, padding, true], [padding, veil, true], [veil, padding, true], [veil, veil, false]]) {
    node.open = true;
    await node.hear("pointerdown", began);
    await node.hear("click", ended);
    assert.equal(node.open, open);
  }
});

test("a busy button gets its icon back, and keeps what the work has drawn on it", async () => {
  openFakePage();
  const sign = icon("M0 0");
  const node = el("button", {}, sign, "Start");
  await busy(node, "Starting …", () => assert.equal(node.textContent, "Starting …"));
  assert.deepEqual([node.firstChild === sign, node.textContent, node.disabled], [true, "Start", false]);
  await busy(node, "Starting …", () => (node.textContent = "Go on"));
  assert.equal(node.textContent, "Go on");
});

test("a button says that nothing was copied where the browser lets no page copy", async () => {
  openFakePage();
  const node = /** @type {any} */ (copyButton("text"));
  await node.click(); // as over plain http, there is no clipboard
  assert.equal(node.textContent, "Not copied");
});

test("a link that cannot be taken back says why", async () => {
  openFakePage();
  const held = holdRequests();
  const line = shareLine(/** @type {any} */ ({ id: "l", mine: true, expires_at: "2026-01-01" }), async () => {});
  line.querySelector("button").click();
  await settle();
  await held[0].fail();
  assert.match(line.textContent, /The studio does not answer.*Take back/);
});
