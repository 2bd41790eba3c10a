// The palette that goes to whatever has a name.

import assert from "node:assert/strict";
import { test } from "node:test";

import { openPalette } from "../../assets/web/search/palette.js";
import { holdRequests, openFakePage, settle } from "./fake_page.js";

const hits = (title) => ({ ok: true, hits: [{ kind: "page", title, note: "", address: `/${title}` }] });

test("Enter goes to what was typed, not to what was found for fewer letters", async () => {
  const document = openFakePage();
  document.querySelector = () => null;
  const held = holdRequests();
  openPalette();
  await held.shift().reply(hits("run"));
  const { body } = document;
  const input = body.querySelector("input");
  const seen = [];
  const watch = () => body.inside.filter((node) => node.tagName === "A").forEach((node) => (node.click = () => seen.push(node.getAttribute("href"))));
  watch();
  input.value = "train";
  input.hear("keydown", { key: "Enter" });
  await settle();
  assert.deepEqual([seen, held[0].body.text], [[], "train"]);
  await held.shift().reply(hits("train"));
  watch();
  await input.hear("keydown", { key: "Enter" });
  await settle();
  assert.deepEqual(seen, ["/train"]);
});
