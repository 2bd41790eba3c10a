// The form of a recipe, built from its JSON Schema: a field per key, with the key shown, grouped as in the YAML.
// Sections that may be absent (those of methods, evaluate, model.lora) have a switch. Values go to the server as they
// were typed; it answers with problems by key, which are shown at the field they belong to.

import { el, icon } from "../lib/dom.js";
import { makeField, resolveRule, wordsOf } from "../lib/form.js";
import { ACTIONS } from "../lib/icons.js";
import { listMethods } from "./formats.js";

/** @typedef {import("../lib/reply.js").Problem} Problem */
/** @typedef {import("../lib/form.js").LabelledField} LabelledField */
/** @typedef {Record<string, any>} Rule */
/** @typedef {{ read: () => any }} Reader */

/** @type {Record<string, string>} */
const TITLES = { who: "Who knows what", evaluate: "Evaluation", pools: "Pools that vary", lora: "LoRA adapter", "": "General" };
const OPEN = ["", "model", "tasks"];
/** @type {Record<string, string>} */
const ITEMS = { rewards: "a term", phases: "a phase" }; // what one of a list is called
let ids = 0;

export class RecipeForm {
  /**
   * `onChange` hears every edit. `pools` are the names that `pool` can have.
   * @param {Rule} schema
   * @param {string[]} pools
   * @param {() => void} onChange
   */
  constructor(schema, pools, onChange) {
    this.schema = schema;
    this.pools = pools;
    this.onChange = onChange;
    const methods = listMethods(schema);
    /** @type {Record<string, string>} */
    this.titles = { ...TITLES, ...Object.fromEntries(methods.map(([name, rule]) => [name, rule.title])) };
    /** @type {Set<string>} */
    this.open = new Set([...OPEN, ...methods.flatMap(([name]) => [name, `${name}.rewards`])]);
    this.expanders = new WeakMap(); // section -> what opens it
    this.readers = new WeakMap(); // row -> what it holds
    this.root = el("div.train-form");
    this.root.addEventListener("input", () => this.onChange());
    this.root.addEventListener("change", ({ target }) => {
      if (/** @type {Element} */ (target).matches("select, [type=checkbox]")) this.onChange();
    });
  }

  /** @param {Record<string, any>} recipe */
  set(recipe) {
    /** @type {Map<string, LabelledField>} */
    this.parts = new Map(); // key -> { node, say }
    /** @type {Map<string, HTMLInputElement>} */
    this.inputs = new Map();
    this.recipe = this.section("", this.schema, recipe, this.root);
  }

  read() {
    return this.recipe.read();
  }

  /**
   * Show [[key, sentence], ...] at their fields; returns those that belong to none.
   * @param {Problem[]} problems
   */
  show(problems) {
    for (const part of this.parts.values()) part.say("");
    /** @type {Problem[]} */
    const left = [];
    for (const [key, what] of problems) {
      let at = key;
      while (at && !this.parts.has(at)) at = at.split(".").slice(0, -1).join(".");
      if (at) this.parts.get(at).say(what);
      else left.push([key, what]);
    }
    return left;
  }

  /**
   * Offer other values for the fields whose keys end so, where they are shown.
   * @param {string} end
   * @param {string[]} choices
   */
  suggest(end, choices) {
    for (const [key, input] of this.inputs)
      if (key.endsWith(end) && input.list) input.list.replaceChildren(...choices.map((value) => el("option", { value })));
  }

  /**
   * Bring the field of a key into view.
   * @param {string} key
   */
  reveal(key) {
    const at = this.parts.get(key)?.node;
    if (!at) return;
    this.expandAround(at);
    at.scrollIntoView({ block: "center" });
    at.querySelector("input, select, textarea")?.focus({ preventScroll: true });
  }

  /**
   * Open every section that a node lies in.
   * @param {Element} node
   */
  expandAround(node) {
    /** @param {Element} inner */
    const around = (inner) => inner.closest(".train-form-section");
    for (let box = around(node); box; box = around(box.parentElement)) this.expanders.get(box)();
  }

