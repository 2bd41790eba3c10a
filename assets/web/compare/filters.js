// Above and in place of a view: the selects that filter it, and what stands there while nothing was measured.

import { el } from "../lib/dom.js";
import { one, put } from "./address.js";

/** @typedef {import("./page.js").ComparePage} ComparePage */

/** Selects above a view: each is a filter in the address. */
export class Filters {
  /**
   * @param {[string, string, string | null][]} names
   * @param {() => unknown} onChange
   */
  constructor(names, onChange) {
    this.root = el("div.compare-filters");
    this.onChange = onChange;
    /** @type {Record<string, { select: HTMLSelectElement, every: string | null }>} */
    this.selects = {};
    for (const [name, label, every] of names) {
      const select = el("select.page-select", { "aria-label": label, "data-filter": name }, el("option", { value: "" }, every));
      select.addEventListener("change", () => {
        put({ [name]: select.value });
        onChange();
      });
      this.selects[name] = { select, every };
      this.root.append(select);
    }
  }

  values() {
    return Object.fromEntries(Object.keys(this.selects).map((name) => [name, one(name)]));
  }

  /**
   * `label(name, value)` is what a choice is called.
   * @param {Record<string, (string | number)[]>} choices
   * @param {(name: string, value: any) => string} label
   */
  fill(choices, label = (_, value) => value) {
    for (const [name, values] of Object.entries(choices)) {
      const { select, every } = this.selects[name];
      const key = JSON.stringify(values);
      if (select.dataset.key !== key) {
        select.dataset.key = key;
        select.replaceChildren(
          ...(every === null ? [] : [el("option", { value: "" }, every)]),
          ...values.map((value) => el("option", { value }, label(name, value))),
        );
      }
      select.value = one(name);
    }
  }
}

/**
 * @param {string} hint
 * @param {ComparePage} page
 * @param {import("./evaluation_form.js").Settings} settings
 */
export function emptyState(hint, page, settings = {}) {
  const start = el("button.page-button", { type: "button" }, "Start an evaluation");
  start.addEventListener("click", () => page.measure(settings));
  return el("div.compare-empty", {}, el("p", {}, hint), start);
}
