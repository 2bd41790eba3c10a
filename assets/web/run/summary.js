// The strip above the graph: query, state, answer, verdict and totals.

import { copyButton, count, dollars, el, seconds } from "../lib/dom.js";
import { exportMenu } from "../lib/export_menu.js";
import { describeSteps, isOver, outcomeChip } from "../lib/outcome.js";
import { SAVE, STAR, starButton } from "../lib/star.js";
import { FollowUpForm, threadLines } from "./follow_up.js";
import { keepTaskButton } from "./keep_task.js";
import { offerList } from "./offers.js";
import { shareButton } from "./share.js";
import { Thumbs, verdictChip } from "./verdict.js";

/** @typedef {import("../types").EpisodeHead} EpisodeHead */
/** @typedef {import("../types").TurnView} TurnView */

export class Summary {
  /**
   * `onTurn(round)` shows a turn in the inspector.
   * @param {(round: number, open?: boolean) => void} onTurn
   */
  constructor(onTurn) {
    this.onTurn = onTurn;
    this.onFinal = () => {}; // shows how a finalizer wrote the answer
    /** @type {() => HTMLElement[]} */
    this.more = () => []; // further actions on an episode
    /** @type {(id: string) => void} */
    this.onStarted = () => {}; // hears of a run that an offer starts
    /** @type {EpisodeHead | null} */
    this.episode = null; // as it was drawn last
    /** @type {{ episode: string, actions: HTMLElement[] } | null} */
    this.kept = null; // the actions on an episode, drawn once
    /** @type {(() => void) | null} */
    this.onJudged = null; // hears that a person has said whether the answer is right; without it nobody is asked
    this.thumbs = new Thumbs(() => this.onJudged?.());
    this.followUp = new FollowUpForm((id) => this.onStarted(id));
    this.root = el("section.run-summary", { "aria-label": "Summary" });
  }

  clear() {
    this.root.replaceChildren();
  }

  /**
   * Further actions, before the others. Those already drawn for `episode` stay: one may be an open menu.
   * @param {() => HTMLElement[]} more
   * @param {EpisodeHead} [episode]
   */
  offer(more, episode) {
    this.more = more;
    if (episode && this.kept?.episode === episode.id) this.kept.actions.unshift(...more());
    else this.kept = null;
  }

  /**
   * @param {import("../types").EpisodeView} view
   * @param {number} clock
   */
  draw(view, clock) {
    const { episode, totals } = view;
    this.episode = episode;
    const shown = view.turns.find((turn) => turn.shown);
    const recalled = view.turns.find((turn) => turn.recalled?.count);
    this.root.dataset.state = episode.state;
    if (this.kept?.episode !== episode.id) this.kept = { episode: episode.id, actions: this.actions(episode) };
    const actions = this.kept.actions.filter((node) => isOver(episode) || !node.dataset.whenOver);
    const focused = /** @type {HTMLElement} */ (this.root.contains(document.activeElement) ? document.activeElement : null);
    this.root.replaceChildren(
      heading(episode, actions, [shown && this.workersLine(shown), recalled && this.lessonsLine(recalled)].filter(Boolean)),
      ...(episode.chance ? this.chanceLine(episode) : this.agreementLine(episode)), ...this.confidenceLine(episode),
      result(episode, this.onJudged ? this.thumbs.show(episode) : []), ...this.finalLine(episode),
      ...(episode.out_of_depth?.beyond || !episode.chance ? depthLine(episode) : []),
      ...(this.onJudged ? this.followUp.show(episode) : []),
      figures(totals, episode, clock),
      ...(episode.offers.length ? [offerList(episode, this.onStarted)] : []),
    );
    focused?.focus(); // what is drawn again stays under the keyboard: Escape closes an open menu
  }

  /**
   * What can be done with an episode, from its first drawing on; those with `data-when-over` once it has ended.
   * @param {EpisodeHead} episode
   * @returns {HTMLElement[]}
   */
  actions(episode) {
    const star = starButton(episode.id, null, episode.what_if_of ? SAVE : STAR);
    const download = { href: `/api/episodes/${encodeURIComponent(episode.id)}`, download: "" };
    const menu = exportMenu(episode.id, [copyButton(() => location.href, "Copy link"), el("a", download, "Trace as JSON")]);
    const keep = keepTaskButton(() => this.episode, () => this.onJudged?.());
    const share = shareButton(episode.id);
    for (const node of [star, keep, share, menu]) node.dataset.whenOver = "1";
    return [...this.more(), star, keep, share, menu];
  }

