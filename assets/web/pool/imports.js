// Importers: describe a source, look at what it offers, choose, add, and try what was added.

import { askAboutPool } from "./consent.js";
import { plain } from "../lib/reply.js";
import { button, busy } from "../lib/controls.js";
import { count, el, icon } from "../lib/dom.js";
import { keyField, textField } from "../lib/fields.js";
import { labelField } from "../lib/form.js";
import { ACTIONS, NEEDS } from "../lib/icons.js";
import { needs } from "../lib/rights.js";
import { openAdded } from "./added.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */
/** @typedef {import("../lib/form.js").ReadableField} ReadableField */
/** @typedef {import("../lib/reply.js").Problem} Problem */
/**
 * @typedef {{ title: string, parts: HTMLElement[], fields: Record<string, ReadableField>, verb: string, doing: string,
 *   back: (() => void) | null, request: () => Record<string, any>, again?: () => void }} Source
 * @typedef {{ again?: () => void, notes?: HTMLElement[], tests?: boolean }} Origin
 */

const MAX_POOL_FILE_BYTES = 4_000_000; // as in pool_registry/pool.py
const MAX_DOCUMENT_BYTES = 4_000_000;
const RUNS_HERE = "This runs a program on this machine, with your rights and outside the sandbox. Use what you trust.";

/**
 * @param {PoolPage} page
 * @param {(() => void) | null} back
 */
export function openMcp(page, back = null) {
  const kind = { value: "stdio" };
  const command = codeField(
    "Command", "The program and its arguments, as in a terminal; no shell reads it.", "npx -y @modelcontextprotocol/server-everything",
  );
  const env =
    linesField("Environment", "One NAME=value a line. A key goes in as a reference: GITHUB_TOKEN=env:GITHUB_TOKEN", "NAME=env:NAME");
  const cwd = textField({ label: "Folder", about: "Where it starts; empty for the studio's own.", optional: true });
  const url = textField({ label: "URL", about: "Streamable HTTP, often ending in /mcp.", placeholder: "https://host/mcp" });
  const headers =
    linesField("Headers", "One a line. A key goes in as a reference: Authorization: Bearer env:NAME", "Authorization: Bearer env:NAME");
  const name =
    textField({ label: "Name", about: "Stands before the names of its tools; made from the command when empty.", optional: true });
  const stdio = el("div.form-fields", {}, el("p.page-warning", {}, icon(ACTIONS.warn), el("span", {}, RUNS_HERE)), command.node);
  const http = el("div.form-fields", {}, url.node);
  const more = el("details.page-more", {}, el("summary", {}, "More"), env.node, headers.node, cwd.node, name.node);
  /** @param {string} value */
  const choose = (value) => {
    kind.value = value;
    stdio.hidden = cwd.node.hidden = env.node.hidden = value !== "stdio";
    http.hidden = headers.node.hidden = value === "stdio";
  };
  const tabs = segments("How it is reached", [["stdio", "A program on this machine"], ["http", "A URL"]], "stdio", choose);
  choose("stdio");
  const fields = { command, env, cwd, url, headers, name };
  openSource(page, {
    title: "Import from an MCP server",
    parts: [tabs, stdio, http, more],
    fields,
    verb: "Connect",
    doing: "Connecting …",
    back,
    request: () => ({ source: "mcp", server: { transport: kind.value, ...valuesOf(fields) } }),
  });
}

/**
 * @param {PoolPage} page
 * @param {(() => void) | null} back
 */
export function openOpenApi(page, back = null) {
  const file = el("input", { type: "file", accept: ".json,.yaml,.yml,application/json", "aria-label": "OpenAPI file" });
  const text =
    linesField("Document", "OpenAPI 3.0 or 3.1 as JSON or YAML: choose a file, paste it, or give its URL below.", "openapi: 3.1.0", 6);
  const url = textField({ label: "URL of the document", optional: true, placeholder: "https://host/openapi.json" });
  const base =
    textField({ label: "Base URL", about: "Where its operations are called; empty for what the document says.", optional: true });
  const key = keyField(page, { label: "API key", about: "A reference, when the API wants a key." });
  const header = textField({
    label: "Header of the key", about: "Only where the document's own rule is wrong.", optional: true, placeholder: "X-API-Key",
  });
  const local = privateField();
  const more = el("details.page-more", {}, el("summary", {}, "More"), header.node, local.node);
  text.node.insertBefore(file, text.node.querySelector("textarea"));
  readInto(file, text, MAX_DOCUMENT_BYTES);
  const fields = { text, url, base_url: base, api_key: key, key_header: header, allow_private: local };
  openSource(page, {
    title: "Import from an OpenAPI document",
    parts: [text.node, url.node, base.node, key.node, more],
    fields,
    verb: "Read it",
    doing: "Reading …",
    back,
    request: () => ({ source: "openapi", ...valuesOf(fields) }),
  });
}

