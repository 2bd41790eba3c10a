// The form of a new evaluation: orchestrators x families x levels x conditions x samples, put into the one queue. Opened
// by every empty place of the page with what it lacks.

import { count, copyButton, el, icon } from "../lib/dom.js";
import { ACTIONS } from "../lib/icons.js";
import { needs } from "../lib/rights.js";
import { all } from "./address.js";
import { plural } from "./formats.js";

/** @typedef {import("../types").CompareChoices} CompareChoices */
/** @typedef {"orchestrators" | "families" | "levels" | "conditions" | "without"} SetName */
/** @typedef {Partial<Record<SetName, string[]>>} Settings */
/** @typedef {import("../lib/reply.js").Problem} Problem */

const CHECK_MS = 400;
const LEVELS = [1, 2, 3];
const OWN = "practice:";

export class EvaluationForm {
  /** @param {import("./page.js").ComparePage} page */
  constructor(page) {
    this.page = page;
    this.sending = false;
    this.root = el("details.train-card.compare-evaluate", { "data-testid": "evaluate" });
    this.root.addEventListener("toggle", () => this.root.open && this.check());
  }

  /** @param {import("../types").CompareChoices} reply */
  build(reply) {
    this.reply = reply;
    this.orchestrators = new Set(all("o"));
    /** @type {{ families: Set<string>, levels: Set<number>, conditions: Set<string>, without: Set<string> }} */
    this.sets = {
      families: new Set(chooseFamilies(reply)), levels: new Set([1, 2]),
      conditions: new Set(["seen"]), without: new Set(),
    };
    /** @type {Partial<Record<SetName, Map<string | number, HTMLInputElement>>>} */
    this.fields = {};
    /** @type {Partial<Record<SetName, { list: HTMLElement, words: (value: any) => string }>>} */
    this.places = {};
    this.numbers = {
      count: number("Tasks", "count", 60, 1), samples: number("Samples of each", "samples", 1, 1),
      max_cost: number("Spend at most, US dollars", "max_cost", "", 0),
    };
    this.numbers.max_cost.querySelector("input").placeholder = "no cap";
    this.wrong = el("ul.page-problems", { role: "alert" });
    this.size = el("p.train-mute");
    this.go = needs(el("button.page-primary", { type: "button" }, icon(ACTIONS.play), "Start the evaluation"), "compare/evaluate");
    this.go.addEventListener("click", () => this.submit());
    const summary = el("summary", {}, "New evaluation");
    const numbers = el("div.compare-evaluate-numbers", {}, ...Object.values(this.numbers));
    this.yaml = copyButton(() => this.text || "", "Copy the recipe");
    const foot = el("div.compare-evaluate-foot", {}, this.go, this.yaml, this.size);
    this.root.replaceChildren(
      summary,
      this.group(
        "Orchestrators", "orchestrators", reply.orchestrators.map((orchestrator) => orchestrator.name), (name) => this.page.label(name),
        "The fixed baselines and the oracle belong on every table.",
        this.baselinesButton(reply.baselines),
      ),
      this.group("Tasks", "families", reply.families, (name) => nameTasks(name, reply), "Generated families are about the starter pool's workers."),
      this.group("Levels", "levels", LEVELS, (level) => `level ${level}`),
      this.group(
        "Pool conditions", "conditions", reply.conditions, (name) => name, "How well it does on a pool that was changed under it.",
      ),
      this.group("Switch off", "without", reply.workers, (name) => name, "One condition for each: the same tasks without that worker."),
      numbers, this.wrong, foot,
    );
    this.root.addEventListener("input", () => this.onChange());
  }

  /**
   * The picked orchestrators changed; the form takes them.
   * @param {string[]} names
   */
  follow(names) {
    for (const name of names) this.tick("orchestrators", name, true);
    this.onChange();
  }

  /**
   * Open with some settings: {orchestrators, families, conditions, without}.
   * @param {Settings} settings
   */
  open(settings) {
    for (const [name, values] of Object.entries(settings))
      for (const value of values) this.tick(/** @type {SetName} */ (name), value, true);
    this.root.open = true;
    this.onChange();
    this.root.scrollIntoView({ block: "nearest" });
    this.root.querySelector("summary").focus();
  }

  /**
   * @param {SetName} name
   * @returns {Set<string | number>}
   */
  set(name) {
    return name === "orchestrators" ? this.orchestrators : this.sets[name];
  }

  /**
   * @param {SetName} name
   * @param {string | number} value
   * @param {boolean} on
   */
  tick(name, value, on) {
    this.set(name)[on ? "add" : "delete"](value);
    const box = this.fields[name]?.get(value) || (on && this.addBox(name, value));
    if (box) box.checked = on;
  }

  /**
   * Ticks what a trained orchestrator must beat.
   * @param {string[]} names
   */
  baselinesButton(names) {
    const button = el("button.page-button", { type: "button" }, "Tick the baselines");
    button.addEventListener("click", () => {
      for (const name of names) this.tick("orchestrators", name, true);
      this.onChange();
    });
    return button;
  }

