// Fields that are more than an input: a key reference that says at once whether it resolves, a model with the
// endpoint's own list, and documents that are uploaded. Each is {node, read, say} like the fields of a Form.

import { post } from "./api.js";
import { plain } from "./reply.js";
import { button, busy } from "./controls.js";
import { count, el, icon } from "./dom.js";
import { labelField } from "./form.js";
import { ACTIONS } from "./icons.js";
import { needs } from "./rights.js";

/** @typedef {{ send: (request: import("./api.js").Command) => Promise<any> }} Sender */
/** @typedef {import("./form.js").ReadableField & { input: HTMLInputElement }} InputField */

const REFERENCE = /^(env|keyring):[A-Za-z_][A-Za-z0-9_.-]{0,127}$/;
const VARIABLE = /^[A-Z_][A-Z0-9_]{2,}$/;
const DOCUMENTS = [".txt", ".md", ".pdf", ".csv", ".jsonl"]; // these two as in studio/frame/uploads.py
const MAX_DOCUMENT_BYTES = 50_000_000;
const MOVE_IT =
  "This looks like a key itself, which is never stored here. Name it below to move it to this system's keyring, or write env:NAME.";

/**
 * A reference to a secret. The key itself is never asked for here; one that is pasted leaves the field at once, and one
 * button moves it to the keyring.
 * @param {Sender} page
 * @param {{ label: string, about?: string, value?: string, optional?: boolean, placeholder?: string, choices?: string[] }} field
 */
