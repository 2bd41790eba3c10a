// What the Serve page says while the studio comes and goes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ServePage } from "../../assets/web/serve/page.js";
import { holdRequests, openFakePage } from "./fake_page.js";

const STATE = { pools: [], orchestrators: [], defaults: {}, servers: [], deployments: [], tokens: [], port: 8000 };

test("that the studio does not answer is said until it answers, and nothing else is wiped away then", async () => {
  const document = openFakePage();
  const held = holdRequests();
  const page = new ServePage(/** @type {any} */ (document.body));
  const load = async (answers) => {
    const loaded = page.load();
    await (answers ? held.shift().reply(STATE) : held.shift().fail());
    await loaded;
    return page.message.textContent;
  };
  assert.match(await load(false), /does not answer/);
  assert.equal(await load(true), "");
  await load(false);
  page.say("Stopped.");
  assert.equal(await load(true), "Stopped.");
});