  /**
   * @param {string} label
   * @param {SetName} name
   * @param {(string | number)[]} values
   * @param {(value: any) => string} words
   * @param {string} about
   * @param {HTMLElement | null} shortcut
   */
  group(label, name, values, words, about = "", shortcut = null) {
    const box = el("fieldset.compare-evaluate-group", { "data-group": name }, el("legend", {}, label));
    if (about) box.append(el("p.train-mute", {}, about));
    if (shortcut) box.append(shortcut);
    const list = el("div.compare-evaluate-checks");
    this.fields[name] = new Map();
    this.places[name] = { list, words };
    for (const value of new Set([...values, ...this.set(name)])) this.addBox(name, value);
    box.append(list);
    return box;
  }

  /**
   * A box for one value: for those that are chosen without being offered, too, as an address may name an orchestrator
   * that is gone, and nothing may be measured unseen.
   * @param {SetName} name
   * @param {string | number} value
   */
  addBox(name, value) {
    if (!this.places[name]) return null;
    const { list, words } = this.places[name];
    const input = el("input", { type: "checkbox", value });
    input.checked = this.set(name).has(value);
    input.addEventListener("change", () => this.tick(name, value, input.checked));
    this.fields[name].set(value, input);
    list.append(el("label.compare-evaluate-check", {}, input, el("span", {}, words(value))));
    return input;
  }

  draft() {
    return {
      pool: this.reply.pool,
      orchestrators: [...this.orchestrators],
      families: [...this.sets.families],
      levels: [...this.sets.levels].sort(),
      conditions: [...this.sets.conditions, ...[...this.sets.without].map((name) => `without:${name}`)],
      count: readNumber(this.numbers.count) ?? 0,
      samples: readNumber(this.numbers.samples) ?? 0,
      max_cost: readNumber(this.numbers.max_cost),
    };
  }

  onChange() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.check(), CHECK_MS);
  }

  /** Ask what the server thinks: problems at their key, and what prevents a start. */
  async check() {
    if (!this.root.open) return;
    const draft = this.draft();
    const request = (this.request = Symbol());
    const reply = await this.page.ask({ action: "check", evaluation: draft });
    if (request !== this.request) return;
    const problems = reply.ok ? listBlocks(reply) : reply.problems;
    this.text = reply.yaml;
    this.show(problems);
    const episodes = draft.orchestrators.length * draft.count * draft.samples * draft.conditions.length;
    this.size.textContent = problems.length
      ? ""
      : `${plural(draft.orchestrators.length, "orchestrator")} × ${count(draft.count)} tasks × ${plural(draft.samples, "sample")} × ${plural(draft.conditions.length, "condition")}: ${count(episodes)} episodes at most.`;
  }

  /** @param {Problem[]} problems */
  show(problems) {
    this.go.setAttribute("aria-disabled", String(problems.length > 0));
    this.yaml.hidden = problems.length > 0;
    this.wrong.replaceChildren(
      ...problems.map(([key, what]) => {
        const entry = el("li");
        if (key) entry.append(el("code", {}, key), " ");
        entry.append(what);
        return entry;
      }),
    );
  }

  async submit() {
    if (this.sending) return null;
    if (this.go.getAttribute("aria-disabled") === "true") return this.check(); // say again what is missing
    this.sending = true;
    this.go.setAttribute("aria-disabled", "true");
    const reply = await this.page.ask({ action: "evaluate", evaluation: this.draft() });
    this.sending = false;
    this.go.setAttribute("aria-disabled", "false");
    if (!reply.ok) {
      this.show(reply.problems);
      return this.page.say("The job was not started.", true);
    }
    this.page.say(reply.message);
    this.root.open = false;
    return this.page.showEvaluation(reply.job);
  }
}

/**
 * What prevents a start.
 * @param {import("../types").EvaluationCheck} check
 * @returns {Problem[]}
 */
function listBlocks({ missing }) {
  return missing.filter((item) => item.blocks).map((item) => [item.key, item.sentence]);
}

/**
 * A pool's own tasks where it has some; otherwise the families that are trained on.
 * @param {CompareChoices} choices
 */
function chooseFamilies({ families, held_out: held }) {
  const own = families.filter((name) => name.startsWith(OWN));
  return own.length ? own : families.filter((name) => !held.includes(name));
}

/**
 * @param {string} name
 * @param {CompareChoices} choices
 */
function nameTasks(name, { held_out: held }) {
  if (name.startsWith(OWN)) return `own tasks of ${name.slice(OWN.length)}`;
  return held.includes(name) ? `${name} (held out)` : name;
}

/**
 * @param {string} label
 * @param {string} name
 * @param {number | ""} value
 * @param {number} least
 */
function number(label, name, value, least) {
  const input = el("input.page-search", { type: "number", min: least, step: "any", name });
  input.value = String(value);
  return el("label.compare-query-field", {}, el("span", {}, label), input);
}

/**
 * What stands in a number's box, or null. What is no number goes to the server as "?", which it refuses at its key: the
 * box says that it is empty.
 * @param {HTMLElement} field
 * @returns {any}
 */
function readNumber(field) {
  const input = field.querySelector("input");
  if (input.validity?.badInput) return "?";
  return input.value === "" ? null : Number(input.value);
}
