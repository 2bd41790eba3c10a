// One job on the Train page: state, progress, advice in order, and below it curves, rollouts, checkpoints, log and
// recipe. Fed by the job's event stream, which goes on by itself after a lost connection or a restart.

import { copyButton, count, dollars, el, icon, recall, remember, seconds } from "./dom.js";
import { Curves } from "./curves.js";
import { ACTIONS } from "./icons.js";
import { Rollouts } from "./rollouts.js";

const TABS = [["curves", "Curves"], ["rollouts", "Rollouts"], ["checkpoints", "Checkpoints"], ["log", "Log"], ["recipe", "Recipe"]];
const STATES = { queued: "Queued", running: "Running", stopping: "Stopping", stopped: "Stopped", failed: "Failed", done: "Done" };
const STAGES = { demonstrations: "Collecting demonstrations", sft: "SFT", grpo: "GRPO", evaluate: "Evaluation" };
const LEVELS = { alive: ["Alive", ACTIONS.pulse], degenerate: ["Learning", ACTIONS.warn], tuning: ["Tuning", ACTIONS.tune] };
const LOG_CHARS = 60_000;

export class JobView {
  /** `act(request)` sends a command; `edit(job)` opens the recipe of a job for another one. */
  constructor(act, edit) {
    this.act = act;
    this.edit = edit;
    this.job = null;
    this.state = null;
    this.root = el("div", "jv");
    this.notice = el("div", "rv-notice", null, { role: "status" });
    this.head = el("section", "tr-card jv-head", null, { "aria-label": "Job" });
    this.advice = el("ol", "jv-advice", null, { "aria-label": "Advice, most pressing first" });
    this.tabs = el("div", "jv-tabs", null, { role: "tablist", "aria-label": "Job" });
    this.curves = new Curves((step) => this.openRollouts(step));
    this.rollouts = new Rollouts();
    this.checkpoints = el("div", "jv-checkpoints");
    this.log = el("pre", "jv-log", "", { tabindex: "0", "aria-label": "Log" });
    this.recipe = el("div", "jv-recipe");
    this.panels = { curves: this.curves.root, rollouts: this.rollouts.root, checkpoints: this.checkpoints, log: this.log, recipe: this.recipe };
    this.root.append(this.notice, this.head, this.advice, this.tabs);
    this.drawTabs();
  }

  // Which job, which tab

  show(job) {
    if (job === this.job) return;
    this.close();
    this.job = job;
    this.state = null;
    this.head.replaceChildren(el("p", "tr-empty", "Reading the job …"));
    this.advice.replaceChildren();
    this.log.textContent = "";
    this.recipe.replaceChildren();
    this.drawnHead = this.drawnAdvice = this.drawnCheckpoints = null;
    this.curves.clear();
    this.rollouts.clear(job);
    const step = Number(recall("step")) || null;
    if (step) this.rollouts.step = step;
    this.select(TABS.some(([name]) => name === recall("tab")) ? recall("tab") : "curves");
    this.follow();
  }

  follow() {
    this.stream?.close();
    const stream = (this.stream = new EventSource(`/api/jobs/${encodeURIComponent(this.job)}/stream`));
    const on = (name, work) => stream.addEventListener(name, (message) => work(JSON.parse(message.data)));
    on("curves", (document) => this.curves.whole(document));
    on("rows", (rows) => this.add(rows));
    on("job", (state) => this.take(state));
    on("log", (told) => this.addLog(told));
    stream.addEventListener("end", () => this.close());
    stream.addEventListener("open", () => this.say(""));
    stream.addEventListener("error", () => {
      if (stream.readyState === EventSource.CLOSED) this.say(`There is no job ${this.job} in this data folder.`);
      else this.say("Connection lost. The job goes on without the page; reconnecting …");
    });
  }

  close() {
    this.stream?.close();
    this.stream = null;
  }

  /** The list says that a job whose stream has ended goes on (it was resumed elsewhere). */
  hear(line) {
    if (line.id === this.job && this.state && !this.stream && line.state !== this.state.state) this.follow();
  }

  say(text) {
    this.notice.textContent = text;
    this.notice.hidden = !text;
    if (text && !this.state) this.head.replaceChildren();
  }

  add(rows) {
    this.curves.add(rows);
    if (this.curves.columns.tooMany) this.follow();
  }

  take(state) {
    this.state = state;
    this.curves.about(state);
    this.drawHead();
    this.drawAdvice();
    this.drawCheckpoints();
    if (this.tab === "rollouts") this.rollouts.refresh(state.rollouts);
    if (this.tab === "recipe" && !this.recipe.childElementCount) this.loadRecipe();
  }

