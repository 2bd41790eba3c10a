// Follow-up questions: the box under an answer, and at the head of a run what it goes on with.

import { getDocument, post } from "../lib/api.js";
import { busy, button } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { isOver } from "../lib/outcome.js";
import { needs } from "../lib/rights.js";

/** @typedef {import("../types").EpisodeHead} EpisodeHead */

const REQUEST = "POST /api/episodes/{episode_id}/follow-up";
const SHOWN = 3; // runs before, the latest; the first of them links to the others

/** The runs before, and how the words that were typed became the query that follows; nothing where there are none.
 * @param {EpisodeHead} episode */
export function threadLines({ follow_up: followUp }) {
  if (!followUp) return [];
  const list = el("ol.run-thread-before", { "aria-label": "Questions before" });
  for (const run of followUp.before.slice(-SHOWN)) list.append(el("li", {}, ...runLine(run.episode, run.question, run.answer)));
  const typed = el("q", {}, followUp.text);
  const line = el("p.run-thread-typed", {}, typed, " ", followUp.how, ":");
  return [el("div.run-thread", { "data-testid": "thread" }, list, el("p.run-thread-seen", {}, followUp.seen), line)];
}

/**
 * @param {string} id
 * @param {string} question
 * @param {string | null} answer
 */
function runLine(id, question, answer) {
  const link = id ? el("a.podium-link", { href: `/?episode=${encodeURIComponent(id)}` }, question) : question; // of a client's texts there is none
  return answer ? [link, " ", el("span.run-thread-answer", {}, answer)] : [link];
}

export class FollowUpForm {
  /**
   * `onStarted(id)` hears of the run of a follow-up.
   * @param {(id: string) => void} onStarted
   */
  constructor(onStarted) {
    this.onStarted = onStarted;
    this.episode = "";
    this.input = el("input", { type: "text", autocomplete: "off", placeholder: "and for Oslo?", maxlength: "2000" });
    this.field = labelField("Follow up", this.input);
    this.send = needs(el("button.page-button", { type: "submit" }, "Ask"), REQUEST);
    this.choice = el("div.run-follow-up-choice", { role: "group", "aria-label": "What it may mean" });
    this.later = el("ol.run-thread-before", { "aria-label": "Follow-ups of this run" });
    this.form = el("form.run-follow-up", { "data-testid": "follow-up" }, this.field.node, this.send, this.choice, this.later);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask(this.send, "");
    });
  }

  /**
   * The box for an episode; none while it runs, and where it is part of another or a what-if.
   * @param {EpisodeHead} episode
   */
  show(episode) {
    if (!isOver(episode) || episode.state !== "ended" || episode.parent || episode.what_if_of) return [];
    if (this.episode !== episode.id) this.open(episode.id);
    return [this.form];
  }

  /** @param {string} id */
  open(id) {
    this.episode = id;
    this.input.value = "";
    this.field.say("");
    this.choice.replaceChildren();
    this.later.replaceChildren();
    this.listLater(id).catch(() => {}); // without them the box still works
  }

  /** @param {string} id */
  async listLater(id) {
    const { runs } = await getDocument(`/api/episodes/${encodeURIComponent(id)}/follow-ups`);
    if (id !== this.episode) return;
    this.later.replaceChildren(
      ...runs.map((/** @type {import("../types").FollowUpLine} */ run) => el("li", {}, ...runLine(run.episode, run.query, run.answer))),
    );
  }

  /**
   * Ask what was typed; `question` is what was chosen of what it may mean.
   * @param {HTMLButtonElement} node
   * @param {string} question
   */
  async ask(node, question) {
    const text = this.input.value.trim();
    this.field.say(text ? "" : "Write what you want to know next.");
    if (!text) return;
    const id = this.episode;
    try {
      await busy(node, "Asking …", async () => {
        const reply = await post(`/api/episodes/${encodeURIComponent(id)}/follow-up`, { text, question });
        if (id === this.episode) this.take(reply, text);
      });
    } catch (error) {
      this.field.say(error.message);
    }
  }

  /**
   * @param {import("../types").FollowUpReply} reply
   * @param {string} text
   */
  take({ episode, readings, problem }, text) {
    if (episode) return this.onStarted(episode);
    this.field.say(problem && `${problem[0].toUpperCase()}${problem.slice(1)}.`);
    const questions = readings.length ? readings : [text];
    const choices = questions.map((question) => {
      const node = needs(button(readings.length ? question : "Ask exactly this", () => this.ask(node, question), "podium-link"), REQUEST);
      return node;
    });
    const lead = readings.length === 1 ? "It holds a part of an answer, and workers here can change things. Ask this?" : "Which one?";
    this.choice.replaceChildren(...(readings.length ? [el("span", {}, lead)] : []), ...choices);
    choices[0].focus();
  }
}
