// A form from a JSON Schema (as pydantic writes it): one field a property, with its description, default and
// problem. Reading it back gives JSON; what cannot be read is told at its field and nothing is lost. `special`
// may make a field of its own for a property ({node, read, say}), or null for the usual one.

import { el } from "./dom.js";

export class Form {
  constructor(schema, values = {}, { prefix = "", special = (_name, _rule, _value) => null } = {}) {
    this.root = el("div.form-fields");
    this.fields = new Map();
    const required = new Set(schema.required || []);
    for (const [name, rule] of Object.entries(schema.properties || {})) {
      const full = resolveRule(rule, schema);
      const field = special(name, full, values[name]) || makeField(prefix + name, name, full, values[name], required.has(name));
      this.fields.set(name, field);
      this.root.append(field.node);
    }
  }

  /** {name: value}; fields left empty and not required are left out. */
  read() {
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

  /** Show [[name, message], ...] at their fields; returns what belongs to no field. */
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

/** A labelField field around any input. Its description and problem are told by reference, not in its name. */
export function labelField(label, input, about = "") {
  const id = `field-${++fields}`;
  input.id = id;
  const problem = el("span.form-problem", { role: "alert", id: `${id}-problem` });
  const node = el("div.form-field", {}, el("label.form-label", { for: id }, label));
  if (about) node.append(el("span.form-about", { id: `${id}-about` }, about));
  node.append(input, problem);
  input.setAttribute("aria-describedby", `${id}-about ${id}-problem`);
  const say = (text) => {
    problem.textContent = text;
    node.classList.toggle("form-wrong", Boolean(text));
    input.setAttribute("aria-invalid", String(Boolean(text)));
  };
  return { node, say };
}

function makeField(id, name, rule, value, required) {
  const type = typeOf(rule);
  const input = makeInput(type, rule, value ?? rule.default);
  input.name = id;
  const { node, say } = labelField(words(name), input, rule.description || "");
  node.classList.toggle("form-required", required);
  input.setAttribute("aria-required", String(required));
  if (type === "boolean") node.classList.add("form-check");
  const read = () => {
    try {
      return readInput(input, type, required);
    } catch (error) {
      say(error.message);
      throw error;
    }
  };
  return { node, say, read };
}

/** "base_url" -> "Base URL", "timeout_s" -> "Timeout (seconds)" */
function words(name) {
  const text = name.replaceAll("_", " ").replace(/\b(url|api|sql|id)\b/g, (word) => word.toUpperCase());
  return (text[0].toUpperCase() + text.slice(1)).replace(/ s$/, " (seconds)");
}

function makeInput(type, rule, value) {
  if (type === "boolean") return Object.assign(el("input", { type: "checkbox" }), { checked: Boolean(value) });
  if (type === "enum") {
    const select = el("select");
    for (const choice of rule.enum) select.append(el("option", { value: choice }, choice));
    select.value = value ?? rule.enum[0];
    return select;
  }
  if (type === "number") return Object.assign(el("input", { type: "number", step: "any" }), { value: value ?? "" });
  if (type === "json") {
    const area = el("textarea.form-code", { rows: "3", spellcheck: "false" });
    area.value = value === undefined || value === null ? "" : JSON.stringify(value, null, 1);
    return area;
  }
  const long = (rule.maxLength || 0) > 200 || /query|prompt|code|expression|instruction|request/i.test(`${rule.title} ${rule.description}`);
  const input = long ? el("textarea", { rows: "3" }) : el("input", { type: "text", autocomplete: "off" });
  input.value = value ?? "";
  return input;
}

function readInput(input, type, required) {
  if (type === "boolean") return input.checked;
  const text = input.value;
  if (text.trim() === "" && !required) return undefined;
  if (type === "number") {
    const number = Number(text);
    if (text.trim() === "" || Number.isNaN(number)) throw new Error("write a number");
    return number;
  }
  if (type === "json") {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new Error(`write JSON: ${error.message}`, { cause: error });
    }
  }
  return text;
}

function typeOf(rule) {
  if (rule.enum) return "enum";
  if (rule.type === "boolean" || rule.type === "string") return rule.type;
  if (rule.type === "integer" || rule.type === "number") return "number";
  return "json";
}

/** Follow $ref, and take the other branch of "or null". */
function resolveRule(rule, schema) {
  let full = rule;
  if (rule.$ref) full = { ...schema.$defs[rule.$ref.split("/").pop()], ...rule };
  const branch = (full.anyOf || []).find((option) => option.type !== "null");
  return branch ? { ...full, ...resolveRule(branch, schema), description: full.description, title: full.title } : full;
}