export function keyField(page, { label, about = "", value = "", optional = true }) {
  const input = el("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder: "env:NAME or keyring:NAME" });
  input.name = "api_key";
  input.value = value;
  const field = labelField(label, input, about);
  const state = el("span.form-key-state", { role: "status" });
  field.node.classList.add("form-key");
  const keyring = storeInKeyring(input, () => check());
  field.node.append(state, keyring.node);
/** @type {number|undefined} */
  let timer;
  let latest = 0;
  /**
   * @param {string} kind
   * @param {string} text
   */
  const tell = (kind, text) => {
    state.dataset.state = kind;
    state.replaceChildren(
      ...(text ? [icon({ ok: ACTIONS.check, missing: ACTIONS.warn, bad: ACTIONS.cross }[kind] || ACTIONS.warn), el("span", {}, text)] : []),
    );
  };
  const check = async () => {
    const written = input.value.trim();
    const mine = ++latest;
    if (!written) return tell("", "");
    if (!REFERENCE.test(written)) return tell("missing", "Write env:NAME or keyring:NAME.");
    const reply = await page.send({ action: "check_reference", reference: written });
    if (mine !== latest) return null;
    if (!reply.ok) return tell("missing", plain(reply.problems)); // what was said is about another reference
    return tell(reply.resolves ? "ok" : "missing", reply.sentence);
  };
  input.addEventListener("input", () => {
    const written = input.value.trim();
    field.say("");
    if (looksLikeKey(written)) {
      input.value = "";
      latest++;
      keyring.offer(written, value.replace(/^(env|keyring):/, "") || label);
      return tell("bad", MOVE_IT);
    }
    clearTimeout(timer);
    timer = setTimeout(check, 200);
  });
  input.addEventListener("change", () => {
    if (VARIABLE.test(input.value.trim())) input.value = `env:${input.value.trim()}`;
    check();
  });
  check();
  const read = () => {
    const written = input.value.trim();
    if (!written && optional) return undefined;
    if (REFERENCE.test(written)) return written;
    field.say("write env:NAME or keyring:NAME; the key itself is never stored");
    throw new Error("no reference");
  };
  return { ...field, read, input };
}

/**
 * Long, and neither a reference nor the name of a variable.
 * @param {string} written
 */
function looksLikeKey(written) {
  return written.length >= 16 && !/^(env|keyring):/.test(written) && !VARIABLE.test(written);
}

/**
 * The key goes straight to the keyring by a route of its own, and leaves the page at once.
 * @param {HTMLInputElement} reference
 * @param {() => void} done
 */
function storeInKeyring(reference, done) {
  const box = el("details.form-key-store");
  const name = el("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  const key = el("input", { type: "password", autocomplete: "off" });
  const named = labelField("Name in the keyring", name);
  const keyed = labelField("Key", key, "Goes into this system's keyring and nowhere else.");
  const keep = needs(button("Store in the keyring", async (event) => {
    const value = key.value;
    key.value = "";
    const node = event.currentTarget;
    try {
      const kept = await busy(node, "Storing …", () => post("/api/keyring", { name: name.value.trim(), value }));
      reference.value = kept.reference;
    } catch (error) {
      return keyed.say(error.message);
    }
    keyed.say("");
    box.open = false;
    reference.focus();
    return done();
  }), "POST /api/keyring");
  /** Take a key that was pasted elsewhere: one button is left to press. */
  const offer = (/** @type {string} */ written, /** @type {string} */ about) => {
    key.value = written;
    name.value ||= about.toUpperCase().replace(/[^A-Z0-9]+/g, "_").replace(/^_|_$/g, "");
    box.open = true;
    name.select(); // a name that is taken would be given another key
  };
  box.addEventListener("toggle", () => {
    if (box.open && !name.value) name.value = reference.value.replace(/^(env|keyring):/, "");
  });
  box.append(el("summary", {}, "I have the key here: put it into the system keyring"), named.node, keyed.node, keep);
  return { node: box, offer };
}

/**
 * A model's name, with what the endpoint lists once it has been asked. `endpoint` gives {base_url, api_key}.
 * @param {Sender} page
 * @param {{ label: string, about?: string, value?: string, optional?: boolean, placeholder?: string, choices?: string[] }} field
 * @param {() => { base_url: string, api_key: string }} endpoint
 * @param {boolean} atOnce
 */
export function modelField(page, { label, about = "", value = "", choices = [] }, endpoint, atOnce = false) {
  const id = `models-${Math.random().toString(36).slice(2)}`;
  const input = el("input", { type: "text", autocomplete: "off", spellcheck: "false", list: id });
  input.value = value;
  const field = labelField(label, input, about);
  const list = el("datalist", { id });
  const status = el("span.form-about", { role: "status" });
  /** @param {string[]} names */
  const offer = (names) => list.replaceChildren(...names.slice(0, 500).map((name) => el("option", { value: name })));
  /** @returns {Promise<void>} */
  const ask = async () => {
    const reply = await page.send({ action: "list_models", ...endpoint() });
    if (!reply.models) return void (status.textContent = plain(reply.problems));
    offer(reply.models);
    if (!input.value && reply.models.length) input.value = reply.models[0];
    return void (status.textContent = `${count(reply.models.length)} models there: type to filter them.`);
  };
  offer(choices);
  const row =
    el("div.form-row", {}, needs(button("List its models", (event) => busy(event.currentTarget, "Asking …", ask), "podium-link"), "pool/list_models"), status);
  field.node.append(list, row);
  if (atOnce) ask();
  return { ...field, read: textOf(input, field), input };
}

/**
 * Files of a person's own: uploaded, or named where they lie on this machine.
 * @param {{ label: string, about?: string, value?: string, optional?: boolean, placeholder?: string, choices?: string[] }} field
 */
export function documentsField({ label, about = "" }) {
  const input = el("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder: "/path/to/a/file/or/folder" });
  const field = labelField(label, input, about);
  const files = needs(el("input", { type: "file", multiple: "", accept: DOCUMENTS.join(","), "aria-label": "Upload documents" }), "POST /api/documents");
  const status = el("span.form-about", { role: "status" });
  files.addEventListener("change", async () => {
    field.say("");
    input.value = "";
    const unfit = [...files.files].map(unfitFor).find(Boolean);
    if (unfit) return field.say(unfit);
    let folder = "";
    let last = null;
    for (const [index, file] of [...files.files].entries()) {
      status.textContent = `Uploading ${index + 1} of ${files.files.length}: ${file.name}`;
      try {
        last = await post(`/api/documents?${new URLSearchParams({ name: file.name, folder })}`, file);
      } catch (error) {
        status.textContent = "";
        return field.say(`${file.name}: ${error.message}`);
      }
      folder = last.folder;
    }
    if (!last) return null;
    input.value = files.files.length === 1 ? last.file : last.path;
    status.textContent = `${count(files.files.length)} ${files.files.length === 1 ? "file is" : "files are"} in Podium's data folder.`;
    return null;
  });
  field.node.insertBefore(files, input);
  field.node.insertBefore(status, input);
  return { ...field, read: textOf(input, field), input };
}

/**
 * Why a file will not be taken, or "".
 * @param {File} file
 */
function unfitFor(file) {
  if (!DOCUMENTS.some((ending) => file.name.toLowerCase().endsWith(ending)))
    return `${file.name}: choose files that end in ${DOCUMENTS.join(", ")}`;
  return file.size > MAX_DOCUMENT_BYTES ? `${file.name} has ${count(file.size)} bytes; ${count(MAX_DOCUMENT_BYTES)} are the most` : "";
}

/**
 * One line of text that must not be empty, unless it is optional.
 * @param {{ label: string, about?: string, value?: string, optional?: boolean, placeholder?: string, choices?: string[] }} field
 */
export function textField({ label, about = "", value = "", optional = false, placeholder = "" }) {
  const input = el("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder });
  input.value = value;
  const field = labelField(label, input, about);
  return { ...field, read: textOf(input, field, optional), input };
}

/**
 * @param {HTMLInputElement} input
 * @param {{ node: HTMLElement, say: (text: string) => void }} field
 * @param {boolean} optional
 */
function textOf(input, field, optional = false) {
  return () => {
    const written = input.value.trim();
    field.say("");
    if (written || optional) return written || undefined;
    field.say("this is missing");
    throw new Error("missing");
  };
}