  /**
   * A section's fields into `into`: the plain ones first in a grid, then the nested sections.
   * @param {string} key
   * @param {Rule} schema
   * @param {Record<string, any>} value
   * @param {HTMLElement} into
   * @returns {Reader}
   */
  section(key, schema, value, into) {
    const rule = resolveRule(schema, this.schema);
    const grid = el("div.train-form-grid");
    /** @type {[string, string, Rule, any][]} */
    const nested = [];
    /** @type {Record<string, Reader>} */
    const readers = {};
    into.replaceChildren();
    const plain = key === "" ? this.frame("", { title: TITLES[""], description: "" }, into) : null;
    (plain?.body || into).append(grid);
    for (const [name, property] of Object.entries(rule.properties)) {
      const path = key ? `${key}.${name}` : name;
      const inner = resolveRule(property, this.schema);
      const given = value?.[name];
      if (inner.properties) nested.push([name, path, inner, given]);
      else if (inner.items?.$ref) nested.push([name, path, inner, given]);
      else readers[name] = this.field(path, name, inner, given, grid);
    }
    for (const [name, path, inner, given] of nested)
      readers[name] = inner.items ? this.items(path, inner, given, into) : this.subsection(path, name, inner, given, into);
    return { read: () => Object.fromEntries(Object.entries(readers).map(([name, part]) => [name, part.read()])) };
  }

  /**
   * A collapsible box with a heading; returns its body and head.
   * @param {string} key
   * @param {{ title: string, description: string }} texts
   * @param {HTMLElement} into
   */
  frame(key, { title, description }, into) {
    const box = el("section.train-form-section", { "data-key": key });
    const id = `train-form-${++ids}`;
    const button = el(
      "button.train-form-toggle", { type: "button", "aria-expanded": "false", "aria-controls": id }, icon("M9 6l6 6-6 6"),
      el("b", {}, title),
    );
    if (key) button.append(el("code", {}, key));
    const body = el("div.train-form-body", { id });
    /** @param {boolean} open */
    const set = (open) => {
      button.setAttribute("aria-expanded", String(open));
      body.hidden = !open;
      this.open[open ? "add" : "delete"](key);
    };
    button.addEventListener("click", () => set(Boolean(body.hidden)));
    this.expanders.set(box, () => set(true));
    const head = el("div.train-form-head", {}, button);
    if (description) body.append(el("p.train-form-about", {}, description));
    const problem = el("p.form-problem", { role: "alert" });
    body.append(problem);
    box.append(head, body);
    into.append(box);
    this.parts.set(key, { node: box, say: (/** @type {string} */ text) => { problem.textContent = text; if (text) set(true); } });
    set(this.open.has(key));
    return { box, head, body, set };
  }

  /**
   * @param {string} path
   * @param {string} name
   * @param {Rule} rule
   * @param {Record<string, any> | null} given
   * @param {HTMLElement} into
   * @returns {Reader}
   */
  subsection(path, name, rule, given, into) {
    const { box, head, body, set } =
      this.frame(path, { title: this.titles[name] || wordsOf(name), description: rule.section || rule.description }, into);
    const inner = el("div.train-form-inner");
    body.append(inner);
    if (!rule.nullable) return this.section(path, rule, given ?? rule.default ?? {}, inner);
    let part = given ? this.section(path, rule, given, inner) : null;
    const toggle =
      el("button.page-toggle", { type: "button", role: "switch", "aria-label": `${wordsOf(name)} (${path})`, "data-switch": path });
    const show = () => {
      toggle.setAttribute("aria-checked", String(Boolean(part)));
      box.classList.toggle("train-form-off", !part);
    };
    toggle.addEventListener("click", () => {
      if (part) {
        part = null;
        inner.replaceChildren();
        set(false);
      } else {
        part = this.section(path, rule, {}, inner);
        set(true);
      }
      show();
      this.onChange();
    });
    head.append(toggle);
    show();
    return { read: () => (part ? part.read() : null) };
  }

