// One step in the what-if editor: worker, arguments as its schema has them, and whose outputs it may see.

import { button, select } from "../lib/controls.js";
import { el, icon } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { ACTIONS } from "../lib/icons.js";
import { asText, asValue } from "./draft.js";

/** @type {Record<import("./editor.js").Fate, string>} */
const FATES = { planned: "planned", kept: "kept", rerun: "called again", changed: "changed", new: "new", removed: "removed" };

export class StepForm {
  /**
   * @param {import("./draft.js").DraftStep} step
   * @param {import("./editor.js").Editor} editor
   * @param {{ changed: () => void, removed: () => void, restored: () => void }} on
   */
  constructor(step, editor, { changed, removed, restored }) {
    this.step = step;
    this.editor = editor;
    this.on = { changed, removed, restored };
    this.root = el("details.what-if-step", { "data-step": step.id });
    this.summary = el("summary");
    this.title = el("span.what-if-title");
    this.badge = el("span.what-if-fate");
    this.summary.append(this.title, this.badge);
    this.body = el("div.what-if-body");
    this.problem = el("p.form-problem", { role: "alert" });
    this.root.append(this.summary, this.problem, this.body);
    this.draw();
    this.tellFate(step.removed ? "removed" : step.isNew ? "new" : "kept");
  }

  draw() {
    const { step } = this;
    this.title.textContent = `${step.id} · ${step.worker || "?"}`;
    if (step.removed) {
      this.body.replaceChildren(button("Put it back", () => this.on.restored(), "podium-link"));
      return;
    }
    const parts = [this.workerField(), ...this.argumentFields(), this.accessField(), this.actions()];
    this.body.replaceChildren(...parts);
  }

  workerField() {
    const names = [...this.editor.workers.keys()];
    const choices = names.includes(this.step.worker) ? names : [this.step.worker, ...names];
    const choice =
      select(choices.map((name) => [name, this.editor.workers.has(name) ? name : `${name} (not in this pool)`]), this.step.worker, (name) =>
        this.call(name));
    const worker = this.editor.workers.get(this.step.worker);
    return labelField("Worker", choice, worker?.description || "").node;
  }

  /**
   * Another worker: its one text argument takes over the old one's, whatever they are called.
   * @param {string} name
   */
  call(name) {
    const before = this.editor.workers.get(this.step.worker);
    const now = this.editor.workers.get(name);
    const given = this.step.arguments;
    const text = before?.instruction && given[before.instruction];
    const names = Object.keys(now?.parameters.properties || {});
    if (now?.instruction && text !== undefined && text !== null && text !== false) this.step.arguments = { [now.instruction]: text };
    else if (names.length) {
      const kept = names.filter((key) => key in given || now.parameters.required?.includes(key));
      this.step.arguments = Object.fromEntries(kept.map((key) => [key, given[key] ?? ""]));
    }
    this.step.worker = name;
    this.draw();
    this.body.querySelector("select").focus();
    this.on.changed();
  }

  argumentFields() {
    const schema = this.editor.workers.get(this.step.worker)?.parameters;
    const properties = schema?.properties || {};
    const names = new Set([...Object.keys(properties), ...Object.keys(this.step.arguments)]);
    return [...names].map((name) => this.argumentField(name, properties[name] || {}, schema?.required?.includes(name)));
  }

  /**
   * @param {string} name
   * @param {Record<string, any>} rule
   * @param {boolean} required
   */
  argumentField(name, rule, required) {
    const given = this.step.arguments[name];
    const area = el("textarea", { rows: "2", spellcheck: "false" });
    area.value = asText(given);
    area.rows = Math.min(8, Math.max(2, area.value.split("\n").length));
    area.addEventListener("input", () => {
      if (area.value === "" && !required) delete this.step.arguments[name];
      else this.step.arguments[name] = rule.type === "string" || !rule.type ? asTyped(area.value, given) : asValue(area.value);
      this.on.changed();
    });
    const field = labelField(name.replaceAll("_", " "), area, rule.description || "");
    field.node.classList.toggle("form-required", Boolean(required));
    return field.node;
  }

  accessField() {
    const box = el("fieldset.what-if-access", {}, el("legend.form-label", {}, "May see the outputs of"));
    const others = this.editor.draft.candidates(this.step.id);
    if (!others.length) box.append(el("span.form-about", {}, "There is no other step."));
    for (const other of others) {
      const input = el("input", { type: "checkbox" });
      input.checked = this.step.access.includes(other.id);
      input.addEventListener("change", () => {
        const rest = this.step.access.filter((k) => k !== other.id);
        this.step.access = input.checked ? [...rest, other.id] : rest;
        this.on.changed();
      });
      box.append(el("label.what-if-chip", {}, input, `${other.id} ${other.worker || "?"}`));
    }
    return box;
  }

  actions() {
    const row = el("div.what-if-actions");
    const undo = button("Undo changes", () => this.on.restored(), "podium-link what-if-undo");
    if (this.editor.kind.pending && !this.step.isNew) row.append(undo);
    else if (!this.step.isNew) {
      const input = el("input", { type: "checkbox" });
      input.checked = this.step.again;
      input.addEventListener("change", () => {
        this.step.again = input.checked;
        this.on.changed();
      });
      const again = el("label.what-if-again", {}, input, "Call it again");
      row.append(again, undo);
    }
    const remove = button("", () => this.on.removed(), "podium-link what-if-remove");
    remove.append(icon(ACTIONS.trash), "Remove");
    row.append(remove);
    return row;
  }

  focus() {
    (this.body.querySelector("textarea, select, button") || this.summary).focus({ preventScroll: true });
  }

  /** @param {import("./editor.js").Fate} fate */
  tellFate(fate) {
    this.root.dataset.fate = fate;
    this.badge.textContent = FATES[fate];
    this.title.textContent = `${this.step.id} · ${this.step.worker || "?"}`;
    const undo = /** @type {HTMLElement} */ (this.body.querySelector(".what-if-undo"));
    if (undo) undo.hidden = fate !== "changed";
  }

  /** @param {string} text */
  say(text) {
    this.problem.textContent = text;
    this.root.classList.toggle("what-if-wrong", Boolean(text));
    if (text) this.root.open = true;
  }
}

/**
 * Text stays text; what was recorded as something else is read as JSON again.
 * @param {string} text
 * @param {unknown} given
 */
function asTyped(text, given) {
  return given === undefined || given === null || typeof given === "string" ? text : asValue(text);
}