/**
 * @param {PoolPage} page
 * @param {(() => void) | null} back
 */
export function openSpace(page, back = null) {
  const space =
    textField({ label: "Space", about: "owner/name at Hugging Face, or the URL of any Gradio app.", placeholder: "owner/name" });
  const token = keyField(page, { label: "Token", about: "A reference, for a private Space." });
  const local = privateField();
  const more = el("details.page-more", {}, el("summary", {}, "More"), local.node);
  const fields = { space, token, allow_private: local };
  openSource(page, {
    title: "Import from a Hugging Face Space",
    parts: [space.node, token.node, more],
    fields,
    verb: "Look",
    doing: "Looking …",
    back,
    request: () => ({ source: "space", ...valuesOf(fields) }),
  });
}

/** Whether a worker may reach the local network. */
function privateField() {
  return checkField("Allow private addresses", "For what runs in the local network. This machine's own addresses need no permission.");
}

/**
 * @param {string} label
 * @param {string} hint
 */
export function checkField(label, hint) {
  const box = el("input", { type: "checkbox" });
  const field = labelField(label, box, hint);
  field.node.classList.add("form-check");
  return { ...field, read: () => box.checked };
}

/**
 * Paths or keys, one a line.
 * @param {string} label
 */
function listField(label, hint = "One a line.") {
  const lines = el("textarea", { rows: "2", spellcheck: "false", placeholder: "none" });
  const field = labelField(label, lines, hint);
  return { ...field, read: () => lines.value.split("\n").map((line) => line.trim()).filter(Boolean) };
}

/**
 * @param {PoolPage} page
 * @param {(() => void) | null} back
 */
export function openFunction(page, back = null) {
  const target =
    codeField("Function", "module:function, a file, or file.py:function. A file offers its agents of LangGraph, the OpenAI Agents SDK and CrewAI, or else every public function.", "/path/to/tools.py");
  const python = codeField("Interpreter", "Another Python, whose packages the file needs. Empty for Podium's.", "/path/to/.venv/bin/python", true);
  const network = checkField("They use the network", "They reach any address, this machine's own too.");
  const keys = listField("Keys that they use", "env:NAME or keyring:NAME, one a line. Each is their variable NAME.");
  const read = listField("Files and folders that they read");
  const write = listField("Folders that they change", "One a line. The first is their home.");
  const sandboxed =
    el("div.form-fields", {}, el("p.page-lead", {}, "They run in the sandbox: with Python's packages, and without your files, keys and network."), network.node, keys.node, read.node, write.node);
  const asYou = checkField("Run them as me, outside the sandbox", "For code that starts programs. Its card says so.");
  const warning = el("p.page-warning", {}, icon(ACTIONS.warn), el("span", {}, RUNS_HERE));
  const box = asYou.node.querySelector("input");
  const choose = () => {
    sandboxed.hidden = box.checked;
    warning.hidden = !box.checked;
  };
  box.addEventListener("change", choose);
  choose();
  openSource(page, {
    title: "Import Python functions",
    parts: [target.node, python.node, sandboxed, asYou.node, warning],
    fields: { target, python, permissions: keys },
    verb: "Look",
    doing: "Looking …",
    back,
    request: () => ({
      source: "function", target: target.read(), python: python.read(),
      ...(asYou.read()
        ? { as_you: true }
        : { permissions: { network: network.read(), keys: keys.read(), read: read.read(), write: write.read() } }),
    }),
  });
}

/**
 * The first page of an importer: describe the source. Nothing that was typed is lost by a problem.
 * @param {PoolPage} page
 * @param {Source} source
 */
function openSource(page, source) {
  const general = el("div.form-general", { role: "alert" });
  const go = needs(el("button.page-primary", { type: "submit" }, source.verb), "pool/look");
  const form = el(
    "form.form-fields", {}, ...source.parts, general,
    page.drawer.foot(button("Cancel", () => (source.back ? source.back() : page.drawer.close())), go),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    for (const field of Object.values(source.fields)) field.say("");
    general.textContent = "";
    let request;
    try {
      request = source.request();
    } catch {
      return form.querySelector(".form-wrong input, .form-wrong textarea")?.focus();
    }
    const reply = await busy(go, source.doing, () => page.command({ action: "look", ...request }));
    if (reply.ok && reply.offers.length) return openOffers(page, source, reply.offers);
    /** @type {Problem[]} */
    const problems = reply.ok ? [["", "There is nothing in it that could be added."]] : reply.problems;
    const rest = problems.filter(([where, what]) => {
      const field = source.fields[where.split(".")[0]];
      field?.say(what);
      return !field || field.node.closest("[hidden]");
    });
    general.textContent = plain(rest);
    return null;
  });
  source.again = () => page.drawer.open(source.title, [form], { back: source.back });
  source.again();
}

