// The tasks behind a count of the suite's table: score here, score of the reference, and their traces side by side.

import { el } from "../lib/dom.js";
import { ask, query } from "./address.js";
import { percent, plural } from "./formats.js";

/** @typedef {import("./page.js").ComparePage} ComparePage */
/** @typedef {import("../types").TaskPage["which"]} Which */

/** @type {Record<Which, string>} */
const WORDS = { improved: "did better on", regressed: "did worse on", equal: "did equally well on" };

export class TaskList {
  /** @param {ComparePage} page */
  constructor(page) {
    this.page = page;
    this.root = el("section.compare-figure.compare-task", { "aria-label": "Tasks" });
    this.root.hidden = true;
    this.list = el("ol.compare-task-list");
    this.more = el("button.page-button", { type: "button" }, "Show more tasks");
    this.more.addEventListener("click", () => this.load(true));
  }

  clear() {
    this.open_ = null;
    this.root.hidden = true;
  }

  /**
   * Show the tasks that an orchestrator improved, regressed or left equal.
   * @param {string} orchestrator
   * @param {Which} which
   */
  async open(orchestrator, which) {
    this.open_ = { orchestrator, which };
    await this.load(false);
    this.root.scrollIntoView({ block: "nearest" });
  }

  /**
   * The selection changed: what is open follows it.
   * @param {import("./address.js").Values} filters
   */
  follow(filters) {
    const changed = JSON.stringify(filters) !== JSON.stringify(this.filters);
    this.filters = filters;
    if (this.open_ && changed) this.load(false);
  }

  /** @param {boolean} append */
  async load(append) {
    const reply = await ask("tasks", { ...this.filters, ...this.open_, first: append ? this.list.childElementCount : 0 });
    if (!reply.ok) {
      this.root.replaceChildren(el("p.train-mute", {}, reply.hint));
      this.root.hidden = false;
      return;
    }
    const entries = reply.tasks.map((/** @type {import("../types").ChangedTask} */ task) => this.entry(task, reply));
    if (append) this.list.append(...entries);
    else this.list.replaceChildren(...entries);
    this.more.hidden = this.list.childElementCount >= reply.of;
    this.root.replaceChildren(this.head(reply), reply.of ? this.list : el("p.train-mute", {}, "No task of that kind."), this.more);
    this.root.hidden = false;
  }

  /** @param {import("../types").TaskPage} reply */
  head(reply) {
    const title = el(
      "div.compare-figure-title", {},
      el("h3", {}, `${plural(reply.of, "task")} that ${this.page.label(reply.orchestrator)} ${WORDS[reply.which]}`),
      el("p", {}, `against ${this.page.label(reply.reference)}`),
    );
    const close = el("button.podium-link", { type: "button" }, "Close");
    close.addEventListener("click", () => this.clear());
    return el("header.compare-figure-head", {}, title, close);
  }

  /**
   * @param {import("../types").ChangedTask} task
   * @param {import("../types").TaskPage} reply
   */
  entry(task, reply) {
    const place = task.level ? `${task.family} level ${task.level}` : task.family;
    const about = el(
      "div.compare-task-about", {}, el("b", {}, `${place} · ${task.index}`),
      el("span", {}, task.condition === "seen" ? "" : task.condition),
    );
    const scores = el(
      "div.compare-task-scores", {}, this.score(reply.orchestrator, task.score, task.episodes),
      this.score(reply.reference, task.reference_score, task.reference_episodes),
    );
    const sides = [task.reference_episodes[0], task.episodes[0]];
    const both = el("a.podium-link", { href: `/compare?${query({ e: sides, o: [reply.reference, reply.orchestrator] })}` }, "Side by side");
    return el(
      "li.compare-task-task", { "data-task": `${task.family}-${task.level}-${task.index}` }, about,
      el("p.compare-task-query", { title: task.query }, task.query), scores, both,
    );
  }

  /**
   * @param {string} name
   * @param {number} score
   * @param {string[]} episodes
   */
  score(name, score, episodes) {
    const box = el("span.compare-task-score", {}, el("span", {}, this.page.label(name)), el("b", {}, percent(score)));
    episodes.slice(0, 8).forEach((episode, place) => {
      const link = el(
        "a.podium-link",
        { href: `/?episode=${encodeURIComponent(episode)}`, "aria-label": `Open sample ${place + 1} of ${this.page.label(name)} in Run` },
        episodes.length > 1 ? String(place + 1) : "Run",
      );
      box.append(link);
    });
    return box;
  }
}