  drawTabs() {
    for (const [name, label] of TABS) {
      const tab = el("button", "jv-tab", label, { type: "button", role: "tab", id: `jv-tab-${name}`, "aria-controls": `jv-${name}`, "data-tab": name });
      tab.addEventListener("click", () => this.select(name));
      this.tabs.append(tab);
      const panel = this.panels[name];
      const box = el("div", "jv-panel", null, { role: "tabpanel", id: `jv-${name}`, "aria-labelledby": `jv-tab-${name}` });
      box.append(panel);
      this.panels[name] = box;
      this.root.append(box);
    }
    this.tabs.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const at = (TABS.findIndex(([name]) => name === this.tab) + by + TABS.length) % TABS.length;
      this.select(TABS[at][0]);
      this.tabs.children[at].focus();
    });
  }

  select(name) {
    this.tab = name;
    remember("tab", name === "curves" ? null : name);
    for (const tab of this.tabs.children) {
      tab.setAttribute("aria-selected", String(tab.dataset.tab === name));
      tab.tabIndex = tab.dataset.tab === name ? 0 : -1;
    }
    for (const [each, panel] of Object.entries(this.panels)) panel.hidden = each !== name;
    if (name === "rollouts") this.rollouts.show(this.rollouts.step);
    if (name === "recipe") this.loadRecipe();
    if (name === "log") this.log.scrollTop = this.log.scrollHeight;
  }

  openRollouts(step) {
    if (!this.state?.rollouts || step <= this.state.sft_steps) return;
    this.rollouts.step = step;
    this.select("rollouts");
    this.tabs.scrollIntoView({ block: "nearest" });
  }

  // Head

  drawHead() {
    const { state } = this;
    const key = JSON.stringify([state.state, state.stage, state.message, state.ahead, state.checkpoints.length, state.title]);
    if (key !== this.drawnHead) {
      this.drawnHead = key;
      this.progress = progress();
      this.figures = el("dl", "su-figures jv-figures");
      this.head.dataset.state = state.state;
      this.head.replaceChildren(this.titleLine(), ...this.trouble(), this.progress.root, this.figures);
    }
    this.progress.set(state);
    this.figures.replaceChildren(...this.facts().map(([name, value, id]) => {
      const pair = el("div");
      pair.append(el("dt", "", name), el("dd", "", value, { "data-figure": id }));
      return pair;
    }));
  }

  titleLine() {
    const { state } = this;
    const box = el("div", "jv-title");
    const text = el("div", "jv-name");
    const line = el("div", "jv-line");
    line.append(el("h2", "", state.id), el("span", "tr-pill", STATES[state.state] || state.state, { "data-state": state.state, "data-testid": "job-state" }));
    text.append(line, el("p", "", state.title || `${state.kind.replaceAll("+", ", then ")} on ${state.pool}`));
    const actions = el("div", "jv-actions");
    const add = (label, path, command, kind = "pp-button") => {
      const node = el("button", kind, null, { type: "button" });
      node.append(icon(path), label);
      node.addEventListener("click", command);
      actions.append(node);
    };
    if (state.can_stop) add(state.state === "queued" ? "Take out of the queue" : "Stop and save", ACTIONS.stop, () => this.act({ action: "stop", job: state.id }));
    if (state.resumable) add("Resume", ACTIONS.again, () => this.command({ action: "resume", job: state.id }), "pp-primary");
    const best = state.checkpoints.find((each) => each.best) || state.checkpoints[0];
    if (best) {
      const run = el("a", state.state === "done" ? "pp-primary" : "pp-button", null, { href: runLink(best.name) });
      run.append(icon(ACTIONS.play), best.best ? "Run the best checkpoint" : "Run the newest checkpoint");
      actions.append(run);
    }
    add("Edit as new recipe", ACTIONS.pencil, () => this.edit(state.id));
    box.append(text, actions);
    return box;
  }

  async command(request) {
    const reply = await this.act(request);
    if (reply.ok) this.follow();
  }

  /** Why it failed, or what it waits for. */
  trouble() {
    const { state } = this;
    if (state.state === "queued") {
      const box = el("div", "jv-wait", state.ahead.length ? `Waits for ${state.ahead.join(", ")}: one job runs at a time.` : "Nothing runs before it.");
      if (!state.ahead.length) {
        const start = el("button", "pp-button", "Start it now", { type: "button" });
        start.addEventListener("click", () => this.command({ action: "start_queue" }));
        box.append(start);
      }
      return [box];
    }
    if (state.state === "stopped" && state.message) return [el("div", "jv-wait", sentence(state.message))];
    return [];
  }

  facts() {
    const { state } = this;
    const { place, memory } = state;
    const now = (key) => this.curves.columns.last(key);
    const facts = [[state.ended_at ? "Ran for" : "Running for", place.elapsed_s === null ? "–" : about(place.elapsed_s), "elapsed"]];
    if (state.state === "running") facts.push([`${STAGES[place.stage] || "Stage"} ends in`, place.eta_s === null ? "not known yet" : `about ${about(place.eta_s)}`, "eta"]);
    if (place.step_s) facts.push(["A step takes", seconds(place.step_s), "pace"]);
    const last = now("check/correct") ?? now("rollout/correct");
    if (last !== null) facts.push(["Solved", `${Math.round(last * 100)} %`, "solved"]);
    if (now("reward") !== null) facts.push(["Reward", now("reward").toFixed(3), "reward"]);
    else if (now("loss") !== null) facts.push(["Loss", now("loss").toPrecision(3), "loss"]);
    if (now("cost/total")) facts.push(["Spent on workers", dollars(now("cost/total")), "cost"]);
    if (memory) facts.push(["Memory", `${bytes(memory.held)}, ${bytes(memory.available)} free`, "memory"]);
    for (const gpu of memory?.gpus || []) facts.push([gpu.name, `${bytes(gpu.used)} of ${bytes(gpu.total)}${gpu.busy === null ? "" : `, ${gpu.busy} % busy`}`, "gpu"]);
    if (state.ended_at) facts.push(["Ended", moment(state.ended_at), "ended"]);
    return facts;
  }

  drawAdvice() {
    const key = JSON.stringify(this.state.advice);
    if (key === this.drawnAdvice) return;
    this.drawnAdvice = key;
    this.advice.replaceChildren(...this.state.advice.map((each) => {
      const [word, path] = LEVELS[each.level];
      const calm = !each.alarming && each.level === "alive" ? "calm" : each.alarming ? "alarm" : each.level;
      const entry = el("li", "", null, { "data-level": each.level, "data-kind": calm });
      const text = el("div");
      const first = el("p", "jv-says");
      first.append(el("b", "", word), el("span", "", each.sentence));
      text.append(first);
      if (each.action) text.append(el("p", "jv-do", each.action));
      entry.append(icon(path), text);
      return entry;
    }));
    this.advice.hidden = !this.state.advice.length;
  }

  // Panels

  drawCheckpoints() {
    const { state } = this;
    const key = JSON.stringify([state.checkpoints, state.evaluations]);
    if (key === this.drawnCheckpoints) return;
    this.drawnCheckpoints = key;
    const parts = [];
    if (!state.checkpoints.length) parts.push(el("p", "tr-empty", "No checkpoint yet. The first comes after saving.every steps, and when you stop the job."));
    else parts.push(checkpointTable(state.checkpoints));
    if (state.evaluations.length) parts.push(el("h3", "jv-sub", "Evaluation on tasks that no training has seen"), evaluationTable(state.evaluations));
    this.checkpoints.replaceChildren(...parts);
  }

  addLog({ text, whole, cut }) {
    const stays = this.log.scrollTop + this.log.clientHeight >= this.log.scrollHeight - 30;
    const before = whole ? (cut ? "… (the beginning is in the job's log.txt)\n" : "") : this.log.textContent;
    this.log.textContent = (before + text).slice(-LOG_CHARS);
    if (stays || whole) this.log.scrollTop = this.log.scrollHeight;
  }

  async loadRecipe() {
    const asked = this.job;
    try {
      const told = await (await fetch(`/api/jobs/${encodeURIComponent(asked)}`)).json();
      if (asked !== this.job) return;
      const bar = el("div", "rc-bar");
      bar.append(copyButton(told.recipe, "Copy YAML"), el("span", "tr-mute", "as it was submitted"));
      this.recipe.replaceChildren(bar, el("pre", "jv-yaml", told.recipe || "The recipe's file is gone.", { tabindex: "0", "aria-label": "Recipe as YAML" }));
    } catch {
      this.recipe.replaceChildren(el("p", "tr-empty", "The studio does not answer."));
    }
  }
}

