// Is the answer right? Thumbs beside every answer that no verifier judges, and "What is right?" after a thumb down.

import { post } from "../lib/api.js";
import { button } from "../lib/controls.js";
import { el, icon } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { ACTIONS } from "../lib/icons.js";
import { isOver } from "../lib/outcome.js";
import { needs } from "../lib/rights.js";

const REQUEST = "POST /api/episodes/{episode_id}/verdict";

/** How the answer was judged.
 * @param {import("../types").Verdict} document */
export function verdictChip({ correct, expected, of_plan: ofPlan }) {
  const word = correct ? "Correct" : expected ? `Wrong, expected ${expected}` : "Wrong";
  return el(
    "span.run-summary-verdict", { "data-correct": correct, "data-testid": "verdict" }, icon(correct ? ACTIONS.check : ACTIONS.cross),
    ofPlan ? `The plan's own answer: ${word}` : word,
  );
}

export class Thumbs {
  /**
   * `onJudged(verdict)` hears what a person has said of an answer.
   * @param {(verdict: import("../types").Verdict) => void} onJudged
   */
  constructor(onJudged) {
    this.onJudged = onJudged;
    this.episode = "";
    this.up = this.thumb("The answer is right", ACTIONS.thumbUp, () => this.send(this.up, { right: true }));
    this.down = this.thumb("The answer is wrong", ACTIONS.thumbDown, () => this.ask());
    this.problem = el("span.form-problem", { role: "alert" });
    this.form = el("form.run-verdict-form");
    this.node = el("div.run-verdict", { role: "group", "aria-label": "Is the answer right?" }, this.up, this.down, this.form, this.problem);
  }

  /**
   * The thumbs for an episode; none while it runs, without an answer, and where a task's verifier judges it.
   * @param {import("../types").EpisodeHead} episode
   */
  show(episode) {
    if (!isOver(episode) || episode.answer === null || episode.task) return [];
    if (this.episode !== episode.id) this.close();
    this.episode = episode.id;
    this.answer = episode.final?.plan_answer ?? episode.answer; // what a verifier compares
    this.expected = episode.verdict && !episode.verdict.correct ? episode.verdict.expected : "";
    this.up.setAttribute("aria-pressed", String(episode.verdict?.correct === true));
    this.down.setAttribute("aria-pressed", String(episode.verdict?.correct === false));
    return [this.node];
  }

  /**
   * @param {string} title
   * @param {string} path
   * @param {() => unknown} work
   */
  thumb(title, path, work) {
    const node = needs(el("button.run-verdict-thumb", { type: "button", title, "aria-label": title, "aria-pressed": "false" }, icon(path)), REQUEST);
    node.addEventListener("click", work);
    return node;
  }

  /** The answer is wrong: it stands in a field, to be corrected. */
  ask() {
    const input = el("input", { type: "text", autocomplete: "off" });
    input.value = this.expected || this.answer;
    const field = labelField("What is right?", input);
    const save = el("button.page-button", { type: "submit" }, "Save");
    const unknown = button("I do not know", () => this.send(unknown, { right: false }), "podium-link");
    const cancel = button("Cancel", () => this.close(), "podium-link");
    this.form.replaceChildren(field.node, save, unknown, cancel);
    this.form.onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      const written = input.value.trim();
      const unchanged = written === this.answer.trim();
      field.say(written && !unchanged ? "" : "Correct the answer, or press “I do not know”.");
      if (written && !unchanged) this.send(save, { answer: written });
    };
    input.focus();
    input.select();
  }

  /**
   * @param {HTMLButtonElement} node
   * @param {{ right?: boolean, answer?: string }} judged
   */
  async send(node, judged) {
    this.problem.textContent = "";
    node.disabled = true;
    try {
      const { problem, right, expected } = await post(`/api/episodes/${encodeURIComponent(this.episode)}/verdict`, judged);
      if (problem) throw new Error(problem);
      this.close();
      this.onJudged({ correct: right, expected, of_plan: false });
    } catch (error) {
      this.problem.textContent = `Not saved: ${error.message}`;
    } finally {
      node.disabled = false;
    }
  }

  close() {
    this.problem.textContent = "";
    this.form.replaceChildren();
  }
}
