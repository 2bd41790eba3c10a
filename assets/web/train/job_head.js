// What a job is and how far it has come: its name and state, what can be done with it, its progress and its figures.

import { count, dollars, el, icon, seconds } from "../lib/dom.js";
import { ACTIONS } from "../lib/icons.js";
import { needs } from "../lib/rights.js";
import { about, bytes, labelStage, moment, runLink, sentence } from "./formats.js";
import { JobNotice } from "./job_notice.js";
import { describePlace, isRented } from "./places.js";

/** @type {Record<string, string>} */
const PACES = { demonstrations: "A demonstration", who: "An answer", evaluate: "An episode" };
/** @type {Record<string, string>} */
const STATES = { proposed: "Proposed", queued: "Queued", running: "Running", stopping: "Stopping", stopped: "Stopped", failed: "Failed", done: "Done" };

export class JobHead {
  /**
   * Commands go to the `view`, which has the curves with the newest figures.
   * @param {import("./job_view.js").JobView} view
   */
  constructor(view) {
    this.view = view;
    /** @type {string | null} */
    this.drawn = null;
    this.notice = new JobNotice();
    this.root = el("section.train-card.train-job-head", { "aria-label": "Job" });
  }

  /** Show nothing but a text. */
  clear(text = "") {
    this.drawn = null;
    this.root.replaceChildren(...(text ? [el("p.train-empty", {}, text)] : []));
  }

  /** @param {import("../types").JobView} state */
  draw(state) {
    this.state = state;
    const { stage, message, ahead, checkpoints, title, outcome } = state;
    const sentences = [message, title, outcome, state.who, state.taught];
    const key = JSON.stringify([state.state, state.label, stage, ahead, checkpoints.length, ...sentences]);
    if (key !== this.drawn) {
      this.drawn = key;
      this.progress = progress();
      this.figures = el("dl.run-summary-figures.train-job-figures");
      this.root.dataset.state = state.state;
      this.root.replaceChildren(this.titleLine(), ...this.choice(), ...this.outcome(), ...this.trouble(), this.progress.root, this.figures, this.notice.box(state) ?? "");
    }
    this.progress.set(state);
    this.notice.follow(state);
    this.figures.replaceChildren(...this.facts().map(([name, value, id]) => {
      return el("div", {}, el("dt", {}, name), el("dd", { "data-figure": id }, value));
    }));
  }

  titleLine() {
    const { state } = this;
    const line = el(
      "div.train-job-line", {}, el("h2", { title: state.id }, state.label),
      el("span.train-pill", { "data-state": state.state, "data-testid": "job-state" }, STATES[state.state] || state.state),
    );
    const text =
      el("div.train-job-name", {}, line, el("p", {}, state.title || `${state.kind.split("+").map(labelStage).join(", then ")} on ${state.pool}`));
    const actions = el("div.train-job-actions");
    /** @type {(request: string, label: string, path: string, command: () => unknown, kind?: string) => void} */
    const add = (request, label, path, command, kind = "page-button") => {
      const node = needs(el("button", { class: kind, type: "button" }, icon(path), label), request);
      node.addEventListener("click", command);
      actions.append(node);
    };
    if (state.can_stop) add("train/stop", state.state === "queued" ? "Take out of the queue" : isRented(state.where) ? "Give the machine back" : "Stop and save", ACTIONS.stop, () => this.view.act({
      action: "stop", job: state.id,
    }));
    const proposed = state.state === "proposed";
    const [request, resume] = isRented(state.where) ? ["train/rent", "Rent again and resume"] : ["train/resume", proposed ? "Start this job" : "Resume"];
    if (state.resumable) add(request, resume, proposed ? ACTIONS.play : ACTIONS.again, () => this.view.command({ action: "resume", job: state.id }), "page-primary");
    const best = state.checkpoints.find((checkpoint) => checkpoint.best) || state.checkpoints[0];
    if (best) {
      const run = el(
        "a", { class: state.state === "done" && state.outcome?.verdict !== "worse" ? "page-primary" : "page-button", href: runLink(best.name) }, icon(ACTIONS.play),
        best.best ? "Run the best checkpoint" : "Run the newest checkpoint",
      );
      actions.append(run);
    }
    add("train/of_job", "Edit as new recipe", ACTIONS.pencil, () => this.view.edit(state.id));
    add("housekeeping/rename", "Rename or delete", ACTIONS.trash, () => this.view.manage({ kind: "job", name: state.id, label: state.label, renames: true }));
    return el("div.train-job-title", {}, text, actions);
  }

  /** What came of training the choice of workers, and of asking a teacher. */
  choice() {
    const { who, taught } = this.state;
    return Object.entries({ who, taught }).flatMap(([id, sentence]) => (sentence ? [el("p.train-mute", { "data-testid": id }, sentence)] : []));
  }

  /** What it came to, and what can be done with that. */
  outcome() {
    const { outcome, id } = this.state;
    if (!outcome) return [];
    const about = new URLSearchParams({ orchestrator: outcome.orchestrator, pool: outcome.pool });
    const before = new URLSearchParams({ orchestrator: outcome.start, pool: outcome.pool });
    const first = outcome.verdict === "worse" ? [["Run the model before it", `/?${before}`]] : [];
    const links = [...first, ["Run", `/?${about}`], ["Compare", `/compare?tab=suite&job=${encodeURIComponent(id)}`], ["Serve", `/serve?${about}`], ["Publish", `/publish?${about}`]];
    const buttons = links.map(([label, href]) => el("a.page-button", { href }, label));
    const text = el("p", {}, outcome.sentence);
    if (outcome.lacks_own) text.append(" ", el("a.podium-link", { href: `/train?tasks=${encodeURIComponent(outcome.pool)}` }, "Add some"), " by \"Ask in your words\".");
    return [el("div.train-job-outcome", { "data-testid": "outcome", "data-verdict": outcome.verdict }, text, el("div.train-job-actions", {}, ...buttons))];
  }