/** The bar of the whole job with its stages, and where it is. */
function progress() {
  const root = el("div", "jv-progress");
  const said = el("div", "jv-stage");
  const bar = el("div", "jv-bar", null, { role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100", "aria-label": "Training steps" });
  const fill = el("i");
  const border = el("u");
  bar.append(fill, border);
  root.append(said, bar);
  return {
    root,
    set({ place, state, stages, sft_steps: sft }) {
      const percent = Math.round(place.share * 100);
      const where = STAGES[place.stage] || (state === "queued" ? "Not started" : "");
      const many = place.total ? `${count(place.done)} of ${count(place.total)}` : "";
      const next = stages.slice(stages.indexOf(place.stage === "demonstrations" ? "sft" : place.stage) + 1);
      const then = ["running", "stopping"].includes(state) && next.length ? `then ${next.map((each) => STAGES[each]).join(", ")}` : "";
      said.replaceChildren(el("b", "", [where, state === "done" ? "" : many].filter(Boolean).join(" ") || "Done"), el("span", "", then), el("span", "jv-percent", `${percent} % of ${count(place.steps)} ${stages.length === 1 && place.stage === "evaluate" ? "episodes" : "steps"}`));
      if (state === "done") said.firstChild.textContent = "Finished";
      fill.style.width = `${percent}%`;
      border.style.left = sft && place.steps > sft ? `${(sft / place.steps) * 100}%` : "-4px";
      bar.setAttribute("aria-valuenow", String(percent));
    },
  };
}

function checkpointTable(checkpoints) {
  const { frame, body } = table(["Checkpoint", "Solved on validation", "Valid turns", "Tested", "Saved", ""]);
  for (const each of checkpoints) {
    const name = el("span", "jv-checkpoint");
    const first = el("span");
    first.append(el("code", "", each.name));
    if (each.best) first.append(el("span", "pp-tag", "best"));
    const kind = each.kind === "adapter" ? "adapter" : "whole model";
    name.append(first, el("small", "", `${STAGES[each.stage] || each.stage}, step ${count(each.step)} · ${kind}, ${bytes(each.bytes)}`));
    const run = el("a", "pp-button jv-run", null, { href: runLink(each.name), "aria-label": `Run it: ${each.name}` });
    run.append(icon(ACTIONS.play), "Run it");
    const publish = el("a", "pd-link", "Publish", { href: `/publish?orchestrator=${encodeURIComponent(each.name)}`, "aria-label": `Publish ${each.name}` });
    const doing = el("span", "jv-doing");
    doing.append(run, publish);
    const tested = each.evaluation ? `${share(each.evaluation.mean)} of ${each.evaluation.tasks}` : "–";
    line(body, [["Checkpoint", name], ["Solved", share(each.correct)], ["Valid turns", share(each.valid_turns)], ["Tested", tested], ["Saved", moment(each.created_at)], ["", doing]]);
  }
  return frame;
}

function evaluationTable(evaluations) {
  const { frame, body } = table(["Orchestrator", "Solved", "95 % interval", "Tasks", "Median time", "By task"]);
  for (const each of evaluations) {
    const cells = el("span", "jv-cells");
    for (const cell of each.cells) cells.append(el("span", "", `${cell.family} ${cell.level} · ${share(cell.mean)}`));
    line(body, [["Orchestrator", el("code", "", !each.condition || each.condition === "seen" ? each.orchestrator : `${each.orchestrator}, ${each.condition}`)], ["Solved", share(each.mean)], ["95 %", `${share(each.interval[0])} to ${share(each.interval[1])}`], ["Tasks", count(each.tasks)], ["Median time", seconds(each.p50_s)], ["By task", cells]]);
  }
  return frame;
}

function table(names) {
  const frame = el("div", "tp-frame", null, { tabindex: "0", role: "group", "aria-label": names[0] });
  const node = el("table", "tp-table jv-table");
  const head = el("thead");
  const row = el("tr");
  for (const name of names) row.append(name ? el("th", "", name, { scope: "col" }) : el("td"));
  head.append(row);
  const body = el("tbody");
  node.append(head, body);
  frame.append(node);
  return { frame, body };
}

function line(body, cells) {
  const row = el("tr");
  for (const [name, content] of cells) {
    const cell = el("td", "", null, { "data-name": name });
    cell.append(content);
    row.append(cell);
  }
  body.append(row);
}

export function runLink(name) {
  return `/?orchestrator=${encodeURIComponent(name)}`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${size.toFixed(size < 10 && unit > 0 ? 1 : 0)} ${units[unit]}`;
}

function moment(iso) {
  return iso ? new Date(iso).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "–";
}

function share(value) {
  return value === null || value === undefined ? "–" : `${Math.round(value * 100)} %`;
}

/** A long time as people say it. */
export function about(value) {
  if (value < 90) return `${Math.max(1, Math.round(value))} s`;
  if (value < 5400) return `${Math.round(value / 60)} min`;
  return value < 172_800 ? `${(value / 3600).toFixed(1)} h` : `${(value / 86_400).toFixed(1)} days`;
}

export function sentence(text) {
  return text[0].toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");
}
