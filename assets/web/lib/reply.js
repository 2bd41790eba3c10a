// What a page shows of a command's reply: its problems, and a line at the lower edge.

/** @typedef {[string, string]} Problem the field that it belongs to, or "", and a sentence */

import { button } from "./controls.js";
import { el } from "./dom.js";

/**
 * Problems of a reply as one line, without the fields that they belong to.
 * @param {Problem[]} problems
 */
export const plain = (problems) => problems.map(([, what]) => what).join("; ");

/** A line at the lower edge that goes by itself, above every dialog. */
export class Toast {
  constructor() {
    this.node = el("div.page-toast", { role: "status", popover: "manual" });
  }

  /**
   * @param {string} text
   * @param {boolean} bad
   * @param {...([string, () => unknown]|null|undefined)} actions label and work of buttons in it
   */
  say(text, bad = false, ...actions) {
    if (!text) return;
    this.node.replaceChildren(el("span", {}, text));
    for (const action of actions) {
      if (!action) continue;
      const [label, work] = action;
      this.node.append(button(label, () => {
        this.node.hidePopover();
        work();
      }, "page-toast-action"));
    }
    this.node.classList.toggle("page-bad", bad);
    if (this.node.matches(":popover-open")) this.node.hidePopover(); // shown anew it is above a dialog opened meanwhile
    this.node.showPopover();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.node.hidePopover(), bad || actions.length ? 9000 : 3500);
  }
}
