// What the Publish page does with choices that change under it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { mount } from "../../assets/web/publish/page.js";
import { holdRequests, openFakePage, settle } from "./fake_page.js";

const OPENED = { ok: true, pools: ["starter"], checkpoints: [["oracle", "oracle"]], policies: [], hardware: ["cpu-basic"], licences: ["mit"] };
const PREVIEW = { ok: true, bundles: [{ kind: "space", size: 1, files: [], left_out: [] }], preview: "p", secrets: [], runs: 0, texts: [] };

/** @param {any} root @param {string} text */
const press = (root, text) => root.inside.find((node) => node.tagName === "BUTTON" && node.textContent === text);

test("choices that change while a preview is prepared cannot be published by it", async () => {
  const document = openFakePage();
  const held = holdRequests();
  mount(/** @type {any} */ (document.body));
  await held.shift().reply(OPENED);
  held.length = 0;
  const { body } = document;
  for (const input of body.querySelectorAll("input")) if (input.type === "text") input.value = "demo";
  const preview = press(body, "Preview every file").click();
  await settle();
  const asked = held.find(({ address }) => address.endsWith("/preview"));
  await body.inside.find((node) => node.className === "publish-card publish-form").hear("input");
  await asked.reply(PREVIEW);
  await preview;
  assert.equal(press(body, "Publish").disabled, true);
});
