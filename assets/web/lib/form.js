// A form from a JSON Schema (as pydantic writes it): one field a property, with its description, default and
// problem. Reading it back gives JSON; what cannot be read is told at its field and nothing is lost. `special`
// may make a field of its own for a property ({node, read, say}), or null for the usual one.

import { el } from "./dom.js";

export class Form {
  /**
   * @param {Record<string, any>} schema
   * @param {Record<string, any>} values
   * @param {{ prefix?: string, special?: (name: string, rule: Record<string, any>, value: any) => any }} how
   */
  constructor(schema, values = {}, { prefix = "", special = (_name, _rule, _value) => null } = {}) {
    this.root = el("div.form-fields");
    this.fields = new Map();
    const required = new Set(schema.required || []);
    for (const [name, rule] of Object.entries(schema.properties || {})) {
      const full = resolveRule(rule, schema);
      const field = special(name, full, values[name]) ||
        makeField(name, full, values[name], { id: prefix + name, required: required.has(name) });
      this.fields.set(name, field);
      this.root.append(field.node);
    }
  }

  /** {name: value}; fields left empty and not required are left out. */
  read() {
/** @type {Record<string, any>} */
    const values = {};
    let wrong = null;
    for (const [name, field] of this.fields) {
      try {
        const value = field.read();
        if (value !== undefined) values[name] = value;
      } catch (error) {
        wrong = error; // every field tells its own problem before we give up
      }
    }
    if (wrong) throw wrong;
    return values;
  }

  /**
   * Show [[name, message], ...] at their fields; returns what belongs to no field.
   * @param {import("./reply.js").Problem[]} problems
   */
  show(problems) {
    for (const field of this.fields.values()) field.say("");
    return problems.filter(([where, what]) => {
      const field = this.fields.get(where.split(".")[0]);
      field?.say(what);
      return !field;
    });
  }
}

let fields = 0;

/** @typedef {{ node: HTMLElement, say: (text: string) => void }} LabelledField */
/** @typedef {LabelledField & { read: () => any }} ReadableField */

/**
 * A labelled field around any input. Its description and problem are attached by reference, not in its name. With a
 * `key` the field shows it, and its description stands below the input. Classes begin with `part`.
 * @param {string} label
 * @param {any} input
 * @param {string} about
 * @param {{ part?: string, key?: string }} style
 */
export function labelField(label, input, about = "", { part = "form", key = "" } = {}) {
  const id = `${part}-field-${++fields}`;
  input.id = id;
  input.setAttribute("aria-describedby", `${id}-about ${id}-problem`);
  const problem = el("span.form-problem", { role: "alert", id: `${id}-problem` });
  const name = key ? [el("span", {}, label), el("code", {}, key)] : [label];
  const note = about && el("span", { class: `${part}-about`, id: `${id}-about` }, about);
  const parts = [el("label", { class: `${part}-label`, for: id }, ...name), ...(key ? [input, note] : [note, input]), problem];
  const node = el("div", { class: `${part}-field`, ...(key && { "data-key": key }) }, ...parts);
  /** @param {string} text */
  const say = (text) => {
    problem.textContent = text;
    node.classList.toggle("form-wrong", Boolean(text));
    input.setAttribute("aria-invalid", String(Boolean(text)));
  };
  return { node, say };
}

/**
 * The field of one property: {node, say, read, input}. A `loose` field is read as it was typed, so that the server
 * says what is wrong with it; the others refuse what is not of their type.
 * @param {string} name
 * @param {Record<string, any>} rule
 * @param {any} value
 * @param {{ id?: string, required?: boolean, loose?: boolean, part?: string, key?: string }} how
 */
export function makeField(name, rule, value, { id = name, required = false, loose = false, part = "form", key = "" } = {}) {
  const control = CONTROLS[controlOf(rule, loose)];
  const input = control.make(rule, value === undefined ? rule.default : value);
  if (!loose) {
    input.name = id;
    input.setAttribute("aria-required", String(required));
  }
  const { node, say } = labelField(wordsOf(name), input, rule.description || "", { part, key });
  if (required) node.classList.add("form-required");
  if (input.type === "checkbox") node.classList.add(`${part}-check`);
  const read = () => {
    if (input.validity?.badInput) { // its value is "", as if nothing were written
      say("write a number");
      throw new Error("write a number");
    }
    if (!loose && !required && input.type !== "checkbox" && input.value.trim() === "") return undefined;
    try {
      return control.read(input, rule);
    } catch (error) {
      say(error.message);
      throw error;
    }
  };
  return { node, say, read, input };
}

