// A published page: recorded runs that play again, and in a live Space the run that is under way. It is the studio's
// own run view on documents instead of a server; every document is {view, steps, turns} (studio/episode_documents/replay_document.py).

import { el, icon, seconds } from "../web/lib/dom.js";
import { describeSteps } from "../web/lib/outcome.js";
import { Inspector } from "../web/run/inspector.js";
import { RunView } from "../web/run/run_view.js";
import { Summary } from "../web/run/summary.js";

/** @typedef {import("../web/types").EpisodeView} EpisodeView */
/** @typedef {import("../web/types").StepNode} StepNode */
/** @typedef {import("../web/types").Replay & { listed?: boolean }} Recording */
/** @typedef {{ label: string, href: string }[]} Links */
/** @typedef {{ title: string, about?: string, orchestrator: string, pool: string, live?: boolean, links?: Links }} Info */
/** @typedef {{ at: number, play: number }[]} Pace */

// A replay is no film: most tools answer in milliseconds, some models take minutes. What lies between two events
// takes this long at least and at most.
const SHORTEST_S = 0.45;
const LONGEST_S = 2;
const PLAY = "M8 5l11 7-11 7z";
const PAUSE = "M8 5v14 M16 5v14";
/** @type {Record<string, string>} */
const STATES = {
  answered: "Answered", stopped: "Stopped", deadline: "Out of time", gave_up: "Gave up", max_rounds: "Out of rounds", max_tokens: "Out of tokens",
  max_cost: "Out of budget", orchestrator_failed: "Failed",
};

/**
 * Mount a page of recorded runs below its heading; `take(document)` shows a live one.
 * @param {HTMLElement} root
 * @param {{ info: Info, traces: Recording[] }} page
 */
export function mount(root, { info, traces }) {
  return new Page(root, info, traces);
}

/**
 * The heading alone: a live Space has its query between the two.
 * @param {HTMLElement} root
 * @param {Info} info
 */
export function head(root, info) {
  root.replaceChildren(el("div.space-page.space-top", {}, heading(info)));
}

/**
 * The same without a server around it: follows the system's colours.
 * @param {HTMLElement} root
 * @param {{ info: Info, traces: Recording[] }} data
 */
export function alone(root, data) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.body.classList.toggle("dark", dark.matches);
  dark.addEventListener("change", follow);
  follow();
  const top = el("div");
  const rest = el("div");
  root.replaceChildren(top, rest);
  head(top, data.info);
  return mount(rest, data);
}

class Page {
  /**
   * @param {HTMLElement} root
   * @param {Info} info
   * @param {Recording[]} traces
   */
  constructor(root, info, traces) {
    this.documents = new Map(traces.map((trace) => [trace.view.episode.id, trace]));
    this.listed = traces.filter((trace) => trace.listed !== false);
    this.root = root;
    this.player = el("div.space-player");
    const stage = el("div.space-stage");
    this.view = new Replay(stage, this.documents, this.player);
    this.cards = el("div.space-cards", { role: "group", "aria-label": "Recorded runs" });
    this.cards.append(...this.listed.map((trace) => this.card(trace)));
    const box = el("div.space-page");
    if (this.listed.length > 1 || (this.listed.length && info.live)) box.append(el("h2.space-label", {}, "Recorded runs"), this.cards);
    box.append(this.player, stage, footing(info));
    root.replaceChildren(box);
    this.follow();
    if (this.listed.length) this.open(this.listed[0].view.episode.id, null, false);
  }

