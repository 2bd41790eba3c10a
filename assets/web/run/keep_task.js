// "Keep as a task": a run becomes one of its pool's own tasks. Unless a verifier has found its answer right, a person is
// asked: a wrong answer is kept as the right one that the person types, and without the plan that led to the wrong one.

import { post } from "../lib/api.js";
import { busy, button } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { needs } from "../lib/rights.js";

/** @typedef {{ right?: boolean, answer?: string }} Judged */
/** @typedef {(node: HTMLButtonElement, judged: Judged) => Promise<void>} Send */

const FORMS = "A number, a text, or a list such as [\"Oslo\", \"Bergen\"].";
const MAX_TITLE = 60;

/**
 * The button is made while the run goes on: `readEpisode()` gives the run as it is at the click, with its verdict.
 * `onJudged()` hears that a person has said whether the answer is right.
 * @param {() => import("../types").EpisodeHead} readEpisode
 * @param {() => void} onJudged
 */
export function keepTaskButton(readEpisode, onJudged) {
  const title = "Its query and the right answer become one of this pool's own tasks; with the plan where that led to it.";
  const node = needs(
    el("button.podium-link", { type: "button", title, "data-key": "keep-task" }, "Keep as a task"), "POST /api/episodes/{episode_id}/task",
  );
  /** @param {Judged} judged */
  const keep = async (judged) => {
    const episode = readEpisode();
    const { pool, problem } = await post(`/api/episodes/${encodeURIComponent(episode.id)}/task`, judged);
    if (problem) throw new Error(problem);
    node.replaceWith(el("a.podium-link", { href: `/train?tasks=${encodeURIComponent(pool)}` }, "Kept: look at the tasks"));
    if (!episode.verdict?.correct) onJudged();
  };
  node.addEventListener("click", () => {
    const episode = readEpisode();
    if (!episode.verdict?.correct) return openQuestion(episode, keep);
    return busy(node, "Keeping …", () => keep({})).catch((error) => {
      node.textContent = `Not kept: ${error.message}`;
    });
  });
  return el("span", {}, node); // what is drawn again keeps the link in the button's place
}

/**
 * Ask whether the answer is right. `keep(judged)` throws with the reason when the task cannot be kept.
 * @param {import("../types").EpisodeHead} shown
 * @param {(judged: Judged) => Promise<void>} keep
 */
function openQuestion(shown, keep) {
  // A task keeps the plan's own value, which a verifier can compare, and not the words around it.
  const episode = { ...shown, answer: shown.final?.plan_answer ?? shown.answer };
  const dialog = el("dialog.run-keep", { "aria-labelledby": "run-keep-title" });
  const problem = el("p.form-general", { role: "alert" });
  /** @type {Send} */
  const send = async (node, judged) => {
    problem.textContent = "";
    try {
      await busy(node, "Keeping …", () => keep(judged));
      dialog.close();
    } catch (error) {
      problem.textContent = `Not kept: ${error.message}`;
    }
  };
  dialog.append(
    el("h2", { id: "run-keep-title" }, titleOf(episode)), el("p.run-keep-query", {}, episode.query), ...longAnswer(episode),
    ...(episode.answer === null ? [] : [confirmation(send)]), correction(episode, send), problem,
    el("div.run-keep-foot", {}, button("Cancel", () => dialog.close())),
  );
  dialog.addEventListener("close", () => {
    dialog.remove();
    /** @type {HTMLElement|null} */ (document.querySelector("[data-key=keep-task]"))?.focus();
  });
  document.querySelector(".run-view")?.append(dialog);
  dialog.showModal();
}

/** @param {import("../types").EpisodeHead} episode */
function titleOf({ answer }) {
  if (answer === null) return "Which answer is right?";
  return answer.length <= MAX_TITLE ? `Is ${answer} right?` : "Is this answer right?";
}

/** @param {import("../types").EpisodeHead} episode */
function longAnswer({ answer }) {
  return answer !== null && answer.length > MAX_TITLE ? [el("pre.run-keep-answer", { tabindex: "0" }, answer)] : [];
}

/** @param {Send} send */
function confirmation(send) {
  const yes = button("Yes, keep it", () => send(yes, { right: true }), "page-primary");
  return el("div.run-keep-choice", {}, yes, el("span", {}, "The task has this answer, and the plan that led to it."));
}

/**
 * @param {import("../types").EpisodeHead} episode
 * @param {Send} send
 */
function correction(episode, send) {
  const input = el("input", { type: "text", autocomplete: "off" });
  const isJudgedWrong = episode.verdict && !episode.verdict.correct;
  input.value = (isJudgedWrong ? episode.verdict.expected : episode.answer) || "";
  const field = labelField("What is right?", input, FORMS);
  const save = el("button.page-button", { type: "submit" }, "Keep this answer");
  const form = el(
    "form.run-keep-correction", {}, field.node, save, el("span", {}, "The task has this answer, and no plan: the one of this run is not learnt from."),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const written = input.value.trim();
    const unchanged = written === episode.answer?.trim();
    field.say(!written ? "Write the right answer." : unchanged ? "Correct the answer first, or keep it as it is with “Yes, keep it”." : "");
    if (written && !unchanged) send(save, { answer: input.value });
  });
  return form;
}