const LONG = /query|prompt|code|expression|instruction|request/i;
/** @type {(attributes: Record<string, any>, value: any) => HTMLInputElement} */
const textInput = (attributes, value) => Object.assign(
  el("input", { type: "text", autocomplete: "off", spellcheck: "false", ...attributes }), { value: value ?? "" },
);
/** @type {(input: HTMLInputElement) => string} */
const readText = (input) => input.value;

/**
 * How the value of a property is shown and read, by the name of its control (`x-control` in a schema).
 * @type {Record<string, { make: (rule: any, value: any) => any, read: (input: any, rule: any) => any }>}
 */
const CONTROLS = {
  checkbox: {
    make: (_rule, value) => Object.assign(el("input", { type: "checkbox" }), { checked: Boolean(value) }),
    read: (input) => input.checked,
  },
  select: {
    make: (rule, value) => {
      const options = rule.enum.map((/** @type {string} */ choice) => el("option", { value: choice }, choice));
      return Object.assign(el("select", {}, ...options), { value: value ?? rule.enum[0] });
    },
    read: readText,
  },
  text: { make: (_rule, value) => textInput({}, value), read: readText },
  multiline: { make: (_rule, value) => Object.assign(el("textarea", { rows: "3" }), { value: value ?? "" }), read: readText },
  number: {
    make: (_rule, value) => Object.assign(el("input", { type: "number", step: "any" }), { value: value ?? "" }),
    read: (input) => {
      if (input.value.trim() === "" || Number.isNaN(Number(input.value))) throw new Error("write a number");
      return Number(input.value);
    },
  },
  json: {
    make: (_rule, value) => {
      const text = value === undefined || value === null ? "" : JSON.stringify(value, null, 1);
      return Object.assign(el("textarea.form-code", { rows: "3", spellcheck: "false" }), { value: text });
    },
    read: (input) => {
      try {
        return JSON.parse(input.value);
      } catch (error) {
        throw new Error(`write JSON: ${error.message}`, { cause: error });
      }
    },
  },
  // The loose ones: text that is no number stays text.
  decimal: {
    make: (_rule, value) => textInput({ class: "form-number", inputmode: "decimal" }, value),
    read: (input, rule) => (input.value.trim() === "" && rule.nullable ? null : asNumber(input.value.trim())),
  },
  list: {
    make: (_rule, value) => textInput({}, Array.isArray(value) ? value.join(", ") : value),
    read: (input, rule) => {
      const items = input.value.split(",").map((/** @type {string} */ item) => item.trim()).filter(Boolean);
      if (rule.type !== "array" && !input.value.includes(",")) return input.value.trim();
      return rule.items?.type === "integer" ? items.map(asNumber) : items;
    },
  },
};

/**
 * @param {Record<string, any>} rule
 * @param {boolean} loose
 */
function controlOf(rule, loose) {
  if (rule["x-control"]) return rule["x-control"];
  if (rule.type === "boolean") return "checkbox";
  if (rule.enum) return "select";
  if (rule.type === "integer" || rule.type === "number") return loose ? "decimal" : "number";
  if (loose) return rule.type === "array" || rule.listed ? "list" : "text";
  if (rule.type !== "string") return "json";
  return (rule.maxLength || 0) > 200 || LONG.test(`${rule.title} ${rule.description}`) ? "multiline" : "text";
}

/** @param {string} text */
function asNumber(text) {
  const number = Number(text);
  return text === "" || Number.isNaN(number) ? text : number;
}

/** @type {Record<string, string>} */
const SPELLED = { url: "URL", api: "API", sql: "SQL", id: "ID", lora: "LoRA", vllm: "vLLM" };

/**
 * "base_url" -> "Base URL", "timeout_s" -> "Timeout (seconds)"
 * @param {string} name
 */
export function wordsOf(name) {
  const text = name.replaceAll("_", " ").replace(/ s$/, " (seconds)");
  return (text[0].toUpperCase() + text.slice(1)).replace(/\w+/g, (word) => SPELLED[word.toLowerCase()] || word);
}

/**
 * A property's rule with its $ref followed and the branch of a union that is not null: `nullable` says whether there
 * was a null, `listed` whether there was a choice of others, `section` is what a part of a form says about itself.
 * @param {Record<string, any>} rule
 * @param {Record<string, any>} schema
 * @returns {any}
 */
export function resolveRule(rule, schema) {
  const model = rule.$ref ? schema.$defs[rule.$ref.split("/").pop()] : {};
  const full = { ...model, ...rule, section: model.description };
  if (!full.anyOf) return full;
  const branches = full.anyOf.filter((/** @type {any} */ branch) => branch.type !== "null");
  const inner = resolveRule(branches[0], schema);
  return {
    ...full,
    ...inner,
    title: full.title,
    section: full.description || inner.section,
    default: full.default,
    description: full.description || inner.description,
    nullable: branches.length < full.anyOf.length,
    listed: branches.length > 1,
  };
}
