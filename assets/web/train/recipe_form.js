// The form of a recipe, built from its JSON Schema: a field per key, with the key shown, grouped as in the YAML.
// Sections that may be absent (sft, grpo, evaluate, model.lora) have a switch. Values go to the server as they
// were typed; it answers with problems by key, which are shown at the field they belong to.

import { el, icon } from "../lib/dom.js";
import { ACTIONS } from "../lib/icons.js";

const TITLES = { sft: "Supervised fine-tuning", grpo: "Reinforcement learning", evaluate: "Evaluation", lora: "LoRA adapter", "": "General" };
const OPEN = new Set(["", "model", "tasks", "sft", "grpo", "grpo.rewards"]);
let ids = 0;

export class RecipeForm {
  /** `onChange` hears every edit. `pools` are the names that `pool` can have. */
  constructor(schema, pools, onChange) {
    this.schema = schema;
    this.pools = pools;
    this.onChange = onChange;
    this.open = new Set(OPEN);
    this.expanders = new WeakMap(); // section -> what opens it
    this.readers = new WeakMap(); // row -> what it holds
    this.root = el("div.train-form");
    this.root.addEventListener("input", () => this.onChange());
    this.root.addEventListener("change", ({ target }) => {
      if (/** @type {Element} */ (target).matches("select, [type=checkbox]")) this.onChange();
    });
  }

  set(recipe) {
    this.parts = new Map(); // key -> { node, say }
    this.recipe = this.section("", this.schema, recipe, this.root);
  }

  read() {
    return this.recipe.read();
  }

  /** Show [[key, sentence], ...] at their fields; returns those that belong to none. */
  show(problems) {
    for (const part of this.parts.values()) part.say("");
    const left = [];
    for (const [key, what] of problems) {
      let at = key;
      while (at && !this.parts.has(at)) at = at.split(".").slice(0, -1).join(".");
      if (at) this.parts.get(at).say(what);
      else left.push([key, what]);
    }
    return left;
  }

  /** Bring the field of a key into view. */
  reveal(key) {
    const at = this.parts.get(key)?.node;
    if (!at) return;
    this.expandAround(at);
    at.scrollIntoView({ block: "center" });
    at.querySelector("input, select, textarea")?.focus({ preventScroll: true });
  }

  /** Open every section that a node lies in. */
  expandAround(node) {
    for (let box = node.closest(".train-form-section"); box; box = box.parentElement.closest(".train-form-section")) this.expanders.get(box)();
  }

  /** A section's fields into `into`: the plain ones first in a grid, then the nested sections. */
  section(key, schema, value, into) {
    const rule = resolve(schema, this.schema);
    const grid = el("div.train-form-grid");
    const nested = [];
    const readers = {};
    into.replaceChildren();
    const plain = key === "" ? this.frame("", { title: TITLES[""], description: "" }, into) : null;
    (plain?.body || into).append(grid);
    for (const [name, property] of Object.entries(rule.properties)) {
      const path = key ? `${key}.${name}` : name;
      const inner = resolve(property, this.schema);
      const given = value?.[name];
      if (inner.properties) nested.push([name, path, inner, given]);
      else if (inner.items?.$ref) nested.push([name, path, inner, given]);
      else readers[name] = this.field(path, name, inner, given, grid);
    }
    for (const [name, path, inner, given] of nested)
      readers[name] = inner.items ? this.rewards(path, inner, given, into) : this.subsection(path, name, inner, given, into);
    return { read: () => Object.fromEntries(Object.entries(readers).map(([name, part]) => [name, part.read()])) };
  }

  /** A collapsible box with a heading; returns its body and head. */
  frame(key, { title, description }, into) {
    const box = el("section.train-form-section", { "data-key": key });
    const id = `train-form-${++ids}`;
    const button = el("button.train-form-toggle", { type: "button", "aria-expanded": "false", "aria-controls": id }, icon("M9 6l6 6-6 6"), el("b", {}, title));
    if (key) button.append(el("code", {}, key));
    const body = el("div.train-form-body", { id });
    const set = (open) => {
      button.setAttribute("aria-expanded", String(open));
      body.hidden = !open;
      this.open[open ? "add" : "delete"](key);
    };
    button.addEventListener("click", () => set(body.hidden));
    this.expanders.set(box, () => set(true));
    const head = el("div.train-form-head", {}, button);
    if (description) body.append(el("p.train-form-about", {}, description));
    const problem = el("p.form-problem", { role: "alert" });
    body.append(problem);
    box.append(head, body);
    into.append(box);
    this.parts.set(key, { node: box, say: (text) => { problem.textContent = text; if (text) set(true); } });
    set(this.open.has(key));
    return { box, head, body, set };
  }

