// Tasks that no improvement takes, because candidates that learnt from them were refused, until a person puts them back.

import { busy, button } from "../lib/controls.js";
import { count, el } from "../lib/dom.js";
import { needs } from "../lib/rights.js";

export class AsideTasks {
  /** @param {(queries: string[]) => Promise<unknown>} putBack */
  constructor(putBack) {
    this.putBack = putBack;
    this.node = el("section.tasks-aside", { "aria-label": "Set aside" });
  }

  /** @param {import("../types").CandidatesDocument} state */
  show(state) {
    this.node.hidden = !state.aside.length;
    const queries = state.aside.map((line) => line.query);
    const rest = state.total_aside - queries.length;
    this.node.replaceChildren(
      el("header", {}, el("h2", {}, `Set aside: ${count(state.total_aside)}`), this.draw("Put all shown back", queries)),
      el("p.tasks-note", {}, state.aside_reason),
      el("ul", {}, ...state.aside.map((line) => el(
        "li", {}, el("span", {}, el("b", {}, line.query), el("span.tasks-aside-answer", {}, line.answer)), this.draw("Put back", [line.query]),
      ))),
      rest > 0 ? el("p.tasks-note", {}, `${count(rest)} more follow as these are put back or corrected.`) : "",
    );
  }

  /**
   * @param {string} label
   * @param {string[]} queries
   */
  draw(label, queries) {
    /** @type {HTMLButtonElement} */
    const node = needs(button(label, () => busy(node, "Putting back …", () => this.putBack(queries))), "tasks/put_back");
    return node;
  }
}
