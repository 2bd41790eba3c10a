// The Train page: a recipe with what it needs on the left, the jobs below it, and on the right the recipe's form or
// one job. Which job, tab and step are shown lives in the address.

import { getDocument, sendCommand } from "../lib/api.js";
import { Drawer, busy } from "../lib/controls.js";
import { Housekeeping } from "../lib/housekeeping.js";
import { Toast, plain } from "../lib/reply.js";
import { el, heading, recall, remember } from "../lib/dom.js";
import { JobView } from "./job_view.js";
import { FitCard } from "./fit_card.js";
import { ImproveCard } from "./improve_card.js";
import { JobList } from "./job_list.js";
import { NoticesForm } from "./notices.js";
import { RecipeEditor } from "./recipe_editor.js";
import { StartCard } from "./start_card.js";
import { TasksPanel } from "../tasks/panel.js";
import { HERE, isRented } from "./places.js";

/** @typedef {import("../lib/api.js").Command} Command */
/** @typedef {import("../lib/reply.js").Problem} Problem */
/** @typedef {import("../types").RecipeDocument["recipe"]} Recipe */
/** @typedef {import("../types").JobLine} JobLine */

const CHECK_MS = 350;
const JOBS_MS = 4000;

/** @param {HTMLElement} root */
export function mount(root) {
  new TrainPage(root).start();
}

export class TrainPage {
  /** @param {HTMLElement} root */
  constructor(root) {
    /** @type {Recipe | null} */
    this.recipe = null;
    this.preset = "";
    /** @type {Problem[]} */
    this.problems = [];
    /** @type {JobLine[]} */
    this.jobs = [];
    this.toast = new Toast();
    this.drawer = new Drawer();
    this.housekeeping = new Housekeeping(this.drawer, this.toast, (change) => this.onHousekeeping(change));
    this.view = new JobView((request) => this.act(request), (job) => this.editJob(job), (thing) => this.housekeeping.open(thing));
    this.editor = new RecipeEditor(() => this.onEdit());
    this.fit = new FitCard((request) => this.ask(request), (recipe) => this.replace({ action: "check", recipe }, ""));
    this.card = new StartCard(this);
    this.improve = new ImproveCard(this);
    this.list = new JobList((job) => this.go({ job }), () => this.housekeeping.openTrash(["job", "checkpoint", "evaluation"]));
    this.tasks = new TasksPanel(this);
    const side = (this.side = el("aside.train-side", { "aria-label": "Recipe and jobs" }));
    side.append(this.card.root, this.improve.root, this.list.root, new NoticesForm(this.drawer, this.toast).opener);
    const grid = el("div.train-grid", {}, side, el("div.train-main", {}, this.tasks.root, this.editor.root, this.view.root));
    const page = el(
      "div.page-body.train-page", {},
      heading("Train", "Teach a small model to plan your kind of question. It imitates good runs (SFT), prefers the better of two (DPO), or tries for itself (GRPO)."), grid,
      this.drawer.node, this.toast.node,
    );
    root.replaceChildren(page);
    this.tasks.root.hidden = this.editor.root.hidden = this.view.root.hidden = true;
  }

  async start() {
    addEventListener("popstate", () => this.route());
    const jobs = this.loadJobs();
    const reply = await this.ask({ action: "open" });
    if (!reply.ok) return this.toast.say(plain(reply.problems), true);
    /** @type {import("../types").PresetDocument[]} */
    this.presets = reply.presets;
    this.preset = reply.preset;
    /** @type {string[]} */
    this.pools = reply.pools;
    /** @type {Record<string, any>} */
    this.schema = reply.schema;
    this.editor.build(reply.schema, reply.pools);
    this.card.build();
    this.take(reply);
    const pool = recall("tasks");
    if (pool) await this.replace({ action: "of_pool", name: pool }, "");
    else this.check();
    await jobs;
    if (!recall("job") && !recall("new") && !pool) this.pick();
    this.route();
    setInterval(() => document.visibilityState === "visible" && this.loadJobs(), JOBS_MS);
    return null;
  }

  /** Without an address of its own the page shows the job that runs, or the last one. */
  pick() {
    const job = this.jobs.find((candidate) => ["running", "stopping"].includes(candidate.state)) || this.jobs[0];
    if (job) remember("job", job.id);
  }

  route() {
    const job = recall("job");
    this.view.root.hidden = !job;
    this.tasks.root.hidden = this.editor.root.hidden = Boolean(job);
    if (job) this.view.show(job);
    if (recall("new")) this.editor.fold(false);
    this.side.classList.toggle("train-watching", Boolean(job));
    this.drawJobs();
    this.card.edit.setAttribute("aria-pressed", String(!job));
  }

