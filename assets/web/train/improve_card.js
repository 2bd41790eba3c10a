// The card Improve: what is new in the pool of the recipe, a button that learns from it, its timer, and what the gate
// said last.

/** @typedef {import("../types").ImproveDocument} ImproveDocument */
/** @typedef {import("../lib/api.js").Command} Command */

import { busy, button, select } from "../lib/controls.js";
import { count, dollars, el } from "../lib/dom.js";
import { plain } from "../lib/reply.js";
import { needs } from "../lib/rights.js";

const TIMES = [["off", "Never by itself"], ["night", "Every night at 02:00"], ["sun 02:00", "Every Sunday at 02:00"]];
const STOPPED = "Go on where it stopped, or start anew: it is given up then, and its jobs stay in the list.";
const LOOK_MS = 15_000; // between two looks at one that runs
/** @type {Record<ImproveDocument["state"], string>} */
const STATES = {
  "": "", running: "Improving …", interrupted: "The last improvement was interrupted",
  promotable: "The last candidate may be promoted", refused: "The last candidate is refused",
};

export class ImproveCard {
  /** @param {import("./page.js").TrainPage} page */
  constructor(page) {
    this.page = page;
    this.pool = "";
    this.fresh = el("p.train-mute", { id: "train-improve-new" });
    this.button = needs(button("Improve", () => this.begin(this.button, "improve")), "train/improve");
    this.button.setAttribute("aria-describedby", "train-improve-new");
    this.anew = needs(button("Start anew", () => this.startAnew()), "train/improve_anew");
    this.sure = false;
    /** @type {ImproveDocument | null} */
    this.state = null;
    this.timer = 0;
    this.times = el("div.train-improve-times");
    this.verdict = el("b.train-improve-verdict");
    this.reasons = el("ul.train-improve-reasons");
    this.figures = el("p.train-mute");
    this.problem = el("p.train-making-problem", { role: "alert" });
    this.foot = el("div.train-improve-foot", {}, this.times, this.anew, this.button);
    this.root = el(
      "section.train-card.train-improve", { "aria-label": "Improve" }, el("h2", {}, "Improve"), this.fresh, this.verdict, this.reasons,
      this.figures, this.problem, this.foot,
    );
    this.root.hidden = true;
  }

  /** @param {string} pool */
  async show(pool) {
    this.pool = pool;
    const reply = await this.page.ask({ action: "improvement", pool });
    if (pool !== this.pool) return; // another pool was chosen meanwhile
    if (reply.ok) this.take(reply.improvement);
    else this.root.hidden = true;
  }

  /** @param {ImproveDocument} state */
  take(state) {
    this.state = state;
    clearTimeout(this.timer);
    if (state.state === "running") this.timer = setTimeout(() => this.show(this.pool), LOOK_MS);
    const { learnt, held_out: heldOut, set_aside: setAside } = state;
    this.root.hidden = !(learnt || heldOut || setAside || state.state || state.every !== "off");
    const aside = setAside ? ` ${count(setAside)} are set aside, because candidates got worse with them, or twice no better: the Tasks page lists them.` : "";
    const lacking = state.has_enough ? "" : ` It needs ${state.least_learnt} and ${state.least_held_out}.`;
    this.fresh.textContent = `${state.pool} has ${count(learnt)} new tasks to learn from and ${count(heldOut)} held out.${lacking}${aside} Measured against ${state.serving}.`;
    this.verdict.textContent = STATES[state.state];
    this.verdict.dataset.state = state.state;
    this.verdict.hidden = !state.state;
    this.reasons.replaceChildren(...state.reasons.map((reason) => el("li", {}, reason)));
    this.reasons.hidden = !state.reasons.length;
    const stopped = state.state === "interrupted";
    this.figures.hidden = !(stopped || state.candidate);
    this.figures.textContent = stopped ? STOPPED : `${state.candidate} took ${state.hours.toFixed(2)} hours and ${dollars(state.cost)}.`;
    this.foot.dataset.stopped = String(stopped);
    this.button.textContent = stopped ? "Go on" : "Improve";
    this.anew.hidden = !stopped;
    this.anew.disabled = !state.has_enough;
    this.anew.title = state.has_enough ? "" : "There are too few new tasks for another one";
    this.ask(false);
    this.button.disabled = state.state === "running" || !(state.has_enough || stopped);
    const own = TIMES.some(([time]) => time === state.every) ? TIMES : [...TIMES, [state.every, `At ${state.every}`]];
    const times = needs(select(own, state.every, (every) => this.send({ action: "improve_timer", every })), "train/improve_timer");
    times.setAttribute("aria-label", "When it is improved by itself");
    this.times.replaceChildren(times);
  }

  /** @param {any} control @param {string} action */
  async begin(control, action) {
    const begun = await busy(control, "Starting …", () => this.send({ action }));
    if (begun) this.take({ ...this.state, state: "running", jobs: [] }); // its process says so itself a moment later
  }

  /** The first press asks, the second does. */
  startAnew() {
    if (!this.sure) return this.ask(true);
    return this.begin(this.anew, "improve_anew");
  }

  /** @param {boolean} sure */
  ask(sure) {
    this.sure = sure;
    this.anew.textContent = sure ? "Really give it up?" : "Start anew";
  }

  /** @param {Command} request */
  async send(request) {
    const reply = await this.page.ask({ ...request, pool: this.pool });
    this.problem.textContent = reply.ok ? "" : plain(reply.problems);
    if (!reply.ok) return false;
    this.page.toast.say(reply.message);
    if (reply.improvement) this.take(reply.improvement);
    return true;
  }
}
