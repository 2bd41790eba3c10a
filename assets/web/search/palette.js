// The palette: type a few letters of anything that has a name, and go there. And the list of keys.

import { sendCommand } from "../lib/api.js";
import { Drawer } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { plain } from "../lib/reply.js";

/** @typedef {import("../types").SearchHit} SearchHit */

const WAIT_MS = 120; // after a letter, so that a word is one request

class Palette {
  constructor() {
    this.input = el("input.search-input", {
      type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", placeholder: "Find a page, pool, worker, job or run",
      "aria-label": "Find", "aria-expanded": "true", "aria-controls": "search-hits", "aria-autocomplete": "list",
    });
    this.list = el("div.search-hits", { id: "search-hits", role: "listbox", "aria-label": "Places" });
    this.note = el("p.search-note", { role: "status" });
    this.node = el("dialog.search-palette", { "aria-label": "Find" }, this.input, this.list, this.note);
    /** @type {SearchHit[]} */
    this.hits = [];
    this.at = 0;
    this.request = 0;
    this.hitsText = ""; // what the hits that are shown were found for
    this.input.addEventListener("input", () => this.wait());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    this.node.addEventListener("click", (event) => event.target === this.node && this.node.close());
    this.watch = new MutationObserver(() => this.node.isConnected || this.show());
    this.node.addEventListener("close", () => this.watch.disconnect());
  }

  open() {
    if (this.node.open && this.node.isConnected) return;
    this.input.value = this.hitsText = "";
    this.draw([]);
    this.show();
    this.watch.observe(document, { childList: true, subtree: true });
    this.find();
  }

  /** Gradio may draw the page anew, also while this is open: then it is no longer part of it. */
  show() {
    this.node.open = false;
    host().append(this.node);
    this.node.showModal();
    this.input.focus();
  }

  wait() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.find(), WAIT_MS);
  }

  async find() {
    const request = ++this.request;
    const text = this.input.value;
    const reply = await sendCommand("search", { action: "find", text });
    if (request !== this.request) return; // more was typed
    if (reply.ok) this.hitsText = text;
    this.draw(reply.ok ? reply.hits : [], reply.ok ? "" : plain(reply.problems));
  }

  /**
   * @param {SearchHit[]} hits
   * @param {string} problem
   */
  draw(hits, problem = "") {
    this.hits = hits;
    const nothing = this.input.value.trim() && !hits.length ? "Nothing has these words." : "";
    this.note.textContent = problem || nothing;
    this.list.replaceChildren(...hits.map((hit, place) => hitLine(hit, place)));
    this.mark(0);
  }

  /** @param {number} place */
  mark(place) {
    const lines = this.list.children;
    this.at = lines.length ? (place + lines.length) % lines.length : 0;
    for (const [index, line] of [...lines].entries()) line.setAttribute("aria-selected", String(index === this.at));
    const line = lines[this.at];
    this.input.setAttribute("aria-activedescendant", line?.id ?? "");
    line?.scrollIntoView({ block: "nearest" });
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.mark(this.at + step);
    else if (event.key === "Enter") this.go();
    else return;
    event.preventDefault();
  }

  /** Go to the place that is marked; one that was found for fewer letters is not what was typed. */
  async go() {
    if (this.input.value !== this.hitsText) {
      clearTimeout(this.timer);
      await this.find();
    }
    if (!this.node.open || this.input.value !== this.hitsText) return;
    /** @type {HTMLElement|undefined} */ (this.list.children[this.at])?.click();
  }
}

/**
 * @param {SearchHit} hit
 * @param {number} place
 */
function hitLine({ kind, title, note, address }, place) {
  const about = note ? el("span", {}, note) : null;
  const option = { id: `search-hit-${place}`, role: "option", "aria-selected": "false", href: address, tabindex: "-1" };
  return el("a", option, el("b", {}, title), about, el("i", {}, kind));
}

/** What our stylesheets reach. */
function host() {
  return document.querySelector(".gradio-container") ?? document.body;
}

/** @type {Palette|null} */
let palette = null;
/** @type {Drawer|null} */
let drawer = null;

export function openPalette() {
  palette ??= new Palette();
  palette.open();
}

/**
 * Show what each key does.
 * @param {[string[], string][]} keys
 */
export function openKeys(keys) {
  drawer ??= new Drawer();
  host().append(drawer.node);
  const lines = keys.map(([names, what]) => el("li", {}, el("span", {}, ...names.map((name) => el("kbd", {}, name))), what));
  drawer.open("Keys", [el("ul.search-keys", {}, ...lines)]);
}