  /** @param {Record<string, string>} values */
  go(values) {
    const url = new URL(location.href);
    url.search = "";
    for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value);
    history.pushState(null, "", url);
    this.route();
  }

  // Commands

  /** @param {Command} request */
  ask(request) {
    return sendCommand("train", request);
  }

  /** @param {Command} request */
  async act(request) {
    const reply = await this.ask(request);
    this.toast.say(reply.ok ? reply.message : plain(reply.problems), !reply.ok);
    await this.loadJobs();
    return reply;
  }

  // The recipe

  /** Something was typed: ask the server what it thinks, once the typing pauses. */
  onEdit() {
    this.checked = false;
    this.card.drawButton();
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.check(), CHECK_MS);
  }

  async check() {
    const request = (this.request = Symbol());
    const reply = await this.ask({ action: "check", preset: this.preset, ...this.editor.draft() });
    if (request !== this.request) return;
    if (reply.ok) this.take(reply, this.editor.typed || "form");
    else this.refuse(reply.problems);
  }

  /**
   * The server's reading of the recipe, and what it lacks.
   * @param {import("../types").RecipeDocument} reply
   * @param {"form" | "yaml" | null} typedIn
   */
  take(reply, typedIn = null) {
    this.recipe = reply.recipe;
    this.text = reply.yaml;
    this.command = reply.command;
    this.file = reply.file;
    this.missing = reply.missing || [];
    this.busy = reply.busy;
    this.problems = [];
    this.checked = reply.missing !== null;
    this.editor.take(reply, typedIn);
    this.card.draw();
    this.improve.show(this.recipe.pool);
    this.tasks.show(this.recipe, this.pools);
    const elsewhere = (this.recipe.where || HERE) !== HERE;
    this.fit.root.hidden = elsewhere; // it estimates for this machine
    if (this.checked && !elsewhere) this.fit.estimate(this.recipe, this.missing);
  }

  /** @param {Problem[]} problems */
  refuse(problems) {
    this.problems = problems;
    this.checked = true;
    this.editor.show(problems);
    this.fit.withdraw();
    this.card.draw();
  }

  /** @param {string} name */
  async choose(name) {
    await this.replace({ action: "preset", name }, name);
  }

  /** @param {string} job */
  async editJob(job) {
    if (await this.replace({ action: "of_job", job }, "")) this.go({ new: "1" });
  }

  /**
   * Take another recipe in place of this one; false when there is none.
   * @param {Command} request
   * @param {string} preset
   */
  async replace(request, preset) {
    const reply = await this.ask(request);
    if (!reply.ok) {
      this.toast.say(plain(reply.problems), true);
      return false;
    }
    clearTimeout(this.waiting);
    this.request = null; // what the server thinks of the recipe before comes too late
    this.preset = preset;
    this.editor.typed = null;
    this.take(reply);
    return true;
  }

  /**
   * Take another source of tasks; the own tasks of another pool bring the recipe for it.
   * @param {string} source
   */
  async chooseTasks(source) {
    const pool = source.startsWith("practice:") ? source.slice("practice:".length) : "";
    const { recipe } = this;
    const command = pool && pool !== recipe.pool
      ? { action: "of_pool", name: pool }
      : { action: "check", recipe: { ...recipe, tasks: { ...recipe.tasks, source } } };
    await this.replace(command, "");
  }

  /** @param {string} key */
  reveal(key) {
    this.go({ new: "1" });
    this.editor.reveal(key, this.problems);
  }

  async submit() {
    if (this.card.blocked) {
      const first = this.problems[0]?.[0] || this.missing?.find((item) => item.blocks)?.key;
      if (first) this.reveal(first);
      return;
    }
    const rents = isRented(this.recipe.where);
    if (!rents && this.fit.isEstimating) await busy(this.card.button, "Will it fit? …", () => this.fit.settle());
    if (!rents && this.fit.tooLarge && !(await this.card.confirm(this.fit.tooLarge))) return;
    this.sending = true;
    this.card.drawButton();
    const draft = this.editor.draft();
    const reply = (rents && (await this.agreeToRent(draft))) || (await this.ask({ action: "submit", ...draft, agreed: rents }));
    this.sending = false;
    if (reply.declined) this.card.drawButton();
    else if (reply.ok) {
      this.toast.say(reply.message);
      await this.loadJobs();
      this.go({ job: reply.job });
    } else {
      this.refuse(reply.problems);
      this.toast.say("The job was not started.", true);
    }
  }

  /**
   * Show what a rented machine costs. Null when a person agrees, else what kept the job from starting.
   * @param {object} draft
   */
  async agreeToRent(draft) {
    const reply = await this.ask({ action: "rent", ...draft });
    if (!reply.ok) return reply;
    return (await this.card.agree(reply.terms)) ? null : { declined: true };
  }

  // Jobs

  async loadJobs() {
    try {
      const reply = await getDocument("/api/jobs");
      const before = this.busy?.length;
      this.jobs = reply.jobs;
      this.busy = this.jobs.filter((candidate) => ["running", "stopping", "queued"].includes(candidate.state));
      this.view.hear(this.jobs);
      this.drawJobs();
      this.card.drawButton();
      if (this.recipe && before !== this.busy.length) this.improve.show(this.recipe.pool);
    } catch {
      this.toast.say("The studio does not answer; trying again.", true);
    }
  }

  /**
   * A job or a checkpoint was renamed, deleted or put back.
   * @param {{ kind: string, name: string, gone: boolean }} change
   */
  async onHousekeeping({ kind, name, gone }) {
    await this.loadJobs();
    if (kind !== "job") this.view.follow();
    else if (!gone) {
      this.go({ job: name });
      this.view.follow();
    } else if (recall("job") === name) {
      const next = this.jobs[0];
      this.go(next ? { job: next.id } : { new: "1" });
    }
  }

  drawJobs() {
    this.list.draw(this.jobs, recall("job"));
  }
}
