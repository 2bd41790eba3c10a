// The Run page below the form: graph, timeline, matrix and inspector of one episode, linked by selection
// and fed by its event stream. The stream goes on by itself after a reload or a restart of the server.

import { followEvents, getDocument } from "../lib/api.js";
import { el, recall, remember, svg } from "../lib/dom.js";
import { Graph } from "./graph.js";
import { Inspector } from "./inspector.js";
import { keepInSight } from "./side_room.js";
import { Matrix } from "./matrix.js";
import { Summary } from "./summary.js";
import { Timeline } from "./timeline.js";

/** @typedef {import("../types").EpisodeView} EpisodeView */
/** @typedef {{ onState?: (running: boolean) => void, onStarted?: (id: string) => void }} Hearers */

const LOOK_MS = 1000; // between looks whether the orchestrator's model is loaded

/**
 * Mount into `root`. `onState(running)` hears when an episode starts and ends, `onStarted(id)` of one that was started
 * here.
 * @param {HTMLElement} root
 * @param {Hearers} hearers
 */
export function mount(root, { onState = () => {}, onStarted = () => {} } = {}) {
  const view = new RunView(root, onState, { findLoading });
  import("../approval/panel.js").then((module) => module.attach(view));
  import("../what_if/panel.js").then((module) => module.attach(view, onStarted)); // not where there is no server
  import("../credit/credit.js").then((module) => module.attach(view));
  view.summary.onStarted = (id) => {
    onStarted(id);
    view.show(id);
  };
  view.summary.onJudged = () => view.reopen();
  const linked = recall("episode");
  if (linked) view.show(linked);
  return view;
}

/**
 * Whether the model that plans this episode is being loaded. A studio that does not answer loads nothing.
 * @param {string} episode
 */
async function findLoading(episode) {
  try {
    return (await getDocument(`/api/episodes/${encodeURIComponent(episode)}/loading`)).loading;
  } catch {
    return false;
  }
}

/** `inspector` and `summary` may be given: a page without a server reads its details and offers its actions elsewhere. */
export class RunView {
  /**
   * @param {HTMLElement} root
   * @param {(running: boolean) => void} onState
   * @param {{ inspector?: Inspector, summary?: Summary | null, findLoading?: (episode: string) => Promise<boolean> }} parts
   */
  constructor(root, onState, { inspector = new Inspector(), summary = null, findLoading = async () => false } = {}) {
    this.onState = onState;
    this.findLoading = findLoading;
    this.loading = false;
    this.lookedAt = 0;
    /** @type {string | null} */
    this.episode = null;
    /** @type {EpisodeView | null} */
    this.state = null;
    /** @type {number | null} */
    this.step = null;
    /** @type {number | null} */
    this.round = null;
    /** @param {number | null} step */
    const select = (step) => this.select(step);
    /** @param {number} round */
    const turn = (round) => this.selectTurn(round);
    this.summary = summary || new Summary((round) => this.selectTurn(round, true));
    this.summary.onFinal = () => this.selectFinal();
    this.graph = new Graph(select, turn, () => this.selectFinal());
    this.timeline = new Timeline(select, turn);
    this.matrix = new Matrix(select);
    this.inspector = inspector;
    this.notice = el("div.run-view-notice", { role: "status" });
    this.empty = emptyState();
    this.planning = el("p.run-view-planning", { "data-testid": "planning" });
    this.planning.hidden = true;
    this.graph.root.append(skeleton());
    this.full = el("div.run-view-full");
    this.full.hidden = true;
    this.full.append(this.summary.root, this.planning, this.panels());
    root.replaceChildren(el("div.run-view", {}, this.notice, this.empty, this.full));
  }

  panels() {
    this.below = el("div.run-view-below", {}, panel("Timeline", this.timeline.root), panel("Access", this.matrix.root));
    const side = keepInSight(el("div.run-view-side", {}, this.inspector.root));
    return el("div.run-view-grid", {}, el("div.run-view-main", {}, this.graph.root, this.below), side);
  }

  /** Scroll just enough that what was asked for can be read: beside the graph where there is room, else below it. */
  reveal() {
    if (!matchMedia("(width >= 1200px)").matches) return this.inspector.reveal();
    const { top, bottom } = this.graph.root.getBoundingClientRect();
    const hidden = Math.min(top, bottom - innerHeight);
    if (hidden > 0) scrollBy({ top: hidden + 8, behavior: "smooth" });
  }

  /**
   * Show an episode by id; the same id again changes nothing.
   * @param {string} id
   */
  show(id) {
    if (!id || id === this.episode) return;
    this.close();
    const first = this.episode === null;
    this.episode = id;
    remember("episode", id);
    if (!first) remember("step", null);
    this.step = first ? Number(recall("step")) || null : null;
    this.round = null;
    this.state = null;
    for (const part of [this.summary, this.graph, this.timeline, this.matrix, this.inspector]) part.clear();
    this.open(id);
  }

  /** @param {string} id */
  open(id) {
    /** @type {Record<string, (document: any) => void>} */
    const handlers = {
      view: (view) => this.take(view),
      patch: (change) => this.patch(change),
      end: () => this.close(),
      problem: (sentence) => {
        this.say(sentence);
        this.close();
      },
    };
    this.stream = followEvents(`/api/episodes/${encodeURIComponent(id)}/stream`, handlers, (state) => {
      if (state === "open") this.say("");
      else if (state === "gone") this.say(`There is no episode ${id} in this data folder.`);
      else this.say("Connection lost. Reconnecting …");
    });
  }

  /** Read the episode again: something was added to one that had ended. */
  reopen() {
    this.close();
    this.open(this.episode);
  }

