// The box for what a person has: settings of MCP servers, a document, a curl line, an address. The server says what a
// text is; what is known at once is offered at once, and what has to be asked or started waits for a click.

import { plain } from "../lib/reply.js";
import { busy, button, select } from "../lib/controls.js";
import { count, el, icon } from "../lib/dom.js";
import { keyField, textField } from "../lib/fields.js";
import { labelField } from "../lib/form.js";
import { ACTIONS } from "../lib/icons.js";
import { needs } from "../lib/rights.js";
import { checkField, linesField, openOffers, readInto, valuesOf } from "./imports.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */
/** @typedef {import("../types").PastedDocument} PastedDocument */
/** @typedef {import("../lib/reply.js").Problem} Problem */
/** @typedef {import("../lib/form.js").ReadableField} ReadableField */

const WAIT_MS = 300; // after the last key
const MAX_BYTES = 16_000_000; // as in pool_registry/pasted/read_text.py
const ACCEPTS =
  "mcpServers settings, an OpenAPI document or its address, OpenAI tools, a curl line, a Postman collection, a SKILL.md, an A2A card, a team of AutoGen Studio, an export of Agent Builder, the address of Ollama or vLLM";

/**
 * The box on the page: a text that is pasted or typed into it, or a file that is dropped on it, opens the drawer.
 * @param {PoolPage} page
 */
export function pasteBox(page) {
  const input = el("textarea.pool-paste-box", { rows: "1", spellcheck: "false", "aria-label": "Paste what you have", placeholder: `Paste what you have: ${ACCEPTS}`, "data-key": "paste" });
  const open = (/** @type {string} */ text) => {
    input.value = "";
    new PasteDialog(page, text).open();
  };
  input.addEventListener("input", () => input.value.trim() && open(input.value));
  input.addEventListener("dragover", (event) => event.preventDefault());
  input.addEventListener("drop", async (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    if (file.size > MAX_BYTES) return page.say(`${file.name} has ${count(file.size)} bytes; ${count(MAX_BYTES)} are the most`, true);
    open(await file.text());
  });
  input.hidden = true; // until there is a pool
  return needs(input, "pool/recognise");
}

class PasteDialog {
  /**
   * @param {PoolPage} page
   * @param {string} text
   */
  constructor(page, text) {
    this.page = page;
    this.latest = 0;
    const file = el("input", { type: "file", "aria-label": "A file of it" });
    this.text = linesField("What you have", "", "", 9);
    this.text.input.value = text;
    this.text.node.insertBefore(file, this.text.input);
    file.addEventListener("change", () => setTimeout(() => this.recognise(), WAIT_MS));
    readInto(file, this.text, MAX_BYTES);
    this.verdict = el("div.pool-paste-verdict", { role: "status" });
    this.settings = el("div.form-fields");
    this.general = el("div.form-general", { role: "alert" });
    this.go = needs(button("Go on", () => this.look(), "page-primary"), "pool/look_pasted");
    /** @type {Record<string, ReadableField>} */
    this.fields = {};
    this.label = "";
/** @type {number|undefined} */
    let timer;
    this.text.input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.recognise(), WAIT_MS);
    });
  }

  open() {
    this.show();
    return this.recognise(true);
  }

  show() {
    const foot = this.page.drawer.foot(button("Cancel", () => this.page.drawer.close()), this.go);
    const parts = [this.text.node, this.verdict, this.settings, this.general, foot];
    this.page.drawer.open("Add what you have", [el("div.form-fields", {}, ...parts)], { focus: this.text.input });
  }

  /**
   * Say what the text is. With `goOn`, what needs no choice is offered at once.
   * @param {boolean} goOn
   */
  async recognise(goOn = false) {
    const mine = ++this.latest;
    const reply = await this.page.send({ action: "recognise", pool: this.page.state.pool.name, text: this.text.input.value });
    if (mine !== this.latest) return null;
    this.general.textContent = "";
    this.text.say(reply.ok ? "" : plain(reply.problems).replace(/^text: /, ""));
    this.go.disabled = !reply.ok;
    if (!reply.ok) {
      this.verdict.replaceChildren();
      this.settings.replaceChildren();
      this.label = "";
      return null;
    }
    /** @type {PastedDocument} */
    const pasted = reply.pasted;
    this.draw(pasted, reply.models);
    const ready = pasted.offers.some((offer) => !offer.problem);
    const chooses = pasted.actions.length || pasted.keys || pasted.takes.includes("model") || lacksServer(pasted);
    if (goOn && ready && !chooses) return this.offer(pasted);
    const missing = pasted.actions.length || ready ? null : this.settings.querySelector("details[open] input");
    (missing || this.go).focus();
    return null;
  }

  /**
   * @param {PastedDocument} pasted
   * @param {import("../types").ModelChoice[]} models
   */
  draw(pasted, models) {
    const starts = pasted.actions.some((action) => action.startsWith("Starts "));
    this.go.textContent = starts ? "Start and look" : pasted.actions.length ? "Look" : "Go on";
    this.verdict.replaceChildren(
      el("p.pool-paste-label", {}, icon(ACTIONS.check), el("span", {}, "This is ", el("b", {}, pasted.label), ".")),
      ...(pasted.actions.length ? [el("ul.pool-paste-actions", {}, ...pasted.actions.map((action) => el("li", {}, action)))] : []),
      ...noteList([...pasted.notes, ...listReasons(pasted)]),
    );
    if (this.label === pasted.label && Boolean(this.fields.to_keyring) === pasted.keys > 0) return; // what was typed stays
    this.label = pasted.label;
    this.fields = makeSettings(this.page, pasted, models);
    const open = lacksServer(pasted) || (!pasted.actions.length && !pasted.offers.some((offer) => !offer.problem));
    const shown = ["model_of", "to_keyring"].filter((name) => name in this.fields);
    const others = Object.keys(this.fields).filter((name) => !shown.includes(name));
    const more = el("details.page-more", {}, el("summary", {}, "Key, address and more"), el("div.form-fields", {}, ...others.map((name) => this.fields[name].node)));
    more.open = open;
    more.hidden = !others.length;
    this.settings.replaceChildren(...shown.map((name) => this.fields[name].node), more);
  }

  /** Ask what has to be asked, and offer what came of it. */
  async look() {
    for (const field of Object.values(this.fields)) field.say("");
    this.general.textContent = "";
    let values;
    try {
      values = valuesOf(this.fields);
    } catch {
      return this.settings.querySelector(".form-wrong input, .form-wrong textarea")?.focus();
    }
    const request = { action: "look_pasted", pool: this.page.state.pool.name, text: this.text.input.value, ...values };
    const reply = await busy(this.go, "Looking …", () => this.page.send(request));
    /** @type {import("../types").OfferDocument[]} */
    const offers = reply.ok ? reply.pasted.offers : [];
    if (offers.some((offer) => !offer.problem)) return this.offer(reply.pasted);
    /** @type {Problem[]} */
    const problems = reply.ok ? offers.map((offer) => [offer.spec.name, offer.problem]) : reply.problems;
    const rest = problems.filter(([where, what]) => !(this.fields[where]?.say(what), where in this.fields));
    this.general.textContent = plain(rest.map(([where, what]) => [where === "text" ? "" : where, what]));
    return null;
  }

  /** @param {PastedDocument} pasted */
  offer(pasted) {
    openOffers(this.page, { again: () => this.show(), notes: noteList(pasted.notes), tests: true }, pasted.offers);
  }
}