  /**
   * A list of objects: a row each for small ones (the reward terms), a box each for those with sections (phases).
   * @param {string} path
   * @param {Rule} rule
   * @param {Record<string, any>[] | null} given
   * @param {HTMLElement} into
   * @returns {Reader}
   */
  items(path, rule, given, into) {
    const item = resolveRule(rule.items, this.schema);
    const name = path.split(".").pop();
    const noun = ITEMS[name] || "an item";
    const { body } = this.frame(path, { title: wordsOf(name), description: item.section }, into);
    const rows = el("div.train-form-rows");
    const add = el("button.page-button.train-form-add", { type: "button" }, `Add ${noun}`);
    const read = () => [...rows.children].map((row) => this.readers.get(row)());
    /** @param {Element} row */
    const remove = (row) => { // those behind it get the keys of the places that they move to
      const left = read().filter((_, place) => rows.children[place] !== row);
      rows.replaceChildren();
      left.forEach(append);
      add.focus();
      this.onChange();
    };
    /** @param {Record<string, any>} value */
    const append = (value) => rows.append(this.item(`${path}.${rows.children.length}`, item, value, noun, remove));
    add.addEventListener("click", () => {
      append({});
      this.onChange();
    });
    for (const value of given || rule.default || []) append(value);
    body.append(rows, add);
    return { read };
  }

  /**
   * @param {string} path
   * @param {Rule} rule
   * @param {Record<string, any>} value
   * @param {string} noun
   * @param {(row: Element) => void} onRemove
   */
  item(path, rule, value, noun, onRemove) {
    /** @type {[string, Rule][]} */
    const rules = Object.entries(rule.properties).map(([name, property]) => [name, resolveRule(property, this.schema)]);
    const nested = rules.some(([, inner]) => inner.properties);
    const row = el(nested ? "div.train-form-item" : "div.train-form-row");
    const kind = noun.split(" ").pop();
    const head = nested ? el("div.train-form-item-head", {}, el("b", {}, `${wordsOf(kind)} ${Number(path.split(".").pop()) + 1}`)) : row;
    let read;
    if (nested) {
      const inner = el("div.train-form-inner");
      read = this.section(path, rule, value, inner).read;
      row.append(head, inner);
    } else {
      /** @type {[string, Reader][]} */
      const readers = rules.map(([name, inner]) => [name, this.field(`${path}.${name}`, name, inner, value[name], row)]);
      read = () => Object.fromEntries(readers.map(([name, part]) => [name, part.read()]));
    }
    const remove = el("button.page-close", { type: "button", "aria-label": `Remove this ${kind}` }, icon(ACTIONS.cross));
    remove.addEventListener("click", () => onRemove(row));
    head.append(remove);
    this.readers.set(row, read);
    return row;
  }

  /**
   * One labelled input with its key, what it is for, and its problem.
   * @param {string} path
   * @param {string} name
   * @param {Rule} rule
   * @param {any} given
   * @param {HTMLElement} into
   * @returns {Reader}
   */
  field(path, name, rule, given, into) {
    const choices = path === "pool" ? [...new Set([...this.pools, given ?? rule.default].filter(Boolean))] : rule.enum;
    const options = { part: "train-form", key: path, loose: true };
    const { node, say, read, input } = makeField(name, { ...rule, enum: choices }, given, options);
    if (rule.examples && input.tagName === "INPUT") node.append(suggest(input, rule.examples));
    this.inputs.set(path, input);
    into.append(node);
    /** @param {string} text */
    const tell = (text) => {
      say(text);
      if (text) this.expandAround(node);
    };
    this.parts.set(path, { node, say: tell });
    return { read };
  }
}

/**
 * @param {HTMLInputElement} input
 * @param {string[]} choices
 */
function suggest(input, choices) {
  const list = el("datalist", { id: `${input.id}-list` }, ...choices.map((choice) => el("option", { value: choice })));
  input.setAttribute("list", list.id);
  return list;
}