  /** How many of the drawn plans came to this answer; the others stand in the inspector.
   * @param {import("../types").EpisodeHead} episode */
  agreementLine({ agreement }) {
    if (!agreement) return [];
    const title = "How many of the drawn plans came to this result. Plans can agree and be wrong.";
    const label = agreement.agreed < agreement.plans ? "What the other plans say" : "How the vote went";
    return [this.assurance(agreement, "agreement", title, label)];
  }

  /** How likely the answer is right; what the other plans say stands in the inspector.
   * @param {import("../types").EpisodeHead} episode */
  chanceLine({ chance, agreement }) {
    if (!chance) return [];
    const label = agreement ? (agreement.agreed < agreement.plans ? "What the other plans say" : "How the vote went") : "The plan";
    return [this.assurance(chance, "chance", chance.why, label)];
  }

  /** How likely the answer is right, by the record of those who gave it.
   * @param {import("../types").EpisodeHead} episode */
  confidenceLine({ confidence }) {
    if (!confidence) return [];
    const title = "By how often these agents were right on such questions before.";
    return [this.assurance(confidence, "confidence", title, "What that rests on")];
  }

  /** Who wrote the answer for a person; the plan's own is one click away.
   * @param {import("../types").EpisodeHead} episode */
  finalLine({ final }) {
    if (!final) return [];
    const button = el("button.podium-link", { type: "button" }, "How it was written");
    button.addEventListener("click", () => this.onFinal());
    const how = final.worker ? [" ", button] : [];
    if (final.state !== "OK") return [el("p.run-summary-final", { "data-testid": "final" }, final.sentence, ...how)];
    const own = el("output.run-summary-own", { "data-testid": "plan-answer" }, final.plan_answer ?? "");
    own.hidden = true;
    const show = el("button.podium-link", { type: "button", "aria-expanded": "false" }, "The plan's own answer");
    show.addEventListener("click", () => {
      own.hidden = !own.hidden;
      show.setAttribute("aria-expanded", String(!own.hidden));
    });
    return [el("p.run-summary-final", { "data-testid": "final" }, final.sentence, " ", show, ...how), own];
  }

  /** A line on how sure the answer is, and a way to the round in the inspector that says more.
   * @param {{ sentence: string, unsure: boolean, round: number }} about
   * @param {string} name
   * @param {string} title
   * @param {string} label */
  assurance({ sentence, unsure, round }, name, title, label) {
    const button = el("button.podium-link", { type: "button" }, label);
    button.addEventListener("click", () => this.onTurn(round));
    return el("p.run-summary-agreement", { "data-unsure": String(unsure), "data-testid": name, title }, sentence, button);
  }

  /** @param {TurnView} turn */
  workersLine({ round, shown }) {
    const label = `${count(shown.count)} of ${count(shown.of)} workers shown`;
    const button = el("button.podium-link", { type: "button", "data-testid": "shown", title: "Which ones, and why" }, label);
    button.addEventListener("click", () => this.onTurn(round));
    return button;
  }

  /** @param {TurnView} turn */
  lessonsLine({ round, recalled }) {
    const label = `${recalled.count} ${recalled.count > 1 ? "lessons" : "lesson"} recalled`;
    const button = el(
      "button.podium-link", { type: "button", "data-testid": "recalled", title: "What the orchestrator was told of earlier failures" },
      label,
    );
    button.addEventListener("click", () => this.onTurn(round));
    return button;
  }

  /**
   * Only the running clock.
   * @param {number} clock
   */
  tick(clock) {
    const node = this.root.querySelector("[data-figure=wall]");
    if (node) node.textContent = seconds(clock);
  }
}

/**
 * @param {import("../types").EpisodeHead} episode
 * @param {HTMLElement[]} actions
 * @param {HTMLElement[]} lines
 */
function heading(episode, actions, lines) {
  const line = el("div.run-summary-line", {}, outcomeChip(episode), ...parentLink(episode));
  const version = episode.pool_version ? ` v${episode.pool_version}` : "";
  line.append(el("span.run-summary-about", { title: episode.orchestrator }, `${episode.orchestrator_label} on ${episode.pool}${version}`));
  if (episode.mode && episode.mode !== "autonomous") line.append(el("span.run-summary-about", { "data-testid": "mode" }, `mode ${episode.mode}`));
  line.append(...retryMarks(episode));
  if (episode.served) line.append(servedMark(episode.served));
  if (episode.task) line.append(el("span.run-summary-about", {}, `${episode.task.family} level ${episode.task.level}`));
  if (episode.limits.length) line.append(el("span.run-summary-about", { "data-testid": "limits" }, episode.limits.join(" ")));
  line.append(...lines);
  line.append(el("div.run-summary-actions", {}, ...actions));
  return el("div.run-summary-heading", {}, line, ...threadLines(episode), el("p.run-summary-query", { tabindex: "0" }, episode.query));
}