  subsection(path, name, rule, given, into) {
    const { box, head, body, set } = this.frame(path, { title: TITLES[name] || words(name), description: rule.description }, into);
    const inner = el("div.train-form-inner");
    body.append(inner);
    if (!rule.nullable) return this.section(path, rule, given ?? {}, inner);
    let part = given ? this.section(path, rule, given, inner) : null;
    const toggle = el("button.page-toggle", { type: "button", role: "switch", "aria-label": `${words(name)} (${path})`, "data-switch": path });
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

  /** A list of small objects (the reward terms), a row each. */
  rewards(path, rule, given, into) {
    const item = resolve(rule.items, this.schema);
    const { body } = this.frame(path, { title: words(path.split(".").pop()), description: item.description }, into);
    const rows = el("div.train-form-rows");
    const add = el("button.page-button.train-form-add", { type: "button" }, "Add a term");
    add.addEventListener("click", () => {
      rows.append(this.rewardRow(path, item, {}, rows));
      this.onChange();
    });
    for (const term of given || rule.default || []) rows.append(this.rewardRow(path, item, term, rows));
    body.append(rows, add);
    return { read: () => [...rows.children].map((row) => this.readers.get(row)()) };
  }

  rewardRow(path, item, value, rows) {
    const row = el("div.train-form-row");
    const readers = {};
    for (const [name, property] of Object.entries(item.properties)) {
      const index = rows.children.length;
      readers[name] = this.field(`${path}.${index}.${name}`, name, resolve(property, this.schema), value[name], row);
    }
    const remove = el("button.page-close", { type: "button", "aria-label": "Remove this term" }, icon(ACTIONS.cross));
    remove.addEventListener("click", () => {
      row.remove();
      this.onChange();
    });
    row.append(remove);
    this.readers.set(row, () => Object.fromEntries(Object.entries(readers).map(([name, part]) => [name, part.read()])));
    return row;
  }

  /** One labelled input with its key, what it is for, and its problem. */
  field(path, name, rule, given, into) {
    const id = `train-form-${++ids}`;
    const input = this.input(path, rule, given === undefined ? rule.default : given);
    input.id = id;
    input.setAttribute("aria-describedby", `${id}-about ${id}-problem`);
    const label = el("label.train-form-label", { for: id }, el("span", {}, words(name)), el("code", {}, path));
    const problem = el("span.form-problem", { id: `${id}-problem`, role: "alert" });
    const node = el("div.train-form-field", { "data-key": path }, label, input);
    if (rule.examples && input.tagName === "INPUT") node.append(suggestions(input, rule.examples, id));
    node.append(el("span.train-form-about", { id: `${id}-about` }, rule.description || ""), problem);
    if (input.type === "checkbox") node.classList.add("train-form-check");
    into.append(node);
    const say = (text) => {
      problem.textContent = text;
      node.classList.toggle("form-wrong", Boolean(text));
      input.setAttribute("aria-invalid", String(Boolean(text)));
      if (text) this.expandAround(node);
    };
    this.parts.set(path, { node, say });
    return { read: () => readInput(input, rule) };
  }

  input(path, rule, value) {
    if (rule.type === "boolean") return Object.assign(el("input", { type: "checkbox" }), { checked: Boolean(value) });
    const choices = path === "pool" ? [...new Set([...this.pools, value].filter(Boolean))] : rule.enum;
    if (choices) {
      const select = el("select");
      for (const choice of choices) select.append(el("option", { value: choice }, choice));
      select.value = value ?? choices[0];
      return select;
    }
    const shown = Array.isArray(value) ? value.join(", ") : value ?? "";
    const numeric = rule.type === "number" || rule.type === "integer";
    const attributes = { type: "text", autocomplete: "off", spellcheck: "false", ...(numeric ? { inputmode: "decimal" } : {}) };
    return Object.assign(el("input", { class: numeric ? "train-form-number" : "", ...attributes }), { value: String(shown) });
  }
}

function suggestions(input, choices, id) {
  const list = el("datalist", { id: `${id}-list` });
  for (const choice of choices) list.append(el("option", { value: choice }));
  input.setAttribute("list", list.id);
  return list;
}

/** What was typed, as JSON: text that is no number stays text, and the server says what is wrong with it. */
function readInput(input, rule) {
  if (input.type === "checkbox") return input.checked;
  const text = input.value.trim();
  if (rule.type === "array") return parts(text).map((part) => (rule.items.type === "integer" ? asNumber(part) : part));
  if (rule.type === "number" || rule.type === "integer") return text === "" && rule.nullable ? null : asNumber(text);
  if (rule.listed) return text.includes(",") ? parts(text) : text;
  return input.value;
}

function parts(text) {
  return text.split(",").map((part) => part.trim()).filter(Boolean);
}

function asNumber(text) {
  const number = Number(text);
  return text === "" || Number.isNaN(number) ? text : number;
}

/** Follow $ref and the branch of a union that is not null; `nullable` says whether there was one. */
function resolve(rule, root) {
  let full = rule;
  if (rule.$ref) full = { ...root.$defs[rule.$ref.split("/").pop()], ...rule, $ref: undefined };
  if (full.properties && rule.$ref) full.description = root.$defs[rule.$ref.split("/").pop()].description;
  if (!full.anyOf) return full;
  const branches = full.anyOf.filter((branch) => branch.type !== "null");
  const inner = resolve(branches[0], root);
  return {
    ...inner,
    default: full.default,
    description: full.description || inner.description,
    nullable: branches.length < full.anyOf.length,
    listed: branches.length > 1,
  };
}

/** "micro_batch" -> "Micro batch" */
function words(name) {
  const titles = { sft: "SFT", grpo: "GRPO", lora: "LoRA", vllm_url: "vLLM URL", vllm_memory: "vLLM memory", top_p: "Top p" };
  const text = name.replaceAll("_", " ");
  return titles[name] || text[0].toUpperCase() + text.slice(1);
}