/**
 * The second page: everything that the source offers, preselected; what cannot be added is grey and says why.
 * @param {PoolPage} page
 * @param {Origin} source
 * @param {import("../types").OfferDocument[]} offers
 */
export function openOffers(page, source, offers) {
  const ready = offers.filter((offer) => !offer.problem);
  const add = needs(button("", async () => {
    const chosen = rows.filter((row) => row.box.checked).map((row) => row.offer);
    const workers =
      chosen.map((offer) => (offer.may_have_effects && reading.read() ? { ...offer.spec, effects: "none" } : offer.spec));
    const reply = await busy(add, "Adding …", () => page.command({ action: "add_workers", workers }));
    if (reply.ok) openAdded(page, reply.added, source.tests);
    else general.textContent = plain(reply.problems);
    tell();
  }, "page-primary"), "pool/add_workers");
  const tell = () => {
    const chosen = rows.filter((row) => row.box.checked).length;
    add.textContent = chosen === 1 ? "Add 1 worker" : `Add ${count(chosen)} workers`;
    add.disabled = chosen === 0;
  };
  const rows = offers.map((offer, index) => offerRow(offer, index, tell));
  const list = el("ul.pool-import-offers", {}, ...rows.map((row) => row.node));
  const filter = el("input.page-search", { type: "search", placeholder: "Filter", "aria-label": "Filter" });
  filter.addEventListener("input", () => {
    for (const row of rows) row.node.hidden = !row.words.includes(filter.value.toLowerCase());
  });
  /** @param {boolean} on */
  const set = (on) => {
    for (const row of rows) if (!row.box.disabled && !row.node.hidden) row.box.checked = on;
    tell();
  };
  const bar =
    el("div.pool-import-bar", {}, filter, button("All", () => set(true), "podium-link"), button("None", () => set(false), "podium-link"));
  const general = el("div.form-general", { role: "alert" });
  const reading = checkField(
    "Their calls only read",
    "Nothing outside changes by a call. Podium may then call them in trials: practice tasks, other words for a rejected call, votes.",
  );
  reading.node.hidden = !offers.some((offer) => offer.may_have_effects);
  const odd = offers.length - ready.length;
  const summary = `${count(ready.length)} of ${count(offers.length)} can be added.${odd ? " The others say why not." : ""}`;
  tell();
  const foot = page.drawer.foot(button("Back", () => source.again()), add);
  page.drawer.open("Choose what to add", [el("p.page-lead", {}, summary), ...(source.notes || []), bar, list, reading.node, general, foot], {
    back: () => source.again(), focus: add,
  });
}

/**
 * @param {import("../types").OfferDocument} offer
 * @param {number} index
 * @param {() => void} changed
 */
function offerRow(offer, index, changed) {
  const { spec, problem } = offer;
  const id = `offer-${index}`;
  const box = el("input", { type: "checkbox", id, "aria-describedby": `${id}-about` });
  box.checked = !problem;
  box.disabled = Boolean(problem);
  box.addEventListener("change", changed);
  const text = el(
    "div.pool-import-text", {}, el("label.pool-import-name", { for: id }, spec.name),
    el("p.pool-import-about", { id: `${id}-about` }, problem || spec.description),
  );
  if (!problem) {
    const names = Object.keys(offer.parameters.properties || {});
    const takes = names.length ? `Takes ${names.join(", ")}` : "Takes nothing";
    const peek = el(
      "details.pool-import-schema", {},
      el("summary", {}, offer.returns ? `${takes}; returns ${offer.returns}` : takes),
      el("pre.page-value", { tabindex: "0" }, JSON.stringify(offer.parameters, null, 2)),
    );
    if (offer.mended.length) text.append(el("p.pool-import-mended", {}, `Changed to be usable here. ${offer.mended.join("; ")}.`));
    text.append(peek);
  }
  const node = el("li", { class: problem ? "pool-import-offer pool-import-odd" : "pool-import-offer" }, box, text);
  return { node, box, offer, words: `${spec.name} ${spec.description} ${problem}`.toLowerCase() };
}