/** The second try of a failed run, with its lesson, and the way back from it.
 * @param {import("../types").EpisodeHead} episode */
function retryMarks(episode) {
  const { retry_of: failed, retried } = episode;
  /** @param {string} id @param {string} text */
  const link = (id, text) => el("a.podium-link", { href: `/?episode=${encodeURIComponent(id)}` }, text);
  const waits = isOver(episode) && episode.answer !== null && !episode.verdict && !episode.task;
  /** @type {(string|HTMLElement)[][]} */
  const marks = failed ? [["Tried with the lesson of ", link(failed, "a failed run")]] : [];
  if (failed && waits) marks.push(["That lesson is used once you say that the answer is right"]);
  if (retried) marks.push([retried.sentence, ...(retried.episode ? [": ", link(retried.episode, "the second try")] : [])]);
  return marks.map((parts) => el("span.run-summary-about", { "data-testid": "retry" }, ...parts));
}

/** Which deployment was asked, and who answered in its name.
 * @param {import("../types").ServedView} served */
function servedMark({ deployment, change, side, shadow_of: answered, sentence }) {
  const target = new URLSearchParams({ deployment, ...(change ? { change: String(change) } : {}) });
  const link = el("a.podium-link", { href: `/serve?${target}` }, change ? `${deployment}, change ${change}` : deployment);
  const given = answered ? [" of ", el("a.podium-link", { href: `/?episode=${encodeURIComponent(answered)}` }, "an answered run")] : [];
  return el("span.run-summary-about", { "data-testid": "served", title: sentence }, "Deployment ", link, ` · ${side}`, ...given);
}

/** How unlike everything that the orchestrator learnt the words of the query are: no figure of how sure the answer is.
 * @param {import("../types").EpisodeHead} episode */
function depthLine({ out_of_depth: depth }) {
  if (!depth) return [];
  return [el("p.run-summary-depth", { "data-beyond": String(depth.beyond), "data-testid": "depth" }, depth.sentence)];
}

/** @param {import("../types").EpisodeHead} episode */
function parentLink(episode) {
  if (!episode.parent) return [];
  const href = `/?episode=${encodeURIComponent(episode.parent.episode)}&step=${episode.parent.step}`;
  return [el("a.podium-link", { href }, `Called by step ${episode.parent.step} of another episode`)];
}

/**
 * @param {import("../types").EpisodeHead} episode
 * @param {HTMLElement[]} thumbs
 */
function result(episode, thumbs) {
  const box = el("div.run-summary-result");
  if (episode.answer !== null) {
    const answer = el("output.run-summary-answer", { "data-testid": "answer", tabindex: "0" }, episode.answer);
    answer.classList.toggle("run-summary-words", episode.final?.state === "OK");
    answer.classList.toggle("run-summary-lines", episode.answer.includes("\n"));
    box.append(el("span.run-summary-label", {}, "Answer"), answer);
  } else if (episode.state === "waiting") {
    box.append(el("span.run-summary-label", {}, "Answer"), el("span.run-summary-waiting", {}, "not before the plan is approved"));
  } else if (episode.state === "running") {
    box.append(el("span.run-summary-label", {}, "Answer"), el("span.run-summary-waiting", {}, "not yet"));
  } else {
    const why = episode.reason || "The process that ran this episode ended; what it had recorded is below.";
    box.append(el("span.run-summary-label", {}, "No answer"), el("span.run-summary-reason", {}, why));
  }
  if (episode.verdict) box.append(verdictChip(episode.verdict));
  if (episode.not_judged)
    box.append(el("span.run-summary-verdict", { "data-correct": "unknown", "data-testid": "not-judged" }, `Not judged: ${episode.not_judged}`));
  box.append(...thumbs);
  return box;
}

/**
 * @param {import("../types").EpisodeTotals} totals
 * @param {import("../types").EpisodeHead} episode
 * @param {number} clock
 */
function figures(totals, episode, clock) {
  const list = el("dl.run-summary-figures");
  const running = episode.state === "running";
  const entries = [
    ["Wall time", seconds(running ? clock : totals.wall_s), "wall"],
    ["Critical path", seconds(totals.critical_path_s), "critical"],
    ["Speed-up of the workers", totals.workers_speedup ? `${totals.workers_speedup.toFixed(2)}×` : "–", "speedup"],
    ["Steps", describeSteps(totals.counts), "steps"],
    ["Rounds", String(totals.rounds), "rounds"],
    ["Tokens", `${count(totals.tokens_in)} → ${count(totals.tokens_out)}`, "tokens"],
    ["Cost", dollars(totals.cost), "cost"],
  ];
  for (const [name, value, key] of entries) {
    list.append(el("div", {}, el("dt", {}, name), el("dd", { "data-figure": key }, value)));
  }
  return list;
}
