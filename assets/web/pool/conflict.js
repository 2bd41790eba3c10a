/* Two edits of the same worker or setting: a person sees what both say and chooses. */

import { button } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { openConsent } from "./consent.js";

/**
 * Show both edits. Resolves to what a command is sent again with to put this one in the other's place; null to leave
 * that, which loses nothing that was typed.
 * @param {import("../types").ConflictDocument} conflict
 */
export async function askConflict(conflict) {
  const head = el("tr", {}, ...["", "Theirs", "Yours"].map((word) => el("th", { scope: "col" }, word)));
  const rows = conflict.lines.map(drawLine);
  const table = el("table.pool-version-table", {}, el("thead", {}, head), el("tbody", {}, ...rows));
  const frame = el("div.pool-conflict-frame", { tabindex: "0", role: "region", "aria-label": "Both edits" }, table);
  const lead = el("p.page-lead", {}, "Somebody else has saved another change of the same. Yours is not saved yet.");
  /** @type {import("./consent.js").Foot} */
  const foot = (choose) => [button("Keep theirs", () => choose(false)), button("Save mine instead", () => choose(true), "page-danger")];
  const mine = await openConsent("Changed meanwhile", [lead, frame], foot);
  if (!mine) return null;
  const isGone = conflict.lines.some((line) => line.worker && !line.field && line.theirs === null);
  return { based_on: conflict.based_on, ...(isGone ? { replacing: null } : {}) };
}

/** @param {import("../types").ConflictLine} line */
function drawLine(line) {
  const what = el("th", { scope: "row" }, [line.worker, line.field].filter(Boolean).join(": "));
  return el("tr", {}, what, drawValue(line.theirs, "Theirs"), drawValue(line.yours, "Yours"));
}

/**
 * @param {string | null} value
 * @param {string} side
 */
function drawValue(value, side) {
  return el("td", { "data-name": side }, value === null ? el("span.pool-version-none", {}, "not there") : value);
}
