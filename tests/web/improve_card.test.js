// The card Improve of the Train page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ImproveCard } from "../../assets/web/train/improve_card.js";
import { openFakePage } from "./fake_page.js";

const IMPROVEMENT = {
  pool: "new", learnt: 3, held_out: 1, set_aside: 0, state: "", every: "off", has_enough: true, reasons: [], serving: "oracle", candidate: "", hours: 0, cost: 0,
};

test("a reply about a pool that was left does not hide the card of the one that is shown", async () => {
  openFakePage();
  const replies = {};
  const ask = ({ pool }) => new Promise((reply) => (replies[pool] = reply));
  const card = new ImproveCard(/** @type {any} */ ({ ask }));
  const shown = [card.show("old"), card.show("new")];
  replies.new({ ok: true, improvement: IMPROVEMENT });
  await shown[1];
  replies.old({ ok: true, improvement: { ...IMPROVEMENT, pool: "old" } });
  await shown[0];
  assert.equal(card.root.hidden, false);
  assert.match(card.fresh.textContent, /^new has/);
});