  /** Why it failed, or what it waits for. */
  trouble() {
    const { state } = this;
    if (state.state === "queued") {
      const box = el(
        "div.train-job-wait", {},
        state.ahead.length ? `After ${state.ahead.join(", ")} in the queue.` : "Nothing runs before it.",
      );
      if (!state.ahead.length) {
        const start = needs(el("button.page-button", { type: "button" }, "Start it now"), "train/start_queue");
        start.addEventListener("click", () => this.view.command({ action: "start_queue" }));
        box.append(start);
      }
      return [box];
    }
    if (state.state === "proposed") {
      return [el("div.train-job-wait", { "data-testid": "proposal" }, `A coding agent proposes this job, and it waits for you. Its reason: ${sentence(state.message)}`)];
    }
    if (state.state === "stopped" && state.message) {
      const box = el("div.train-job-wait", {}, sentence(state.message));
      if (state.code === "max_cost") box.append(...this.raiseCap());
      return [box];
    }
    return [];
  }

  /** The field and the button that let a job go on which has spent its cap. */
  raiseCap() {
    const cap = el("input", { type: "text", inputMode: "decimal", "aria-label": "US dollars that the job may spend in all" });
    const resume = needs(el("button.page-button", { type: "button" }, "Raise and resume"), "train/resume");
    resume.addEventListener("click", () => this.view.command({ action: "resume", job: this.state.id, max_cost: cap.value || "0" }));
    return [el("span.train-job-cap", {}, "$", cap, resume)];
  }

  facts() {
    const { state } = this;
    const { place, memory } = state;
    /** @param {string} key */
    const now = (key) => this.view.curves.columns.last(key);
    const facts = [[state.ended_at ? "Ran on" : "Runs on", describePlace(state), "where"]];
    facts.push([state.ended_at ? "Ran for" : "Running for", place.elapsed_s === null ? "–" : about(place.elapsed_s), "elapsed"]);
    if (state.state === "running") facts.push([
      `${labelStage(place.stage) || "Stage"} ends in`, place.eta_s === null ? "not known yet" : `about ${about(place.eta_s)}`, "eta",
    ]);
    if (place.step_s) facts.push([`${PACES[place.stage] || "A step"} takes`, seconds(place.step_s), "pace"]);
    const last = now("check/correct") ?? now("rollout/correct");
    if (last !== null) facts.push(["Solved", `${Math.round(last * 100)} %`, "solved"]);
    if (now("reward") !== null) facts.push(["Reward", now("reward").toFixed(3), "reward"]);
    else if (now("loss") !== null) facts.push(["Loss", now("loss").toPrecision(3), "loss"]);
    if (now("cost/total")) facts.push(["Spent on workers", dollars(now("cost/total")), "cost"]);
    if (memory) facts.push(["Memory", `${bytes(memory.held)}, ${bytes(memory.available)} free`, "memory"]);
    for (const gpu of memory?.gpus || [])
      facts.push([gpu.name, `${bytes(gpu.used)} of ${bytes(gpu.total)}${gpu.busy === null ? "" : `, ${gpu.busy} % busy`}`, "gpu"]);
    if (state.ended_at) facts.push(["Ended", moment(state.ended_at), "ended"]);
    return facts;
  }
}

/** The bar of the whole job with its stages, and where it is. */
function progress() {
  const line = el("div.train-job-stage");
  const fill = el("i");
  const borders = el("span");
  const bar = el(
    "div.train-job-bar", { role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100", "aria-label": "Training steps" }, fill,
    borders,
  );
  const root = el("div.train-job-progress", {}, line, bar);
  return {
    root,
    /** @param {import("../types").JobView} job */
    set({ place, state, stages, trained }) {
      const percent = Math.round(place.share * 100);
      const where = labelStage(place.stage) || (state === "queued" ? "Not started" : "");
      const many = place.total ? `${count(place.done)} of ${count(place.total)}` : "";
      const next = stages.slice(stages.indexOf(place.stage === "demonstrations" ? stages[0] : place.stage) + 1);
      const then = ["running", "stopping"].includes(state) && next.length ? `then ${next.map(labelStage).join(", ")}` : "";
      line.replaceChildren(
        el("b", {}, [where, state === "done" ? "" : many].filter(Boolean).join(" ") || (state === "running" ? "Starting" : STATES[state])), el("span", {}, then),
        el(
          "span.train-job-percent", {},
          `${percent} % of ${count(place.steps)} ${stages.length === 1 && place.stage === "evaluate" ? "episodes" : "steps"}`,
        ),
      );
      if (state === "done") line.firstChild.textContent = "Finished";
      fill.style.width = `${percent}%`;
      borders.replaceChildren(...trained.slice(1).map(({ before }) => {
        const border = el("u");
        border.style.left = `${(before / place.steps) * 100}%`;
        return border;
      }));
      bar.setAttribute("aria-valuenow", String(percent));
    },
  };
}
