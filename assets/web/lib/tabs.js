// A row of tabs and a panel for each; the arrow keys move along the row.

import { el } from "./dom.js";

export class Tabs {
  /**
   * `tabs` are [name, label, content]; ids begin with `prefix`; `onSelect(name)` hears what somebody chose.
   * @param {string} prefix
   * @param {string} about
   * @param {any[][]} tabs
   * @param {(name: string) => void} onSelect
   */
  constructor(prefix, about, tabs, onSelect) {
    this.names = tabs.map(([name]) => name);
    this.onSelect = onSelect;
    this.row = el("div.train-job-tabs", { role: "tablist", "aria-label": about });
    this.panels = tabs.map(([name, label, content]) => this.add(prefix, name, label, content));
    this.row.addEventListener("keydown", (event) => this.onKey(event));
  }

  /**
   * @param {string} prefix
   * @param {string} name
   * @param {string} label
   * @param {any} content
   */
  add(prefix, name, label, content) {
    const tab = el(
      "button.train-job-tab",
      { type: "button", role: "tab", id: `${prefix}-tab-${name}`, "aria-controls": `${prefix}-${name}`, "data-tab": name }, label,
    );
    tab.addEventListener("click", () => this.onSelect(name));
    this.row.append(tab);
    return el("div", { class: `${prefix}-panel`, role: "tabpanel", id: `${prefix}-${name}`, "aria-labelledby": tab.id }, content);
  }

  /**
   * Whether there is a tab of this name.
   * @param {string} name
   */
  has(name) {
    return this.names.includes(name);
  }

  /** @param {string} name */
  show(name) {
    this.shown = name;
    this.names.forEach((other, place) => {
      const tab = this.row.children[place];
      tab.setAttribute("aria-selected", String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
      this.panels[place].hidden = other !== name;
    });
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const at = (this.names.indexOf(this.shown) + by + this.names.length) % this.names.length;
    this.onSelect(this.names[at]);
    this.row.children[at].focus();
  }
}
