// The tasks behind a count of the suite's table: score here, score of the reference, and their traces side by side.

import { el } from "../lib/dom.js";
import { ask, query } from "./address.js";
import { percent, plural } from "./formats.js";

const WORDS = { improved: "did better on", regressed: "did worse on", equal: "did equally well on" };

export class TaskList {
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

  /** Show the tasks that an orchestrator improved, regressed or left equal. */
  async open(orchestrator, which) {
    this.open_ = { orchestrator, which };
    await this.load(false);
    this.root.scrollIntoView({ block: "nearest" });
  }

  /** The selection changed: what is open follows it. */
  follow(asked) {
    const changed = JSON.stringify(asked) !== JSON.stringify(this.asked);
    this.asked = asked;
    if (this.open_ && changed) this.load(false);
  }

  async load(append) {
    const told = await ask("tasks", { ...this.asked, ...this.open_, first: append ? this.list.childElementCount : 0 });
    if (!told.ok) {
      this.root.replaceChildren(el("p.train-mute", {}, told.hint));
      this.root.hidden = false;
      return;
    }
    const entries = told.tasks.map((task) => this.entry(task, told));
    if (append) this.list.append(...entries);
    else this.list.replaceChildren(...entries);
    this.more.hidden = this.list.childElementCount >= told.of;
    this.root.replaceChildren(this.head(told), told.of ? this.list : el("p.train-mute", {}, "No task of that kind."), this.more);
    this.root.hidden = false;
  }

  head(told) {
    const title = el("div.compare-figure-title", {}, el("h3", {}, `${plural(told.of, "task")} that ${this.page.label(told.orchestrator)} ${WORDS[told.which]}`), el("p", {}, `against ${this.page.label(told.reference)}`));
    const close = el("button.podium-link", { type: "button" }, "Close");
    close.addEventListener("click", () => this.clear());
    return el("header.compare-figure-head", {}, title, close);
  }

  entry(task, told) {
    const place = task.level ? `${task.family} level ${task.level}` : task.family;
    const about = el("div.compare-task-about", {}, el("b", {}, `${place} · ${task.index}`), el("span", {}, task.condition === "seen" ? "" : task.condition));
    const scores = el("div.compare-task-scores", {}, this.score(told.orchestrator, task.score, task.episodes), this.score(told.reference, task.reference_score, task.reference_episodes));
    const sides = [task.reference_episodes[0], task.episodes[0]];
    const both = el("a.podium-link", { href: `/compare?${query({ e: sides, o: [told.reference, told.orchestrator] })}` }, "Side by side");
    return el("li.compare-task-task", { "data-task": `${task.family}-${task.level}-${task.index}` }, about, el("p.compare-task-query", { title: task.query }, task.query), scores, both);
  }

  score(name, score, episodes) {
    const box = el("span.compare-task-score", {}, el("span", {}, this.page.label(name)), el("b", {}, percent(score)));
    episodes.slice(0, 8).forEach((episode, place) => {
      const link = el("a.podium-link", { href: `/?episode=${encodeURIComponent(episode)}`, "aria-label": `Open sample ${place + 1} of ${this.page.label(name)} in Run` }, episodes.length > 1 ? String(place + 1) : "Run");
      box.append(link);
    });
    return box;
  }
}