  /** @param {Recording} recorded */
  card(recorded) {
    const { episode, totals } = recorded.view;
    const word = episode.verdict ? (episode.verdict.correct ? "Correct" : "Wrong") : STATES[episode.outcome] || "Recorded";
    const kind = episode.verdict ? (episode.verdict.correct ? "good" : "bad") : ["answered", "stopped", null].includes(episode.outcome) ? "odd" : "bad";
    const foot = el(
      "span.space-card-foot", {}, el("b", { "data-kind": kind }, word), el("span", {}, `${describeSteps(totals.counts, "step")} · ${seconds(totals.wall_s)}`),
    );
    const node = el(
      "button.space-card", { type: "button", "data-episode": episode.id, "aria-pressed": "false" },
      el("span.space-card-query", {}, episode.query), foot,
    );
    node.addEventListener("click", () => this.open(episode.id));
    return node;
  }

  /**
   * @param {string} id
   * @param {number | null} step
   * @param {boolean} play
   */
  open(id, step = null, play = true) {
    for (const card of this.cards.children) card.setAttribute("aria-pressed", String(card.dataset.episode === id));
    this.view.replay(id, step, play && !matchMedia("(prefers-reduced-motion: reduce)").matches);
  }

  /**
   * A run that is under way, or has just ended.
   * @param {Recording} live
   */
  take(live) {
    for (const card of this.cards.children) card.setAttribute("aria-pressed", "false");
    this.view.live(live);
  }

  /** Links to other episodes lead to those that were recorded with this one. */
  follow() {
    this.root.addEventListener("click", (event) => {
      const link = /** @type {Element} */ (event.target).closest("a[href*='episode=']");
      if (!link) return;
      event.preventDefault();
      const target = new URLSearchParams(link.getAttribute("href").split("?")[1]);
      if (this.documents.has(target.get("episode"))) this.open(target.get("episode"), Number(target.get("step")) || null, false);
      else link.replaceWith(el("span.run-inspector-about", {}, "That episode was not recorded here."));
    });
  }
}

class ReplaySummary extends Summary {
  /** @returns {HTMLElement[]} */
  actions() {
    return [];
  }
}

class Replay extends RunView {
  /**
   * @param {HTMLElement} root
   * @param {Map<string, Recording>} documents
   * @param {HTMLElement} player
   */
  constructor(root, documents, player) {
    const inspector = new Inspector((path) => this.read(path));
    super(root, () => {}, { inspector, summary: new ReplaySummary((round) => this.selectTurn(round, true)) });
    this.documents = documents;
    this.player = player;
    this.at = 0;
    this.buildPlayer();
    this.empty.querySelector("p").textContent = "Ask something: the steps, who may see whose output, and the answer appear here.";
  }

  /**
   * Details come out of the document.
   * @param {string} path
   */
  async read(path) {
    if (path.endsWith("/final")) return this.document.final;
    const [, part, key] = path.match(/\/(steps|turns)\/(\d+)$/);
    const detail = this.document[/** @type {"steps" | "turns"} */ (part)][key];
    if (!detail) throw new Error("this step has not been planned yet");
    return detail;
  }

  /**
   * @param {string} id
   * @param {number | null} step
   * @param {boolean} play
   */
  replay(id, step, play) {
    this.begin(this.documents.get(id), step);
    this.player.hidden = false;
    this.seek(play ? 0 : this.wall());
    if (play) this.play();
  }

  /** @param {Recording} document */
  live(document) {
    const fresh = document.view.episode.id !== this.episode;
    if (fresh) this.begin(document, null);
    this.document = document;
    this.pace = paceOf(document.view);
    this.player.hidden = document.view.episode.state === "running";
    this.at = this.wall();
    this.take(document.view);
    this.paintPlayer();
    if (!fresh && this.step) this.inspector.showStep(this.episode, this.step);
  }

  /**
   * @param {Recording} document
   * @param {number | null} step
   */
  begin(document, step) {
    this.pause();
    this.document = document;
    this.pace = paceOf(document.view);
    this.episode = document.view.episode.id;
    this.step = step;
    this.round = null;
    /** @type {string | null} */
    this.key = null;
    for (const part of [this.summary, this.graph, this.timeline, this.matrix, this.inspector]) part.clear();
  }

