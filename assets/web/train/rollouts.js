// The rollout browser: for one training step the groups of episodes side by side, each with its small graph, its
// reward terms and its advantage. Each opens on the Run page.

import { getDocument } from "../lib/api.js";
import { count, el, icon, svg } from "../lib/dom.js";
import { ACTIONS } from "../lib/icons.js";
import { starButton } from "../lib/star.js";

const REFRESH_MS = 3000;

export class Rollouts {
  constructor() {
    /** @type {string | null} */
    this.job = null;
    /** @type {number | null} */
    this.size = null; // episodes that there were when a step was loaded last
    /** @type {number | null} */
    this.step = null; // null: the newest
    this.root = el("div.train-rollouts");
    this.bar = el("div.train-rollouts-bar");
    this.note = el("p.train-empty");
    this.list = el("div.train-rollouts-list");
    this.more = el("button.page-button.train-rollouts-more", { type: "button" }, "Show more groups");
    this.more.addEventListener("click", () => this.load(true));
    this.root.append(this.bar, this.note, this.list, this.more);
    this.drawBar();
  }

  /** @param {string} job */
  clear(job) {
    this.job = job;
    this.step = null;
    /** @type {import("../types").RolloutPage | null} */
    this.reply = null;
    this.list.replaceChildren();
    this.more.hidden = true;
    this.say("");
  }

  /**
   * Show a step; null is the newest one and follows it.
   * @param {number | null} step
   */
  async show(step) {
    this.step = step;
    await this.load(false);
  }

  /**
   * New groups were written: show them when the newest step is being watched.
   * @param {number} size
   */
  refresh(size) {
    if (size === this.size || this.root.hidden) return;
    if (this.reply && Date.now() - this.loaded < REFRESH_MS) return;
    this.size = size;
    if (this.step === null || !this.reply?.steps.length) this.load(false);
    else this.load(false, true);
  }

  /**
   * @param {boolean} append
   * @param {boolean} stepsOnly
   */
  async load(append, stepsOnly = false) {
    const request = (this.request = Symbol());
    this.loaded = Date.now();
    const query = new URLSearchParams({ first: String(append ? this.list.children.length : 0) });
    if (this.step !== null) query.set("step", String(this.step));
    /** @type {import("../types").RolloutPage} */
    let reply;
    try {
      reply = await getDocument(`/api/jobs/${encodeURIComponent(this.job)}/rollouts?${query}`);
    } catch {
      return this.say("The studio does not answer; trying again with the next step.");
    }
    if (request !== this.request) return null;
    this.reply = reply;
    this.fillBar();
    if (stepsOnly) return null;
    const groups = reply.groups.map(group);
    if (append) this.list.append(...groups);
    else this.list.replaceChildren(...groups);
    this.more.hidden = this.list.children.length >= reply.of;
    return this.say(reply.steps.length ? "" : "No episodes yet. They come with the first step of reinforcement learning; SFT has none.");
  }

  /**
   * @param {string} text
   * @returns {null}
   */
  say(text) {
    this.note.textContent = text;
    this.note.hidden = !text;
    this.bar.hidden = Boolean(text) || !this.reply?.steps.length;
    return null;
  }

  drawBar() {
    /** @param {number} by */
    const go = (by) => {
      const at = this.reply.steps.indexOf(this.reply.step) + by;
      if (at >= 0 && at < this.reply.steps.length) this.show(this.reply.steps[at]);
    };
    this.before = el("button.page-button.train-rollouts-go", { type: "button", "aria-label": "Step before" }, "‹");
    this.after = el("button.page-button.train-rollouts-go", { type: "button", "aria-label": "Next step" }, "›");
    this.before.addEventListener("click", () => go(-1));
    this.after.addEventListener("click", () => go(1));
    this.slider = el("input.train-rollouts-slider", { type: "range", min: "0", step: "1", "aria-label": "Step" });
    this.slider.addEventListener("input", () => (this.number.textContent = `Step ${count(this.reply.steps[this.slider.valueAsNumber])}`));
    this.slider.addEventListener("change", () => this.show(this.reply.steps[this.slider.valueAsNumber]));
    this.number = el("b.train-rollouts-step");
    this.newest = el("button.page-chip", { type: "button" }, "Follow the newest");
    this.newest.addEventListener("click", () => this.show(null));
    this.summary = el("span.train-rollouts-summary");
    this.bar.append(this.before, this.slider, this.after, this.number, this.newest, this.summary);
  }

  fillBar() {
    const { steps, step, of, equal } = this.reply;
    const at = steps.indexOf(step);
    this.slider.max = String(Math.max(0, steps.length - 1));
    this.slider.value = String(at);
    this.slider.setAttribute("aria-valuetext", `Step ${step}`);
    this.number.textContent = step === null ? "" : `Step ${count(step)}`;
    this.before.disabled = at <= 0;
    this.after.disabled = at >= steps.length - 1;
    this.newest.setAttribute("aria-pressed", String(this.step === null));
    this.summary.textContent = `${of} ${of === 1 ? "group" : "groups"}${equal ? `, ${equal} with one outcome` : ""}`;
  }
}

/** @param {import("../types").RolloutGroupDocument} reply */
function group(reply) {
  const line = el(
    "div.train-rollouts-line", {},
    el("span.train-rollouts-family", {}, reply.level ? `${reply.family} level ${reply.level}` : reply.family),
    el("span.train-rollouts-solved", {}, `${reply.solved} of ${reply.of} solved`),
  );
  if (reply.equal) line.append(flag(describeEqual(reply), "warn"));
  if (reply.kept === false) line.append(flag("Left out, drawn again", "mute"));
  const head = el("header.train-rollouts-head", {}, line, el("h3", { title: reply.query }, reply.query));
  const tiles = el("div.train-rollouts-tiles");
  const most = Math.max(1e-6, ...reply.episodes.map((episode) => Math.abs(episode.advantage)));
  reply.episodes.forEach((episode, place) => tiles.append(tile(episode, place, most)));
  return el("section.train-rollouts-group", { "data-equal": String(Boolean(reply.equal)) }, head, tiles);
}

