// What belongs to a pool as a whole.

import assert from "node:assert/strict";
import { test } from "node:test";

import { openManage } from "../../assets/web/pool/settings.js";
import { openFakePage } from "./fake_page.js";

test("a pool that could not be shared read-only is not shown as shared", async () => {
  openFakePage();
  let parts = [];
  const page = {
    state: { role: "owner", read_only: false, pool: { name: "p" } }, act: async () => ({ ok: false, problems: [["", "no"]] }),
    send: async () => ({ ok: true, blocking: [], affected: [] }), drawer: { foot: () => "", open: (_title, given) => (parts = given) },
  };
  await openManage(/** @type {any} */ (page));
  const box = parts.find((part) => part.className === "pool-share").querySelector("input");
  box.checked = true;
  await box.hear("change");
  assert.equal(box.checked, false);
});