/**
 * A pool that was exported: it becomes a pool of its own.
 * @param {PoolPage} page
 * @param {(() => void) | null} back
 */
export function openPoolFile(page, back = null) {
  const file = el("input", { type: "file", accept: ".json,application/json" });
  const text = el("textarea.form-code", { rows: "10", spellcheck: "false", placeholder: '{"podium_pool": 1, ...}' });
  const name = el("input", { type: "text", placeholder: "as in the file" });
  const fields = { text: labelField("Pool as JSON", text), name: labelField("Name", name, "Change it when the name is taken.") };
  const problems = el("ul.page-problems", { role: "alert" });
  /** @param {string} problem */
  const say = (problem) => problems.replaceChildren(...(problem ? [el("li", {}, problem)] : []));
  readInto(file, { input: text, say }, MAX_POOL_FILE_BYTES);
  const load = async () => {
    const reply = await page.command({ action: "import", text: text.value, name: name.value.trim() });
    if (reply.ok) {
      page.drawer.close();
      if (Object.keys(reply.imported_wants).length) {
        page.say("Imported. What wants something is off until you agree."); // the dialog says what each of them wants
        await switchOnSeen(page, reply.imported_wants);
      }
      return;
    }
    problems.replaceChildren(...reply.problems.map((/** @type {Problem} */ [where, what]) => el("li", {}, where ? `${where}: ${what}` : what)));
  };
  const hint = el(
    "p.pool-hint", {}, "Workers in it that want keys, programs, files or private addresses arrive switched off, and are shown with what they want.",
  );
  const foot = page.drawer.foot(button("Cancel", () => page.drawer.close()), needs(button("Import", load, "page-primary"), "pool/import"));
  page.drawer.open("Import a pool", [labelField("File", file).node, fields.text.node, fields.name.node, hint, problems, foot], { back });
}

/**
 * Show what an imported pool wants, and switch on what the person agrees with.
 * @param {PoolPage} page
 * @param {Record<string, string[]>} wants
 */
async function switchOnSeen(page, wants) {
  const workers = await askAboutPool(wants);
  if (Object.keys(workers).length) await page.act({ action: "switch_on", workers });
}

/**
 * The text of a chosen file goes into a field, unless it is too large.
 * @param {HTMLInputElement} file
 * @param {{ input: HTMLInputElement | HTMLTextAreaElement, say: (text: string) => void }} field
 * @param {number} limit
 */
export function readInto(file, field, limit) {
  file.addEventListener("change", async () => {
    const chosen = file.files[0];
    if (!chosen) return;
    const fits = chosen.size <= limit;
    field.input.value = fits ? await chosen.text() : "";
    field.say(fits ? "" : `${chosen.name} has ${count(chosen.size)} bytes; ${count(limit)} are the most`);
  });
}

/**
 * @param {string} label
 * @param {string} about
 * @param {string} placeholder
 */
function codeField(label, about, placeholder, optional = false) {
  const field = textField({ label, about, placeholder, optional });
  field.input.classList.add("form-code");
  return field;
}

/**
 * @param {string} label
 * @param {string} about
 * @param {string} placeholder
 * @param {number} rows
 */
export function linesField(label, about, placeholder, rows = 3) {
  const input = el("textarea.form-code", { rows: String(rows), spellcheck: "false", placeholder });
  const field = labelField(label, input, about);
  return { ...field, input, read: () => input.value.trim() || undefined };
}

/**
 * What the fields hold that a person can see; the server judges it.
 * @param {Record<string, ReadableField>} fields
 */
export function valuesOf(fields) {
  /** @type {Record<string, any>} */
  const values = {};
  for (const [name, field] of Object.entries(fields)) {
    const hidden = field.node.hidden || field.node.parentElement?.hidden;
    const value = hidden ? undefined : field.read();
    if (value !== undefined) values[name] = value;
  }
  return values;
}

/**
 * @param {string} label
 * @param {[string, string][]} options
 * @param {string} chosen
 * @param {(value: string) => void} work
 */
function segments(label, options, chosen, work) {
  const group = el("div.page-chips", { role: "group", "aria-label": label });
  for (const [value, text] of options) {
    const chip = button(text, () => {
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === chip));
      work(value);
    }, "page-chip");
    chip.setAttribute("aria-pressed", String(value === chosen));
    chip.prepend(icon(NEEDS[value === "stdio" ? "a program" : "an address"]));
    group.append(chip);
  }
  return group;
}