/**
 * A group of one outcome trains only where its advantages are not 0: by its tie-breakers.
 * @param {import("../types").RolloutGroupDocument} reply
 */
function describeEqual(reply) {
  const outcome = reply.solved ? "All right" : "All wrong";
  return reply.episodes.some((episode) => episode.advantage !== 0) ? outcome : `${outcome}: teaches nothing`;
}

/**
 * @param {string} text
 * @param {"warn" | "mute"} kind
 */
function flag(text, kind) {
  return el("span.train-rollouts-flag", { "data-kind": kind }, text);
}

/**
 * One episode. The whole tile is a link to it.
 * @param {import("../types").RolloutEpisode} episode
 * @param {number} place
 * @param {number} most
 */
function tile(episode, place, most) {
  const graph = episode.graph;
  const link = el("a.train-rollouts-open", { href: `/?episode=${encodeURIComponent(episode.id)}` });
  link.setAttribute("aria-label", describe(episode, place));
  link.append(graph?.nodes.length ? picture(graph) : nothing(graph));
  const verdict =
    el("span.train-rollouts-verdict", {}, icon(episode.correct ? ACTIONS.check : ACTIONS.cross), episode.correct ? "Right" : "Wrong");
  const head =
    el("div.train-rollouts-figures", {}, verdict, el("span.train-rollouts-reward", { title: "Reward" }, formatFixed(episode.reward)));
  if (graph) head.append(starButton(episode.id, episode.starred));
  return el(
    "article.train-rollouts-tile", { "data-correct": String(episode.correct) }, link, head, bar(episode.advantage, most),
    terms(episode.terms), ...written(episode.written),
  );
}

/**
 * What the model wrote, turn by turn, behind a fold.
 * @param {string[]} turns
 */
function written(turns) {
  if (!turns.some(Boolean)) return [];
  const texts = turns.map((text) => el("pre.train-rollouts-text", { tabindex: "0" }, text || "(nothing)"));
  return [el("details.train-rollouts-written", {}, el("summary.page-link", {}, "What it wrote"), ...texts)];
}

/**
 * @param {import("../types").RolloutEpisode} episode
 * @param {number} place
 */
function describe(episode, place) {
  const graph = episode.graph;
  const shape = graph ? `${graph.steps} steps in ${graph.rounds} rounds` : "its trace is not in this data folder";
  return `Episode ${place + 1}: ${episode.correct ? "right" : "wrong"}, reward ${formatFixed(episode.reward)}, advantage ${formatSigned(episode.advantage)}, ${shape}. Open in Run`;
}

/** @param {import("../types").SmallGraph|null} graph */
function nothing(graph) {
  const text = !graph ? "Trace not here" : graph.steps ? `${graph.steps} steps` : graph.failed ? "No valid turn" : "No steps";
  return el("span.train-rollouts-nothing", {}, text);
}

/**
 * The graph of the Run page, small: no words, only who runs when and who sees whom.
 * @param {import("../types").SmallGraph} graph
 */
export function picture(graph) {
  const root =
    svg("svg", { viewBox: `-12 -12 ${graph.width + 24} ${graph.height + 24}`, "aria-hidden": "true", class: "train-rollouts-graph" });
  for (const edge of graph.edges)
    root.append(svg("path", { d: edge.path, class: edge.used ? "train-rollouts-used" : "train-rollouts-granted" }));
  for (const d of graph.answer?.paths || []) root.append(svg("path", { d, class: "train-rollouts-used" }));
  const [width, height] = graph.node;
  for (const node of graph.nodes) {
    const title = svg("title");
    title.textContent = `${node.id} ${node.worker}: ${node.status}`;
    const card = svg(
      "rect",
      { x: node.x, y: node.y, width, height, rx: 16, class: "train-rollouts-node", "data-role": node.role, "data-status": node.status },
      title,
    );
    root.append(card);
  }
  if (graph.answer)
    root.append(svg("rect", { x: graph.answer.x, y: graph.answer.y, width, height, rx: height / 2, class: "train-rollouts-answer" }));
  return root;
}

/**
 * The advantage as a bar to the right (more of this) or to the left (less of it).
 * @param {number} advantage
 * @param {number} most
 */
function bar(advantage, most) {
  const fill = el("i", { class: advantage > 0 ? "train-rollouts-plus" : advantage < 0 ? "train-rollouts-minus" : "" });
  fill.style.width = `${(Math.abs(advantage) / most) * 50}%`;
  const track = el("span.train-rollouts-track", {}, fill);
  return el(
    "div.train-rollouts-advantage", { title: "Advantage: how much better than its group. It trains with this number" },
    el("span.train-rollouts-name", {}, "advantage"), track, el("b", {}, formatSigned(advantage)),
  );
}

/** @param {Record<string, number>} values */
function terms(values) {
  const list = el("dl.train-rollouts-terms");
  for (const [name, value] of Object.entries(values)) {
    list.append(el("div", {}, el("dt", {}, name), el("dd", {}, formatFixed(value))));
  }
  return list;
}

/** @param {number} value */
function formatFixed(value) {
  return Number(value).toFixed(2);
}

/** @param {number} value */
function formatSigned(value) {
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(2)}`;
}
