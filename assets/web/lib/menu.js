// A button that opens a list of further commands, for what a page needs now and then.

import { button } from "./controls.js";
import { el } from "./dom.js";

/**
 * @param {string} label
 * @param {HTMLElement[]} entries buttons and links
 */
export function menu(label, entries) {
  const list = el("div.page-menu-list", {}, ...entries);
  list.hidden = true;
  const toggle = button(label, () => show(Boolean(list.hidden)), "page-button page-menu-toggle");
  toggle.setAttribute("aria-expanded", "false");
  const root = el("div.page-menu", {}, toggle, list);
  /** @param {boolean} open */
  function show(open) {
    list.hidden = !open;
    list.classList.toggle("page-menu-from-right", toggle.getBoundingClientRect().left + list.offsetWidth > innerWidth);
    toggle.setAttribute("aria-expanded", String(open));
  }
  for (const entry of entries) {
    entry.className = "page-menu-entry";
    entry.addEventListener("click", () => {
      toggle.focus(); // a dialog gives the focus back to what had it
      show(false);
    }, { capture: true });
  }
  root.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && !list.hidden) {
      event.stopPropagation();
      show(false);
      toggle.focus();
    } else if (step) {
      event.preventDefault();
      show(true);
      const at = entries.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + step;
      entries[(at + entries.length) % entries.length].focus();
    }
  });
  root.addEventListener("focusout", ({ relatedTarget: next }) => {
    if (next instanceof Node && !root.contains(next)) show(false);
  });
  addEventListener("pointerdown", ({ target }) => {
    if (target instanceof Node && !root.contains(target)) show(false);
  });
  return { root, toggle };
}