  wall() {
    return this.document.view.totals.wall_s;
  }

  /**
   * The episode as it was `at` seconds after its beginning.
   * @param {number} at
   */
  seek(at) {
    const back = at < this.at;
    this.at = Math.max(0, Math.min(at, this.wall()));
    const moment = momentOf(this.document.view, this.at);
    const key =
      JSON.stringify([moment.episode.state, moment.turns.map((turn) => turn.status), moment.graph.nodes.map((node) => node.status)]);
    if (key !== this.key) {
      this.key = key;
      if (back) this.timeline.clear();
      this.take(moment);
    } else {
      this.summary.tick(this.at);
      this.timeline.draw(this.state, this.at);
    }
    this.paintPlayer();
  }

  /** The clock is the player's; nothing grows by itself. */
  clock() {
    return this.at;
  }

  tick() {}

  // The player

  buildPlayer() {
    this.button = el("button.space-play", { type: "button" });
    this.range = el("input.space-range", { type: "range", min: 0, max: 1000, step: 1, "aria-label": "Moment of the run" });
    this.time = el("output.space-time");
    this.button.addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    this.range.addEventListener("input", () => {
      this.pause();
      this.seek(timeAt(this.pace, (this.range.valueAsNumber / 1000) * this.pace.at(-1).play));
    });
    this.player.append(this.button, this.range, this.time);
    this.player.hidden = true;
    this.pause();
  }

  play() {
    if (this.at >= this.wall()) this.seek(0);
    const from = playAt(this.pace, this.at);
    const since = performance.now();
    /** @param {number} now */
    const frame = (now) => {
      this.seek(timeAt(this.pace, from + Math.max(0, now - since) / 1000));
      if (this.at < this.wall()) this.playing = requestAnimationFrame(frame);
      else this.pause();
    };
    this.playing = requestAnimationFrame(frame);
    this.showButton();
  }

  pause() {
    cancelAnimationFrame(this.playing);
    this.playing = null;
    this.showButton();
  }

  showButton() {
    this.button.replaceChildren(icon(this.playing ? PAUSE : PLAY));
    this.button.setAttribute("aria-label", this.playing ? "Pause" : "Replay");
  }

  paintPlayer() {
    const wall = this.wall();
    this.range.valueAsNumber = Math.round((1000 * playAt(this.pace, this.at)) / this.pace.at(-1).play);
    this.range.setAttribute("aria-valuetext", `${seconds(this.at)} of ${seconds(wall)}`);
    this.time.textContent = `${seconds(this.at) || "0 ms"} of ${seconds(wall)}`;
  }
}

/**
 * When each event happened (`at`, seconds of the episode) and when its replay shows it (`play`).
 * @param {EpisodeView} view
 * @returns {Pace}
 */
function paceOf(view) {
  const steps = view.graph.nodes.flatMap((node) => [node.started_at, node.ended_at]);
  const times = [...view.turns.flatMap((turn) => [turn.started_at, turn.ended_at]), ...steps, view.totals.wall_s];
  const pace = [{ at: 0, play: 0 }];
  for (const at of times.filter((time) => time > 0).sort((a, b) => a - b)) {
    const last = pace.at(-1);
    if (at - last.at > 1e-6) pace.push({ at, play: last.play + Math.min(LONGEST_S, Math.max(SHORTEST_S, at - last.at)) });
  }
  if (pace.length === 1) pace.push({ at: 1e-6, play: SHORTEST_S });
  return pace;
}

/**
 * @param {Pace} pace
 * @param {number} play
 */
const timeAt = (pace, play) => between(pace, play, "play", "at");
/**
 * @param {Pace} pace
 * @param {number} at
 */
const playAt = (pace, at) => between(pace, at, "at", "play");

/**
 * Straight lines through the pace's points, from one of its columns to the other.
 * @param {Pace} pace
 * @param {number} value
 * @param {"at" | "play"} from
 * @param {"at" | "play"} to
 */
