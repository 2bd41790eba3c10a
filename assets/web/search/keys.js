// Keys that work on every page: Enter runs a query, Ctrl+K finds anything, / goes to the page's field, ? lists them.

import { openKeys, openPalette } from "./palette.js";

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** [keys, what they do]
 * @type {[string[], string][]} */
const KEYS = [
  [["Enter"], "Run the query"],
  [["Shift", "Enter"], "Begin a new line in the query"],
  [["/"], "Go to the page's first field to type in"],
  [[isMac ? "⌘" : "Ctrl", "K"], "Find a page, pool, worker, orchestrator, job or run"],
  [["←", "→", "↑", "↓"], "Move among the steps of a graph that has the focus"],
  [["?"], "Show these keys"],
  [["Esc"], "Close what is open"],
];

/** @param {EventTarget|null} target */
function takesText(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));
}

/** The field of the page that a person most likely wants to type in. */
function findField() {
  const fields = document.querySelectorAll("#page :is(textarea, input[type='search'], input[type='text'], input:not([type]))");
  return /** @type {HTMLElement[]} */ ([...fields]).find((field) => field.checkVisibility());
}

/** @param {KeyboardEvent} event */
function isQuery(event) {
  return event.target instanceof HTMLElement && event.target.matches("#query textarea");
}

/** @param {KeyboardEvent} event */
function runQuery(event) {
  // While a word is composed, as in Japanese, Enter takes the word.
  if (!isQuery(event) || event.isComposing || event.shiftKey || event.altKey) return false;
  document.getElementById("run")?.click();
  return true;
}

function goToField() {
  findField()?.focus();
  return true;
}

/** @param {KeyboardEvent} event */
function handle(event) {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
    openPalette();
    return true;
  }
  if (event.key === "Enter") return runQuery(event);
  const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
  if (!isPlain || takesText(event.target) || document.querySelector("dialog[open]")) return false;
  if (event.key === "/") return goToField();
  if (event.key !== "?") return false;
  openKeys(KEYS);
  return true;
}

// Before the listeners of what has the focus.
addEventListener("keydown", (event) => {
  if (!handle(event)) return;
  event.preventDefault();
  event.stopPropagation();
}, { capture: true });

// Gradio would send its form by Shift+Enter: there the browser begins a new line.
addEventListener("keypress", (event) => {
  if (event.key === "Enter" && isQuery(event)) event.stopPropagation();
}, { capture: true });

// The navigation comes late and may be drawn twice.
document.addEventListener("click", ({ target }) => {
  if (target instanceof Element && target.closest(".podium-find")) openPalette();
});
