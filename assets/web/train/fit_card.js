// "Will it fit?": the memory that a recipe needs, estimated by the server once the typing pauses.

import { button } from "../lib/controls.js";
import { plain } from "../lib/reply.js";
import { count, dollars, el } from "../lib/dom.js";
import { bytes, sentence } from "./formats.js";

/** @typedef {import("../types").RecipeDocument["recipe"]} Recipe */
/**
 * An estimate, as trainer/memory_fit/estimate.py says it.
 * @typedef {{ device: string, parts: { name: string, bytes: number, note: string }[], need_bytes: number, free_bytes: number,
 *   fits: boolean, advice: string[], edited: Record<string, Recipe>, episodes: number, cost: number | null, note: string }} Fit
 */

const FIT_MS = 900;
const SETTLE_MS = 100;
const MAX_SETTLE_MS = 10_000;
/** Why there is no estimate, by the key of the recipe that cannot be used.
 * @type {Record<string, string>} */
const UNKNOWN_UNTIL = { where: "Known once it runs on a machine that can do it.", "model.base": "Known once the model is there." };

export class FitCard {
  /**
   * `ask(request)` sends a command, `apply(recipe)` takes a recipe with an advice applied.
   * @param {(request: import("../lib/api.js").Command) => Promise<any>} ask
   * @param {(recipe: Recipe) => unknown} apply
   */
  constructor(ask, apply) {
    this.ask = ask;
    this.apply = apply;
    /** @type {string | null} */
    this.key = null; // of the recipe that is estimated
    /** @type {string | null} */
    this.shown = null; // of the one that is shown
    this.isEstimating = false;
    this.root = el("div.train-fit");
  }

  /** Wait until it is known whether the recipe fits, a while at most. */
  async settle() {
    for (let waited = 0; this.isEstimating && waited < MAX_SETTLE_MS; waited += SETTLE_MS) {
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    }
  }

  /** Say nothing of values that cannot be used: the estimate was of others. */
  withdraw() {
    clearTimeout(this.waiting);
    this.isEstimating = false;
    this.key = this.shown = null;
    this.tooLarge = "";
    delete this.root.dataset.fits;
    this.root.replaceChildren(el("h3", {}, "Will it fit?"), el("p.train-mute", {}, "Known once the values are right."));
  }

  /**
   * Estimate a recipe, unless it is the one that is shown.
   * @param {Recipe} recipe
   * @param {import("../types").LaunchGap[]} missing
   */
  estimate(recipe, missing) {
    clearTimeout(this.waiting);
    this.isEstimating = false;
    const key = (this.key = JSON.stringify(recipe));
    if (key === this.shown) return;
    this.shown = null;
    this.tooLarge = "";
    const lacking = Object.keys(UNKNOWN_UNTIL).find((name) => missing.some((item) => item.key === name && item.blocks));
    if (lacking) {
      this.root.replaceChildren(el("h3", {}, "Will it fit?"), el("p.train-mute", {}, UNKNOWN_UNTIL[lacking]));
      return;
    }
    this.root.replaceChildren(el("p.train-mute", {}, "Will it fit? Estimating …"));
    this.isEstimating = true;
    this.waiting = setTimeout(async () => {
      const reply = await this.ask({ action: "fit", recipe: JSON.parse(key) });
      if (this.key !== key) return;
      this.isEstimating = false;
      this.shown = key;
      this.root.replaceChildren(
        ...(reply.ok
          ? fitParts(reply.fit, this.apply)
          : [el("h3", {}, "Will it fit?"), el("p.train-mute", {}, `Cannot be told: ${plain(reply.problems)}`)]),
      );
      const { fit } = reply;
      this.tooLarge = reply.ok && !fit.fits ? `It needs ${bytes(fit.need_bytes)}, and ${fit.device} has ${bytes(fit.free_bytes)} free.` : "";
      this.root.dataset.fits = reply.ok ? String(reply.fit.fits) : "unknown";
    }, FIT_MS);
  }
}

/**
 * What each part takes, against what is free.
 * @param {Fit} fit
 * @param {(recipe: Recipe) => unknown} apply
 */
function fitParts(fit, apply) {
  const head = el(
    "div.train-fit-head", {}, el("h3", {}, "Will it fit?"),
    el("span.train-fit-verdict", { "data-fits": String(fit.fits) }, fit.fits ? "Yes" : "No"),
  );
  const whole = Math.max(fit.need_bytes, fit.free_bytes, 1);
  const summary = `${bytes(fit.need_bytes)} needed, ${bytes(fit.free_bytes)} free on ${fit.device}`;
  const bar = el("div.train-fit-bar", { role: "img", "aria-label": summary });
  const list = el("ul.train-fit-list");
  fit.parts.filter((part) => part.bytes > 0).forEach((part, place) => {
    const piece = el("i");
    piece.style.width = `${(part.bytes / whole) * 100}%`;
    piece.style.background = `var(--podium-series-${(place % 8) + 1})`;
    bar.append(piece);
    const dot = el("i");
    dot.style.background = `var(--podium-series-${(place % 8) + 1})`;
    list.append(el("li", { title: part.note }, dot, el("span", {}, part.name), el("b", {}, bytes(part.bytes))));
  });
  const free = el("u");
  free.style.left = `${Math.min(100, (fit.free_bytes / whole) * 100)}%`;
  bar.append(free);
  const advice = fit.advice.map((text) => {
    const line = el("p.train-fit-advice", { "data-fits": String(fit.fits) }, text);
    const recipe = fit.edited[text];
    if (recipe) line.append(" ", button("Apply", () => apply(recipe), "podium-link"));
    return line;
  });
  const work =
    [`${count(fit.episodes)} episodes`, fit.cost === null ? "" : `about ${dollars(fit.cost)} for workers`].filter(Boolean).join(", ");
  const more = el(
    "details.train-fit-more", {}, el("summary", {}, "What takes how much"), list,
    el("p.train-mute", {}, fit.note ? sentence(fit.note) : ""),
  );
  more.open = !fit.fits;
  return [head, el("p.train-fit-said", {}, `${summary}. ${work}.`), bar, ...advice, more];
}
