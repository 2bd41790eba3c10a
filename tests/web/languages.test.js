// The page in other languages: what a catalogue makes of a text, and that none lacks one.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { Catalogue } from "../../assets/web/languages/catalogue.js";
import { findTexts, listTexts } from "../../scripts/list_texts.mjs";

const FOLDER = new URL("../../assets/web/languages/", import.meta.url);
/** @param {string} name */
const read = (name) => JSON.parse(readFileSync(new URL(name, FOLDER), "utf8"));
const TEXTS = new Set([...listTexts(), ...read("others.json")]);
const CATALOGUES = readdirSync(FOLDER).filter((name) => /^[a-z]{2}\.json$/.test(name));

/** How often each placeholder stands in a text: {} in a row, or {1}, {2} in any order.
 * @param {string} text */
function placesOf(text) {
  const numbers = [...text.matchAll(/\{(\d+)\}/g)].map((found) => Number(found[1]));
  return numbers.length ? new Set(numbers).size : text.split("{}").length - 1;
}

test("a text, and what is put into one, are translated with the space around them", () => {
  const german = new Catalogue({ "Run": "Starten", "{} of {} right": "{} von {} richtig", "{} before {}": "{2} nach {1}", "Train": "Trainieren" });
  assert.equal(german.translate("  Run\n"), "  Starten\n");
  assert.equal(german.translate("12 of 21 right"), "12 von 21 richtig");
  assert.equal(german.translate("Run before Train"), "Trainieren nach Starten");
  assert.equal(german.translate("Running"), null);
  assert.equal(german.translate(" "), null);
});

test("a pattern of few letters takes no sentence apart", () => {
  const german = new Catalogue({ "{} of {}": "{} von {}", "step {}": "Schritt {}" });
  assert.equal(german.translate("3 of 5"), "3 von 5");
  assert.equal(german.translate("What is the capital of Norway, and of its neighbours?"), null);
  assert.equal(german.translate("step 3"), "Schritt 3");
  assert.equal(german.translate("step on the brake"), null);
});

test("facts with dots between them are texts of their own", () => {
  const german = new Catalogue({ "{} tasks": "{} Aufgaben", "local": "lokal", "made for {} and {} alone": "nur für {} und {}" });
  assert.equal(german.translate("Clock · local · 3 tasks"), "Clock · lokal · 3 Aufgaben");
  assert.equal(german.translate("made for a · b and c alone"), null);
});

test("the pattern with the most letters goes first", () => {
  const german = new Catalogue({ "{} tasks": "{} Aufgaben", "{} tasks to learn": "{} Lernaufgaben" });
  assert.equal(german.translate("4 tasks to learn"), "4 Lernaufgaben");
});

test("a text that is no sentence of a page's is not looked at", () => {
  const german = new Catalogue({ "{} of {} is what was put into it": "{} von {} ist, was da steht" });
  assert.equal(german.translate("a of b is what was put into it"), "a von b ist, was da steht");
  assert.equal(german.translate(`${"a of ".repeat(500)}b is what was put into it`), null);
});

test("texts and names of the machine's are kept apart", () => {
  const code = `
    import { el } from "../lib/dom.js";
    const node = el("button.page-button", { type: "button", title: "Save it" }, "save", icon("M0 0h24"));
    if (row.state === "Not this") node.classList.add("is-chosen");
    node.textContent = \`\${count} runs\`;
    fetch("/api/Runs", { method: "POST" });
    throw new Error(node.dataset.problem ?? "There is no run");`;
  assert.deepEqual([...findTexts(code)].sort(), ["Save it", "There is no run", "save", "{} runs"]);
});

test("each language but English has a catalogue", () => {
  const languages = Object.keys(read("names.json")).filter((code) => code !== "en");
  assert.ok(languages.length);
  assert.deepEqual(CATALOGUES, languages.map((code) => `${code}.json`).sort());
});

for (const name of CATALOGUES) {
  test(`${name} lacks no text, has none that no page shows, and keeps what is put in`, () => {
    const catalogue = read(name);
    assert.deepEqual([...TEXTS].filter((text) => !(text in catalogue)), [], "translate these");
    assert.deepEqual(Object.keys(catalogue).filter((text) => !TEXTS.has(text)), [], "take these out");
    const broken = Object.entries(catalogue).filter(([text, translation]) => !translation.trim() || placesOf(translation) !== placesOf(text));
    assert.deepEqual(broken, []);
  });
}