function between(pace, value, from, to) {
  const index = pace.findIndex((point) => point[from] >= value);
  if (index === -1) return pace.at(-1)[to];
  if (index === 0) return pace[0][to];
  const [a, b] = [pace[index - 1], pace[index]];
  return a[to] + ((value - a[from]) / (b[from] - a[from])) * (b[to] - a[to]);
}

/**
 * What a finished view looked like `at` seconds after its beginning; places stay where they end up.
 * @param {EpisodeView} view
 * @param {number} at
 * @returns {EpisodeView}
 */
function momentOf(view, at) {
  if (at >= view.totals.wall_s) return view;
  const turns = view.turns.filter((turn) => turn.started_at <= at).map((turn) => turnAt(turn, at));
  const rounds = new Set(turns.filter((turn) => turn.ended_at !== null).map((turn) => turn.round));
  const nodes = view.graph.nodes.filter((node) => rounds.has(node.round)).map((node) => stepAt(node, at));
  const shown = new Set(nodes.map((node) => node.id));
  const answering = view.turns.at(-1);
  const answer = answering && past(answering.ended_at, at) ? view.graph.answer : null;
  const { final: written } = view.episode;
  /** @type {import("../web/types").FinalAnswerView | null} */
  const final = written?.worker && past(written.started_at, at) ? { ...written, state: "RUNNING", plan_answer: null } : null;
  return {
    ...view,
    clock_s: at,
    episode: { ...view.episode, state: "running", answer: null, final, outcome: null, reason: null, verdict: null },
    turns,
    graph: {
      ...view.graph,
      nodes,
      lanes: view.graph.lanes.filter((lane) => rounds.has(lane.round)),
      edges: view.graph.edges.filter((edge) => shown.has(edge.from) && shown.has(edge.to)),
      answer,
    },
    totals: { ...view.totals, counts: countSteps(nodes), rounds: turns.length, speedup: null },
  };
}

/**
 * @param {import("../web/types").TurnView} turn
 * @param {number} at
 * @returns {import("../web/types").TurnView}
 */
function turnAt(turn, at) {
  return past(turn.ended_at, at) ? turn : { ...turn, status: "RUNNING", ended_at: null, error: null, steps: [] };
}

/**
 * @param {StepNode} node
 * @param {number} at
 * @returns {StepNode}
 */
function stepAt(node, at) {
  if (past(node.ended_at, at)) return node;
  const started = past(node.started_at, at);
  return {
    ...node, status: started ? "RUNNING" : "PENDING", started_at: started ? node.started_at : null, ended_at: null, latency_s: null,
    tokens_in: 0, tokens_out: 0, code: null,
  };
}

/**
 * @param {number | null} time
 * @param {number} at
 */
const past = (time, at) => time !== null && time !== undefined && time <= at;

/** @param {StepNode[]} nodes */
function countSteps(nodes) {
  const steps = nodes.filter((node) => !node.tried);
  return { steps: steps.length, failed: steps.filter((node) => node.code).length, tries: nodes.length - steps.length };
}

/** @param {Info} info */
function heading(info) {
  const box = el("header.space-head", {}, el("h1", {}, info.title));
  if (info.about) box.append(el("p", {}, info.about));
  const facts = el("p.space-facts", {}, el("b", {}, info.orchestrator), ` on the pool ${info.pool}`);
  for (const { label, href } of info.links || [])
    if (/^https:\/\//.test(href)) facts.append(" · ", el("a.podium-link", { href, target: "_blank", rel: "noopener" }, label));
  box.append(facts);
  return box;
}

/** @param {Info} info */
function footing(info) {
  return el(
    "footer.space-foot", {},
    `${info.live ? "Runs live, and replays" : "Replays"} what happened exactly as it was recorded. Click a step to see what it was allowed to see, was sent and returned. Made with Podium.`,
  );
}
