// Who is compared: two to four orchestrators as chips, and a list to add from.

import { el, icon } from "../lib/dom.js";
import { ACTIONS } from "../lib/icons.js";

export class Picker {
  /**
   * `onChange(names)` hears the new choice.
   * @param {(names: string[]) => void} onChange
   */
  constructor(onChange) {
    this.onChange = onChange;
    /** @type {string[]} */
    this.names = [];
    this.root = el("section.compare-picker", { "aria-label": "Orchestrators" });
    this.chips = el("div.compare-chips", { role: "list" });
    this.add = el("select.page-select.compare-add", { "aria-label": "Add an orchestrator" });
    this.add.addEventListener("change", () => this.take(this.add.value));
    this.other = el("input.page-search.compare-other", {
      type: "text", placeholder: "or write a name, such as JOB@STEP", "aria-label": "Name of an orchestrator",
    });
    this.other.addEventListener("keydown", (event) => event.key === "Enter" && this.take(this.other.value.trim()));
    this.note = el("span.train-mute");
    this.root.append(this.chips, this.add, this.other, this.note);
  }

  /**
   * @param {import("../types").CompareChoices} reply
   * @param {string[]} names
   */
  build(reply, names) {
    this.reply = reply;
    this.labels = new Map(reply.orchestrators.map((orchestrator) => [orchestrator.name, orchestrator.label]));
    this.names = names.slice(0, reply.most);
    this.draw();
  }

  /** @param {string} name */
  take(name) {
    if (name && !this.names.includes(name) && this.names.length < this.reply.most) this.change([...this.names, name]);
    this.add.value = "";
    this.other.value = "";
  }

  /** @param {string[]} names */
  change(names) {
    this.names = names;
    this.draw();
    this.onChange(names);
  }

  draw() {
    this.chips.replaceChildren(...this.names.map((name, place) => this.chip(name, place)));
    const full = this.names.length >= this.reply.most;
    this.add.hidden = this.other.hidden = full;
    this.note.textContent = full ? `At most ${this.reply.most}: take one away to choose another.`
      : this.names.length < this.reply.fewest ? `Choose ${this.reply.fewest} to ${this.reply.most}.`
      : "";
    this.add.replaceChildren(el("option", { value: "" }, "Add an orchestrator …"));
    /** @type {Map<string, HTMLOptGroupElement>} */
    const groups = new Map();
    for (const orchestrator of this.reply.orchestrators) {
      if (this.names.includes(orchestrator.name)) continue;
      if (!groups.has(orchestrator.group)) groups.set(orchestrator.group, el("optgroup", { label: orchestrator.group }));
      groups.get(orchestrator.group).append(el("option", { value: orchestrator.name }, orchestrator.label));
    }
    this.add.append(...groups.values());
  }

  /**
   * @param {string} name
   * @param {number} place
   */
  chip(name, place) {
    const dot = el("i.compare-query-dot");
    dot.style.background = `var(--podium-series-${place + 1})`;
    const words = el("span", { title: name }, this.labels.get(name) || name);
    const away =
      el("button.compare-away", { type: "button", "aria-label": `Take ${this.labels.get(name) || name} away` }, icon(ACTIONS.cross));
    away.addEventListener("click", () => this.change(this.names.filter((other) => other !== name)));
    return el("span.compare-chip", { role: "listitem", "data-name": name }, dot, words, away);
  }
}
