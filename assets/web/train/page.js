// The Train page: a recipe with what it needs on the left, the jobs below it, and on the right the recipe's form or
// one job. Which job, tab and step are shown lives in the address.

import { getDocument, sendCommand } from "../lib/api.js";
import { Toast, plain } from "../lib/reply.js";
import { el, heading, recall, remember } from "../lib/dom.js";
import { JobView } from "./job_view.js";
import { FitCard } from "./fit_card.js";
import { JobList } from "./job_list.js";
import { RecipeEditor } from "./recipe_editor.js";
import { StartCard } from "./start_card.js";

const CHECK_MS = 350;
const JOBS_MS = 4000;

export function mount(root) {
  new TrainPage(root).start();
}

class TrainPage {
  constructor(root) {
    this.recipe = null;
    this.preset = "";
    this.problems = [];
    this.jobs = [];
    this.view = new JobView((request) => this.act(request), (job) => this.editJob(job));
    this.editor = new RecipeEditor(() => this.edited());
    this.fit = new FitCard((request) => this.ask(request));
    this.card = new StartCard(this);
    this.list = new JobList((job) => this.go({ job }));
    this.toast = new Toast();
    const side = (this.side = el("aside.train-side", { "aria-label": "Recipe and jobs" }));
    side.append(this.card.root, this.list.root);
    const grid = el("div.train-grid", {}, side, el("div.train-main", {}, this.editor.root, this.view.root));
    const page = el("div.train-page", {}, heading("Train", "Teach a small model to orchestrate your pool: imitate good runs (SFT), then improve by trying (GRPO)."), grid, this.toast.node);
    root.replaceChildren(page);
    this.editor.root.hidden = this.view.root.hidden = true;
  }

  async start() {
    addEventListener("popstate", () => this.route());
    const jobs = this.loadJobs();
    const told = await this.ask({ action: "open" });
    if (!told.ok) return this.toast.say(plain(told.problems), true);
    this.presets = told.presets;
    this.preset = told.preset;
    this.editor.build(told.schema, told.pools);
    this.card.build();
    this.take(told);
    this.check();
    await jobs;
    if (!recall("job") && !recall("new")) this.pick();
    this.route();
    setInterval(() => document.visibilityState === "visible" && this.loadJobs(), JOBS_MS);
    return null;
  }

  /** Without an address of its own the page shows the job that runs, or the last one. */
  pick() {
    const job = this.jobs.find((each) => ["running", "stopping"].includes(each.state)) || this.jobs[0];
    if (job) remember("job", job.id);
  }

  route() {
    const job = recall("job");
    this.view.root.hidden = !job;
    this.editor.root.hidden = Boolean(job);
    if (job) this.view.show(job);
    this.side.classList.toggle("train-watching", Boolean(job));
    this.drawJobs();
    this.card.edit.setAttribute("aria-pressed", String(!job));
  }

  go(values) {
    const url = new URL(location.href);
    url.search = "";
    for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value);
    history.pushState(null, "", url);
    this.route();
  }

  // Commands

  ask(request) {
    return sendCommand("train", request);
  }

  async act(request) {
    const reply = await this.ask(request);
    this.toast.say(reply.ok ? reply.message : plain(reply.problems), !reply.ok);
    await this.loadJobs();
    return reply;
  }

  // The recipe

  /** Something was typed: ask the server what it thinks, once the typing pauses. */
  edited() {
    this.checked = false;
    this.card.drawButton();
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.check(), CHECK_MS);
  }

  async check() {
    const asked = (this.asked = Symbol());
    const reply = await this.ask({ action: "check", preset: this.preset, ...this.editor.draft() });
    if (asked !== this.asked) return;
    if (reply.ok) this.take(reply, this.editor.typed || "form");
    else this.refuse(reply.problems);
  }

  /** The server's reading of the recipe, and what it lacks. */
  take(told, typedIn = null) {
    this.recipe = told.recipe;
    this.text = told.yaml;
    this.command = told.command;
    this.file = told.file;
    this.missing = told.missing || [];
    this.busy = told.busy;
    this.problems = [];
    this.checked = told.missing !== null;
    this.editor.take(told, typedIn);
    this.card.draw();
    if (this.checked) this.fit.estimate(this.recipe, this.missing);
  }

  refuse(problems) {
    this.problems = problems;
    this.checked = true;
    this.editor.show(problems);
    this.card.draw();
  }

  async choose(name) {
    await this.replace({ action: "preset", name }, name);
  }

  async editJob(job) {
    if (await this.replace({ action: "of_job", job }, "")) this.go({ new: "1" });
  }

  /** Take another recipe in place of this one; false when there is none. */
  async replace(request, preset) {
    const reply = await this.ask(request);
    if (!reply.ok) {
      this.toast.say(plain(reply.problems), true);
      return false;
    }
    this.preset = preset;
    this.editor.typed = null;
    this.take(reply);
    return true;
  }

  reveal(key) {
    this.go({ new: "1" });
    this.editor.reveal(key, this.problems);
  }

  async submit() {
    if (this.card.blocked) {
      const first = this.problems[0]?.[0] || this.missing?.find((each) => each.blocks)?.key;
      if (first) this.reveal(first);
      return;
    }
    this.sending = true;
    this.card.drawButton();
    const reply = await this.ask({ action: "submit", ...this.editor.draft() });
    this.sending = false;
    if (reply.ok) {
      this.toast.say(reply.message);
      await this.loadJobs();
      this.go({ job: reply.job });
    } else {
      this.refuse(reply.problems);
      this.toast.say("Nothing was started.", true);
    }
  }

  // Jobs

  async loadJobs() {
    try {
      const told = await getDocument("/api/jobs");
      this.jobs = told.jobs;
      this.busy = this.jobs.filter((each) => ["running", "stopping", "queued"].includes(each.state));
      for (const job of this.jobs) this.view.hear(job);
      this.drawJobs();
      this.card.drawButton();
    } catch {
      this.toast.say("The studio does not answer; trying again.", true);
    }
  }

  drawJobs() {
    this.list.draw(this.jobs, recall("job"));
  }
}