  close() {
    this.stream?.close();
    this.stream = null;
    cancelAnimationFrame(this.frame);
  }

  /** @param {string} text */
  say(text) {
    this.notice.textContent = text;
    this.notice.hidden = !text;
  }

  /** @param {EpisodeView} view */
  take(view) {
    this.state = view;
    this.received = performance.now();
    this.empty.hidden = true;
    this.full.hidden = false;
    this.graph.draw(view);
    this.matrix.draw(view);
    this.refresh();
    if (this.step) this.select(this.step);
  }

  /** @param {import("../types").ViewPatch} change */
  patch(change) {
    if (!this.state) return;
    const changed = new Map(change.nodes.map((node) => [node.id, node]));
    for (const node of this.state.graph.nodes) Object.assign(node, changed.get(node.id));
    Object.assign(this.state, { clock_s: change.clock_s, episode: change.episode, turns: change.turns, totals: change.totals });
    this.received = performance.now();
    this.graph.drawAnswer(this.state.graph.answer);
    this.graph.paint();
    this.refresh();
    if (this.step && changed.has(this.step)) this.inspector.showStep(this.episode, this.step);
  }

  refresh() {
    this.summary.draw(this.state, this.clock());
    this.timeline.draw(this.state, this.clock());
    this.mark();
    const running = this.state.episode.state === "running";
    this.drawPlanning();
    this.onState(running);
    cancelAnimationFrame(this.frame);
    if (running) this.tick();
  }

  /** While it runs, clocks and bars grow between messages. */
  tick() {
    this.frame = requestAnimationFrame(() => {
      this.summary.tick(this.clock());
      this.drawPlanning();
      this.timeline.draw(this.state, this.clock());
      this.tick();
    });
  }

  /** While the orchestrator writes there is nothing else to see: say so, with the seconds that it takes. */
  drawPlanning() {
    const final = this.state.episode.final;
    if (this.state.episode.state === "running" && final?.state === "RUNNING") {
      this.planning.hidden = false;
      this.graph.root.classList.add("run-graph-thinking");
      this.planning.textContent = `${final.worker} writes the final answer … ${Math.max(0, this.clock() - final.started_at).toFixed(0)} s`;
      return;
    }
    const turn = this.state.turns.at(-1);
    const writes = this.state.episode.state === "running" && Boolean(turn) && turn.ended_at === null;
    this.planning.hidden = !writes;
    this.graph.root.classList.toggle("run-graph-thinking", writes);
    this.graph.root.classList.toggle("run-graph-awaited", writes && !this.state.graph.nodes.length);
    if (!writes) return;
    this.lookForModel();
    const round = turn.round > 1 ? ` for round ${turn.round}` : "";
    const word = this.loading ? "The orchestrator's model is being loaded, once until the studio ends" : `The orchestrator writes its plan${round}`;
    this.planning.textContent = `${word} … ${Math.max(0, this.clock() - turn.started_at).toFixed(0)} s`;
  }

  async lookForModel() {
    if (performance.now() - this.lookedAt < LOOK_MS) return;
    this.lookedAt = performance.now();
    const episode = this.episode;
    const loading = await this.findLoading(episode);
    if (episode === this.episode) this.loading = loading;
  }

  /** The episode's own seconds, now. */
  clock() {
    const { episode, clock_s: clock, totals } = this.state;
    if (episode.state !== "running") return totals.wall_s;
    const since = (Date.now() - Date.parse(episode.started_at)) / 1000;
    return Math.max(clock, Math.min(since, clock + (performance.now() - this.received) / 1000 + 3600));
  }

  /** @param {number | null} step */
  select(step) {
    this.step = step;
    this.round = null;
    remember("step", step);
    this.mark();
    if (step) this.inspector.showStep(this.episode, step).then(() => this.reveal());
    else this.inspector.clear();
  }

  /** Show in the inspector how the pool's finalizer wrote the answer. */
  selectFinal() {
    this.step = null;
    this.round = null;
    remember("step", null);
    this.mark();
    this.inspector.showFinal(this.episode).then(() => this.reveal());
  }

  /**
   * Show a turn; `open` unfolds the list of the workers that it saw.
   * @param {number} round
   * @param {boolean} open
   */
  selectTurn(round, open = false) {
    this.step = null;
    this.round = round;
    remember("step", null);
    this.mark();
    this.inspector.showTurn(this.episode, round).then(() => {
      if (open) this.inspector.unfold("shown");
      this.reveal();
    });
  }

  mark() {
    this.graph.select(this.step);
    this.timeline.select(this.step, this.round);
    this.matrix.select(this.step);
    this.full.dispatchEvent(new CustomEvent("marked"));
  }
}

/**
 * @param {string} title
 * @param {HTMLElement} content
 */
function panel(title, content) {
  return el("div.run-view-panel", {}, el("h2", {}, title), content);
}

/** The place of the first steps, while they are being written. */
function skeleton() {
  return el("div.run-graph-skeleton", { "aria-hidden": "true" }, ...[0, 1, 2, 3].map(() => el("i")));
}

function emptyState() {
  const picture = svg("svg", { viewBox: "0 0 420 120", "aria-hidden": "true" });
  for (const d of ["M94,30C134,30 134,60 174,60", "M94,90C134,90 134,60 174,60", "M246,60L326,60"]) picture.append(svg("path", { d }));
  for (const [x, y] of [[22, 14], [22, 74], [174, 44], [326, 44]]) picture.append(svg("rect", { x, y, width: 72, height: 32, rx: 8 }));
  return el(
    "div.run-view-empty", {}, picture,
    el("p", {}, "Press Run: the orchestrator plans your question and calls your tools. The steps and the answer appear here as they happen."),
  );
}