/**
 * The settings that a text has a use for, by the names that the server takes.
 * @param {PoolPage} page
 * @param {PastedDocument} pasted
 * @param {import("../types").ModelChoice[]} models
 */
function makeSettings(page, pasted, models) {
  /** @type {Record<string, () => [string, ReadableField]>} */
  const makers = {
    model: () => ["model_of", modelChoice(models)],
    key: () => ["key", keyField(page, { label: "Key", about: "A reference, where it needs a key." })],
    server: () => ["server", textField({ label: "Server", about: "Where its operations or tools are called.", optional: true, placeholder: "https://host/v1" })],
    env: () => ["env", linesField("Environment", "Of a program: one NAME=value a line; a key as NAME=env:NAME.", "NAME=env:NAME", 2)],
    headers: () => ["headers", linesField("Headers", "Of an address: one a line; a key as NAME: env:NAME.", "X-API-Key: env:NAME", 2)],
    name: () => ["name", textField({ label: "Name", about: "What it is called in the pool.", optional: true })],
    private: () => ["private", checkField("Allow private addresses", "For what runs in the local network. This machine's own addresses need no permission.")],
  };
  const fields = Object.fromEntries(pasted.takes.map((name) => makers[name]()));
  if (pasted.keys) {
    const about = "Otherwise only their names are kept, and you set the variables yourself.";
    fields.to_keyring = checkField(pasted.keys === 1 ? "Keep its key in this system's keyring" : "Keep its keys in this system's keyring", about);
  }
  return fields;
}

/**
 * Whether what is offered only stands for tools, whose address a person may know.
 * @param {PastedDocument} pasted
 */
function lacksServer({ takes, offers }) {
  return takes.includes("server") && offers.some((offer) => offer.spec.kind === "recorded");
}

/**
 * Where nothing can be added as it stands, why not.
 * @param {PastedDocument} pasted
 */
function listReasons({ actions, offers }) {
  if (actions.length || offers.some((offer) => !offer.problem)) return [];
  return [...new Set(offers.map(({ problem }) => problem.charAt(0).toUpperCase() + problem.slice(1)))].slice(0, 5);
}

/** @param {import("../types").ModelChoice[]} models */
function modelChoice(models) {
  const node = select(models.length ? models.map((model) => [model.name, model.label]) : [["", "the small model that ships"]], models[0]?.name || "");
  return { ...labelField("Runs on", node, "The model that reads the text as its role."), read: () => node.value || undefined };
}

/** @param {string[]} notes */
function noteList(notes) {
  return notes.length ? [el("ul.pool-paste-notes", {}, ...notes.map((note) => el("li", {}, icon(ACTIONS.warn), el("span", {}, note))))] : [];
}
