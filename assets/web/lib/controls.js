// Buttons, pickers and the one drawer that every dialog of a page opens in.

import { el, icon } from "./dom.js";
import { ACTIONS } from "./icons.js";

/**
 * @param {string} text
 * @param {(event: any) => void} work
 * @param {string} className
 */
export function button(text, work, className = "page-button") {
  const node = el("button", { class: className, type: "button" }, text);
  node.addEventListener("click", work);
  return node;
}

/**
 * @param {string[][]} options
 * @param {string|null|undefined} value
 * @param {(value: string) => unknown} work hears what was chosen
 */
export function select(options, value, work = () => {}) {
  const node = el("select.page-select");
  for (const [key, label] of options) node.append(el("option", { value: key }, label));
  node.value = value ?? "";
  node.addEventListener("change", () => work(node.value));
  return node;
}

/**
 * The result of `read`, or null when a field has told what is wrong with it.
 * @param {() => any} read
 */
export function attempt(read) {
  try {
    return read();
  } catch {
    return null;
  }
}

/**
 * Do `work` while the button says so and cannot be pressed again. Then it shows what it did, its icon too, unless the work
 * has drawn it anew.
 * @param {any} node
 * @param {string} word
 * @param {() => any} work
 */
export async function busy(node, word, work) {
  const before = [...node.childNodes];
  const label = document.createTextNode(word);
  node.disabled = true;
  node.replaceChildren(label);
  try {
    return await work();
  } finally {
    node.disabled = false;
    if (node.firstChild === label) node.replaceChildren(...before);
  }
}

/** A modal drawer on the right, or a wide dialog in the middle. Escape closes it, and focus goes back. */
export class Drawer {
  constructor() {
    this.node = el("dialog.page-drawer");
    let began = false; // on the veil: a drag that only ends there selects text
    this.node.addEventListener("pointerdown", (event) => (began = this.isVeil(event)));
    this.node.addEventListener("click", (event) => {
      if (began && this.isVeil(event)) this.close();
    });
    this.node.addEventListener("close", () => this.giveFocusBack());
  }

  /**
   * Show `parts` under a title; `back` adds a way to what was shown before.
   * @param {string} title
   * @param {any[]} parts
   * @param {{ wide?: boolean, back?: (() => void)|null, focus?: any }} how
   */
  open(title, parts, { wide = false, back = null, focus = null } = {}) {
    if (!this.node.open) this.opener = document.activeElement?.dataset?.key || null;
    const head = el("header.page-drawer-head");
    if (back) head.append(iconButton("Back", ACTIONS.back, back));
    head.append(el("h2", {}, title), iconButton("Close", ACTIONS.cross, () => this.close()));
    this.node.replaceChildren(head, ...parts);
    this.node.setAttribute("aria-label", title);
    this.node.classList.toggle("page-wide", wide);
    this.node.scrollTop = 0;
    if (!this.node.open) this.node.showModal();
    const first = focus ||
      this.node.querySelector(".form-fields input, .form-fields textarea, .form-fields select, .form-field input, .form-field textarea");
    if (first && matchMedia("(pointer: fine)").matches) first.focus();
  }

  close() {
    this.node.close();
  }

  /**
   * Whether this hit what lies around the drawer, and not its own padding.
   * @param {MouseEvent} event
   */
  isVeil({ target, clientX, clientY }) {
    if (target !== this.node) return false;
    const { left, right, top, bottom } = this.node.getBoundingClientRect();
    return clientX < left || clientX > right || clientY < top || clientY > bottom;
  }

  /** The page may have been drawn anew meanwhile: the opener is found by its key. */
  giveFocusBack() {
    if (this.opener) document.querySelector(`[data-key="${CSS.escape(this.opener)}"]`)?.focus();
  }

  /** @param {...HTMLElement} buttons */
  foot(...buttons) {
    return el("div.page-drawer-foot", {}, ...buttons);
  }
}

/**
 * @param {string} label
 * @param {string} path
 * @param {() => void} work
 */
function iconButton(label, path, work) {
  const node = button("", work, "page-close");
  node.append(icon(path));
  node.setAttribute("aria-label", label);
  return node;
}
