// What a person's role does not allow: controls that would send such a request say why instead. Which requests these are
// the studio says (studio/access/permissions.py); nothing is refused where nobody logs in.

import { Toast } from "./reply.js";

// Buttons that Gradio draws, and the events that they send.
const GRADIO = { "#run": "EVENT start", "#stop": "EVENT halt" };

/**
 * Mark a control with the request that it sends: "pool/create" for a command of a page, otherwise method and path.
 * @template {HTMLElement} Node
 * @param {Node} node
 * @param {string} request
 * @returns {Node}
 */
export function needs(node, request) {
  node.dataset.needs = request.includes(" ") ? request : `POST /api/pages/${request}`;
  return node;
}

/**
 * Hold the page's controls, those that come later too, to what its person may do. `refused` gives the reason by request,
 * `read_only` that for pools which only owners change.
 * @param {{ refused: Record<string, string>, read_only: Record<string, string> }} rights
 */
export function holdToRights({ refused, read_only: readOnly }) {
  if (!Object.keys(refused).length) return;
  const toast = new Toast();
  const mark = () => {
    for (const [selector, request] of Object.entries(GRADIO)) {
      const node = document.querySelector(selector);
      if (node instanceof HTMLElement && !node.dataset.needs) needs(node, request);
    }
    for (const node of document.querySelectorAll("[data-needs]")) {
      if (node instanceof HTMLElement) setReason(node, refused[node.dataset.needs || ""] || findShared(node, readOnly));
    }
  };
  for (const kind of ["click", "mousedown", "keydown", "submit"]) {
    document.addEventListener(kind, (event) => {
      const node = event.target instanceof Element ? event.target.closest("[data-refused]") : null;
      const leaves = event instanceof KeyboardEvent && !["Enter", " ", "ArrowDown", "ArrowUp"].includes(event.key);
      if (!(node instanceof HTMLElement) || leaves) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      if (kind === "mousedown") return;
      // Only now: Gradio draws its container after this module has run.
      if (!toast.node.isConnected) (document.querySelector(".gradio-container") || document.body).append(toast.node);
      toast.say(node.dataset.refused || "", true);
    }, { capture: true });
  }
  mark();
  new MutationObserver(mark).observe(document.body, { childList: true, subtree: true });
}

/**
 * @param {HTMLElement} node
 * @param {string|undefined} reason
 */
function setReason(node, reason) {
  const marked = node.getAttribute("aria-disabled") === "true" || !reason; // a page may have drawn the control anew
  if (node.dataset.refused === reason && marked) return;
  if (reason) {
    node.dataset.refused = reason;
    node.title = reason;
    node.setAttribute("aria-disabled", "true");
  } else {
    delete node.dataset.refused;
    node.removeAttribute("title");
    node.removeAttribute("aria-disabled");
  }
}

/**
 * The reason of a control that changes a pool which is shared read-only.
 * @param {HTMLElement} node
 * @param {Record<string, string>} readOnly
 */
function findShared(node, readOnly) {
  return document.querySelector(".pool-page[data-read-only]") ? readOnly[node.dataset.needs || ""] : undefined;
}
