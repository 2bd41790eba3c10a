// How far tasks are that are being made for a pool: counts, what was spent, Stop and Go on. It is followed from the studio,
// so that whoever leaves the page and comes back sees the same.

/** @typedef {import("../types").MakingDocument} MakingDocument */

import { followEvents, sendCommand } from "../lib/api.js";
import { busy, button } from "../lib/controls.js";
import { count, dollars, el } from "../lib/dom.js";
import { plain } from "../lib/reply.js";
import { needs } from "../lib/rights.js";

const SHOWN_S = 86400; // how long one that has ended for good is shown
/** @type {Record<MakingDocument["state"], string>} */
const TITLES = {
  running: "Making tasks", stopped: "Stopped", interrupted: "Interrupted", failed: "No tasks were made", done: "Tasks were made",
};

export class MakingView {
  /**
   * @param {(making: MakingDocument) => void} changed hears whatever is shown anew
   * @param {(making: MakingDocument) => void} ended hears when it has ended while somebody looked
   */
  constructor(changed, ended) {
    this.changed = changed;
    this.ended = ended;
    this.title = el("b", { role: "heading", "aria-level": "3" });
    this.when = el("span");
    this.fill = el("i");
    this.bar = el("div.train-making-bar", { role: "progressbar", "aria-valuemin": "0", "aria-label": "Questions kept" }, this.fill);
    this.figures = el("dl.train-making-figures");
    this.words = el("p", { role: "status" });
    this.problem = el("p.train-making-problem", { role: "alert" });
    this.stop = needs(button("Stop", () => busy(this.stop, "Stopping …", () => this.send("stop_making"))), "train/stop_making");
    this.goOn = needs(button("Go on", () => busy(this.goOn, "Starting …", () => this.send("go_on_making"))), "train/go_on_making");
    this.root = el(
      "section.train-making", { "aria-label": "Tasks being made" }, el("header", {}, el("div", {}, this.title, this.when), this.stop, this.goOn),
      this.bar, this.figures, this.words, this.problem,
    );
    this.root.hidden = true;
  }

  /**
   * Show a document, and follow what is being made.
   * @param {MakingDocument | null} making
   */
  take(making) {
    if (making?.pool !== this.making?.pool) this.leave();
    this.making = making;
    this.draw();
    if (making?.state === "running" && !this.stream) this.follow(making.pool);
  }

  /** @param {string} pool */
  follow(pool) {
    this.stream = followEvents(`/api/tasks/${encodeURIComponent(pool)}/making`, {
      making: (making) => this.hear(making),
      end: () => this.leave(),
    }, (state) => {
      this.problem.textContent = state === "lost" ? "The studio does not answer; connecting again …" : "";
    });
  }

  /** @param {MakingDocument} making */
  hear(making) {
    const ran = this.making?.state === "running";
    this.making = making;
    this.draw();
    if (ran && making.state !== "running") this.ended(making);
  }

  leave() {
    this.stream?.close();
    this.stream = null;
  }

  /** @param {string} action */
  async send(action) {
    const reply = await sendCommand("train", { action, pool: this.making.pool });
    this.problem.textContent = reply.ok ? "" : plain(reply.problems);
    if (reply.making) this.take(reply.making);
    this.stopping = reply.ok && action === "stop_making";
    this.draw();
  }

  draw() {
    const { making } = this;
    const running = making?.state === "running";
    this.root.hidden = !making || (["done", "failed"].includes(making.state) && Date.now() / 1000 - making.updated > SHOWN_S);
    if (!making) return;
    if (!running) this.stopping = false;
    this.root.dataset.state = making.state;
    this.title.textContent = this.stopping ? "Stopping" : TITLES[making.state];
    this.when.textContent = running ? "" : new Date(making.updated * 1000).toLocaleString();
    this.stop.hidden = !running || this.stopping;
    this.goOn.hidden = !making.can_go_on;
    this.drawFigures(making);
    this.words.textContent = this.write(making);
    this.changed(making);
  }

  /** @param {MakingDocument} making */
  write({ state, stage, outcome, count: many }) {
    if (this.stopping) return "No new call is made; those in flight end first.";
    if (state === "running") return many ? "You can leave this page: it goes on." : `${stage} …`;
    if (state === "interrupted") return `${outcome}, and nothing of it is asked again.`;
    return `${outcome.replace(/\.$/, "")}.`;
  }

  /** @param {MakingDocument} making */
  drawFigures(making) {
    this.bar.hidden = this.figures.hidden = !making.count;
    if (!making.count) return;
    this.bar.setAttribute("aria-valuemax", String(making.count));
    this.bar.setAttribute("aria-valuenow", String(making.kept));
    this.fill.style.width = `${Math.min(100, (100 * making.kept) / making.count)}%`;
    const cap = making.max_cost === null ? "" : ` of ${dollars(making.max_cost)}`;
    const shown = [
      ["Written", count(making.written)], ["Answered", count(making.answered)], ["Agreed on", count(making.settled)],
      ["Kept", `${count(making.kept)} of ${count(making.count)}`], ["Spent", `${dollars(making.cost)}${cap}`],
    ];
    this.figures.replaceChildren(...shown.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
  }
}
