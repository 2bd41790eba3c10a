// The recipe as a form and as YAML: two views of one text, of which the one that was typed in last counts.

import { button } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { RecipeForm } from "./recipe_form.js";

/** @typedef {import("../lib/reply.js").Problem} Problem */
/** @typedef {"form" | "yaml"} Way */

/** @type {[Way, string][]} */
const WAYS = [["form", "Form"], ["yaml", "YAML"]];

export class RecipeEditor {
  /**
   * `onEdit` hears that something was typed.
   * @param {() => void} onEdit
   */
  constructor(onEdit) {
    this.onEdit = onEdit;
    /** @type {Way | null} */
    this.typed = null; // form, yaml, or null: nothing since the recipe was taken
    this.root = el("section.train-card.train-recipe", { "aria-label": "Recipe" });
  }

  /**
   * @param {Record<string, any>} schema
   * @param {string[]} pools
   */
  build(schema, pools) {
    this.form = new RecipeForm(schema, pools, () => this.markTyped("form"));
    const text =
      el("div", {}, el("h2", {}, "Recipe"), el("p.train-mute", {}, "Everything about a job. Each field shows its key in the YAML."));
    this.ways = el("div.page-chips", { role: "group", "aria-label": "Edit as" });
    for (const [name, label] of WAYS) {
      const chip = el("button.page-chip", { type: "button", "data-way": name }, label);
      chip.addEventListener("click", () => this.setWay(name));
      this.ways.append(chip);
    }
    this.opener = button("Show the recipe", () => this.fold(false));
    const head = el("header.train-recipe-head", {}, text, this.ways, this.opener);
    this.wrong = el("ul.page-problems.train-recipe-problems", { role: "alert" });
    this.yaml = el("textarea.train-recipe-yaml", { "aria-label": "Recipe as YAML", spellcheck: "false", autocomplete: "off", wrap: "off" });
    this.yaml.addEventListener("input", () => this.markTyped("yaml"));
    this.body = el("div.train-recipe-body", {}, this.form.root, this.yaml);
    this.root.replaceChildren(head, this.wrong, this.body);
    this.setWay("form");
    this.fold(true);
  }

  /**
   * Most jobs are started as a preset has them: the fields show when they are wanted.
   * @param {boolean} folded
   */
  fold(folded) {
    this.body.hidden = this.ways.hidden = folded;
    this.opener.hidden = !folded;
  }

  /** @param {Way} name */
  setWay(name) {
    this.form.root.hidden = name !== "form";
    this.yaml.hidden = name !== "yaml";
    for (const chip of this.ways.children) chip.setAttribute("aria-pressed", String(chip.dataset.way === name));
    if (name === "yaml") this.yaml.rows = Math.max(24, this.yaml.value.split("\n").length + 1);
  }

  /** @param {Way} way */
  markTyped(way) {
    this.typed = way;
    this.onEdit();
  }

  /** What a command about the recipe carries. */
  draft() {
    if (!this.typed) return { recipe: this.recipe };
    return this.typed === "yaml" ? { yaml: this.yaml.value } : { recipe: this.form.read() };
  }

  /**
   * The server's reading of the recipe. What is being typed in is left alone.
   * @param {import("../types").RecipeDocument} reply
   * @param {Way | null} typedIn
   */
  take({ recipe, yaml, teachers }, typedIn) {
    this.recipe = recipe;
    if (typedIn !== "form") this.form.set(recipe);
    this.form.suggest("demonstrations.teacher", teachers);
    if (typedIn !== "yaml") this.yaml.value = yaml;
    this.show([]);
  }

  /**
   * Problems at their fields, and the others on top.
   * @param {Problem[]} problems
   */
  show(problems) {
    const left = this.typed === "yaml" ? problems : this.form.show(problems);
    this.wrong.replaceChildren(...left.map(([key, what]) => {
      const entry = el("li");
      if (key) entry.append(el("code", {}, key), " ");
      entry.append(what);
      return entry;
    }));
  }

  /**
   * Show a field; YAML that has problems stays, because the form does not have its text.
   * @param {string} key
   * @param {Problem[]} problems
   */
  reveal(key, problems) {
    this.fold(false);
    if (this.typed !== "yaml" || !problems.length) this.setWay("form");
    requestAnimationFrame(() => this.form.reveal(key));
  }
}
