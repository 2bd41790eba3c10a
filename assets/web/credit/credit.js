// What each step, worker and access-list entry of a graded run is worth: measured at a click, told beside the run and
// marked on its graph.

/** @typedef {import("../types").CreditDocument} CreditDocument */
/** @typedef {import("../types").CreditLine} CreditLine */
/** @typedef {import("../run/run_view.js").RunView} RunView */

import { post } from "../lib/api.js";
import { busy, button } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { isOver } from "../lib/outcome.js";
import { needs } from "../lib/rights.js";

const LEAD = "Runs again, without each step, worker and access-list entry, only what may see it.";

/**
 * Give a run view its credit.
 * @param {RunView} view
 */
export function attach(view) {
  new CreditView(view);
}

class CreditView {
  /** @param {RunView} view */
  constructor(view) {
    this.view = view;
    /** @type {string | null} */
    this.episode = null;
    this.button = needs(button("Measure credit", () => busy(this.button, "Running again …", () => this.measure())), "POST /api/episodes/{episode_id}/credit");
    this.lead = el("p.run-credit-lead", {}, LEAD);
    this.result = el("div.run-credit-result", { role: "status" });
    this.root = el("section.run-view-panel.run-credit", { "aria-label": "Credit" }, el("h2", {}, "Credit"), this.lead, this.button, this.result);
    view.below.append(this.root);
    view.full.addEventListener("marked", () => this.follow());
    this.follow();
  }

  /** Keep to the run that is shown: a credit of another one goes. */
  follow() {
    const episode = this.view.state?.episode;
    this.root.hidden = !isOver(episode) || !this.view.state.graph.nodes.length;
    if (!episode || episode.id === this.episode) return;
    this.episode = episode.id;
    this.button.hidden = false;
    this.lead.textContent = LEAD;
    this.result.replaceChildren();
  }

  async measure() {
    const { episode } = this;
    try {
      const credit = await post(`/api/episodes/${encodeURIComponent(episode)}/credit`, {});
      if (episode === this.episode) this.show(credit);
    } catch (error) {
      if (episode !== this.episode) return; // another run is shown
      this.result.replaceChildren(el("p.form-general", { role: "alert" }, error.message));
    }
  }

  /** @param {CreditDocument} credit */
  show(credit) {
    if (credit.reason) {
      this.result.replaceChildren(el("p.run-credit-lead", {}, `No credit: ${credit.reason}.`));
      return;
    }
    this.button.hidden = true;
    const rows = [
      ...credit.workers.map((line) => row("worker", line.worker, line)),
      ...credit.access.map((line) => row("access", `Step ${line.step} sees step ${line.source}`, line)),
    ];
    this.lead.textContent = credit.score
      ? "The answer is right. Needed: without it, it is lost."
      : "The answer is wrong. Harmful: without it, it becomes right.";
    this.result.replaceChildren(el("ul.run-credit-list", {}, ...rows));
    this.mark(credit);
  }

  /** On the graph: a word on each card, and access-list entries that are not needed as dotted lines.
   * @param {CreditDocument} credit */
  mark(credit) {
    for (const line of credit.steps) {
      for (const card of this.view.graph.root.querySelectorAll(`.run-graph-card[data-id="${line.step}"]`)) {
        card.querySelector(".run-credit-mark")?.remove();
        const mark = el("span.run-credit-mark", { "data-credit": verdict(line), title: line.reason || "" }, verdict(line));
        (card.querySelector(".run-graph-foot") || card).append(mark); // of a long run a card that is not seen has no foot
      }
    }
    for (const line of credit.access) {
      const edges = this.view.graph.paths.filter((path) => path.from === line.source && path.to === line.step);
      for (const edge of edges) edge.node.dataset.credit = verdict(line);
    }
  }
}

/**
 * @param {CreditLine} line
 * @param {string} kind
 * @param {string} name
 */
function row(kind, name, line) {
  const word = el("b", { "data-credit": verdict(line) }, verdict(line));
  const again = line.rerun.length ? `${line.rerun.length === 1 ? "step" : "steps"} ${line.rerun.join(", ")} called again` : "";
  return el("li", { "data-kind": kind }, el("span", {}, name), word, el("small", {}, line.reason || again));
}

/** @param {CreditLine} line */
function verdict(line) {
  if (line.value === null) return "not measured";
  if (line.value === 0) return "not needed";
  const whole = Math.abs(line.value) === 1;
  const word = line.value > 0 ? "needed" : "harmful";
  return whole ? word : `${word} ${Math.abs(line.value).toFixed(2)}`;
}
