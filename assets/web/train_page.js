// The Train page: a recipe with what it needs on the left, the jobs below it, and on the right the recipe's form or
// one job. Which job, tab and step are shown lives in the address.

import { copyButton, count, dollars, el, icon, recall, remember } from "./dom.js";
import { ACTIONS } from "./icons.js";
import { JobView, about, bytes, sentence } from "./job_view.js";
import { RecipeForm } from "./recipe_form.js";

const CHECK_MS = 350;
const FIT_MS = 900;
const JOBS_MS = 4000;
const STAGES = { sft: "SFT", grpo: "GRPO", evaluate: "Evaluate" };
const TINY = "The tiny model knows only the starter pool, by heart: it plans ledger, atlas, forge and itinerary tasks and nothing else. It cannot read another pool, chat, or answer from knowledge; for that choose starter:smollm2 or a model of the hub.";

export function mount(root, send) {
  new TrainPage(root, send).start();
}

class TrainPage {
  constructor(root, send) {
    this.send = send;
    this.recipe = null;
    this.preset = "";
    this.problems = [];
    this.jobs = [];
    this.view = new JobView((request) => this.act(request), (job) => this.editJob(job));
    this.editor = el("section", "tr-card rc", null, { "aria-label": "Recipe" });
    this.main = el("div", "tr-main");
    this.start_ = el("section", "tr-card tr-start", null, { "aria-label": "New job" });
    this.list = el("section", "tr-card tr-jobs", null, { "aria-label": "Jobs" });
    this.toast = el("div", "pp-toast", null, { role: "status" });
    const side = (this.side = el("aside", "tr-side", null, { "aria-label": "Recipe and jobs" }));
    side.append(this.start_, this.list);
    const grid = el("div", "tr-grid");
    grid.append(side, this.main);
    const page = el("div", "tr");
    page.append(heading(), grid, this.toast);
    root.replaceChildren(page);
    this.main.append(this.editor, this.view.root);
    this.editor.hidden = this.view.root.hidden = true;
  }

  async start() {
    addEventListener("popstate", () => this.route());
    const jobs = this.loadJobs();
    const told = await this.ask({ action: "open" });
    if (!told.ok) return this.say(told.problems.map(([, what]) => what).join("; "), true);
    this.presets = told.presets;
    this.preset = told.preset;
    this.form = new RecipeForm(told.schema, told.pools, () => this.edited("form"));
    this.buildEditor();
    this.buildStart();
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
    this.editor.hidden = Boolean(job);
    if (job) this.view.show(job);
    this.side.classList.toggle("tr-watching", Boolean(job));
    this.drawJobs();
    this.edit.setAttribute("aria-pressed", String(!job));
  }

  go(values) {
    const url = new URL(location.href);
    url.search = "";
    for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value);
    history.pushState(null, "", url);
    this.route();
  }

  // Commands

  async ask(request) {
    try {
      return await this.send(request);
    } catch (error) {
      return { ok: false, problems: [["", `The studio did not answer: ${error.message || error}`]] };
    }
  }

  async act(request) {
    const reply = await this.ask(request);
    this.say(reply.ok ? reply.said : reply.problems.map(([, what]) => what).join("; "), !reply.ok);
    await this.loadJobs();
    return reply;
  }

  say(text, bad = false) {
    if (!text) return;
    this.toast.textContent = text;
    this.toast.classList.toggle("pp-bad", bad);
    this.toast.classList.add("pp-shown");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.toast.classList.remove("pp-shown"), bad ? 8000 : 3500);
  }

  // The recipe

  buildEditor() {
    const head = el("header", "rc-head");
    const text = el("div");
    text.append(el("h2", "", "Recipe"), el("p", "tr-mute", "Everything about a job. Each field shows its key in the YAML."));
    this.ways = el("div", "pp-chips", null, { role: "group", "aria-label": "Edit as" });
    for (const [name, label] of [["form", "Form"], ["yaml", "YAML"]]) {
      const chip = el("button", "pp-chip", label, { type: "button", "data-way": name });
      chip.addEventListener("click", () => this.setWay(name));
      this.ways.append(chip);
    }
    head.append(text, this.ways);
    this.wrong = el("ul", "pp-problems rc-problems", null, { role: "alert" });
    this.yaml = el("textarea", "rc-yaml", null, { "aria-label": "Recipe as YAML", spellcheck: "false", autocomplete: "off", wrap: "off" });
    this.yaml.addEventListener("input", () => this.edited("yaml"));
    this.editor.replaceChildren(head, this.wrong, this.form.root, this.yaml);
    this.setWay("form");
  }

  setWay(name) {
    this.way = name;
    this.form.root.hidden = name !== "form";
    this.yaml.hidden = name !== "yaml";
    for (const chip of this.ways.children) chip.setAttribute("aria-pressed", String(chip.dataset.way === name));
    if (name === "yaml") this.yaml.rows = Math.max(24, this.yaml.value.split("\n").length + 1);
  }

  /** Something was typed: ask the server what it thinks, once the typing pauses. */
  edited(way) {
    this.source = way;
    this.checked = false;
    this.drawButton();
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.check(), CHECK_MS);
  }

  draft() {
    if (!this.source) return { recipe: this.recipe };
    return this.source === "yaml" ? { yaml: this.yaml.value } : { recipe: this.form.read() };
  }

  async check() {
    const asked = (this.asked = Symbol());
    const reply = await this.ask({ action: "check", preset: this.preset, ...this.draft() });
    if (asked !== this.asked) return;
    if (reply.ok) this.take(reply, this.source || "form");
    else this.refuse(reply.problems);
  }

  /** The server's reading of the recipe. What is being typed in is left alone. */
  take(told, typedIn = null) {
    this.recipe = told.recipe;
    this.command = told.command;
    this.file = told.file;
    this.missing = told.missing || [];
    this.busy = told.busy;
    this.problems = [];
    this.checked = told.missing !== null;
    if (typedIn !== "form") this.form.set(told.recipe);
    if (typedIn !== "yaml") this.yaml.value = told.yaml;
    this.text = told.yaml;
    this.showProblems([]);
    this.drawStart();
    if (this.checked) this.estimate();
  }

  refuse(problems) {
    this.problems = problems;
    this.checked = true;
    this.showProblems(problems);
    this.drawStart();
  }

  showProblems(problems) {
    const left = this.source === "yaml" ? problems : this.form.show(problems);
    this.wrong.replaceChildren(...left.map(([key, what]) => {
      const entry = el("li");
      if (key) entry.append(el("code", "", key), " ");
      entry.append(what);
      return entry;
    }));
  }

  async choose(name) {
    const reply = await this.ask({ action: "preset", name });
    if (!reply.ok) return this.say(reply.problems.map(([, what]) => what).join("; "), true);
    this.preset = name;
    this.source = null;
    return this.take(reply);
  }

  async editJob(job) {
    const reply = await this.ask({ action: "of_job", job });
    if (!reply.ok) return this.say(reply.problems.map(([, what]) => what).join("; "), true);
    this.preset = "";
    this.source = null;
    this.take(reply);
    return this.go({ new: "1" });
  }

  async estimate() {
    clearTimeout(this.fitting);
    const recipe = JSON.stringify(this.recipe);
    if (recipe === this.fitted) return;
    if (this.missing.some((each) => each.key === "model.base" && each.blocks)) {
      this.fitted = null;
      this.fit.replaceChildren(el("h3", "", "Will it fit?"), el("p", "tr-mute", "Known once the model is there."));
      return;
    }
    this.fit.replaceChildren(el("p", "tr-mute", "Will it fit? Estimating …"));
    this.fitting = setTimeout(async () => {
      const reply = await this.ask({ action: "fit", recipe: JSON.parse(recipe) });
      if (JSON.stringify(this.recipe) !== recipe) return;
      this.fitted = recipe;
      this.fit.replaceChildren(...(reply.ok ? fitParts(reply.fit) : [el("h3", "", "Will it fit?"), el("p", "tr-mute", `Cannot be told: ${reply.problems.map(([, what]) => what).join("; ")}`)]));
      this.fit.dataset.fits = reply.ok ? String(reply.fit.fits) : "unknown";
    }, FIT_MS);
  }

  // The start

  buildStart() {
    const picker = el("select", "pp-select tr-preset", null, { "aria-label": "Preset", id: "tr-preset" });
    this.picker = picker;
    picker.addEventListener("change", () => picker.value && this.choose(picker.value));
    this.about = el("div", "tr-about");
    this.edit = el("button", "pp-button tr-edit", null, { type: "button" });
    this.edit.append(icon(ACTIONS.pencil), "Edit the recipe");
    this.edit.addEventListener("click", () => this.go({ new: "1" }));
    this.needs = el("div", "tr-needs", null, { id: "tr-needs" });
    this.fit = el("div", "tr-fit");
    this.button = el("button", "pp-primary tr-go", "Start", { type: "button", "aria-describedby": "tr-needs" });
    this.button.addEventListener("click", () => this.submit());
    this.terminal = el("details", "tr-terminal");
    this.tiny = el("p", "tr-honest", TINY);
    this.start_.replaceChildren(el("h2", "", "New job"), picker, this.about, this.edit, this.fit, this.tiny, this.needs, this.button, this.terminal);
  }

  drawStart() {
    const preset = this.presets.find((each) => each.name === this.preset);
    const edited = !preset || Boolean(this.file);
    this.picker.replaceChildren(
      ...(edited ? [el("option", "", preset ? `${preset.name}, edited` : `${this.recipe.name}, edited`, { value: "" })] : []),
      ...this.presets.map((each) => el("option", "", each.name, { value: each.name })),
    );
    this.picker.value = edited ? "" : preset.name;
    this.drawAbout();
    this.tiny.hidden = this.recipe.model.base !== "starter:tiny";
    this.drawNeeds();
    this.drawButton();
    this.drawTerminal();
  }

  drawAbout() {
    const { recipe } = this;
    const stages = el("div", "tr-stages");
    for (const stage of ["sft", "grpo", "evaluate"]) {
      if (!recipe[stage]) continue;
      const chip = el("span", "tr-stage");
      const steps = recipe[stage].steps;
      chip.append(el("b", "", STAGES[stage]), steps ? `${count(steps)} steps` : `${count(recipe.evaluate.count)} tasks`);
      stages.append(chip);
    }
    const facts = [recipe.model.base, recipe.model.lora ? `adapter of rank ${recipe.model.lora.rank}` : "every weight", `on ${recipe.pool}`];
    this.about.replaceChildren(el("p", "tr-title", recipe.title || recipe.name), stages, el("p", "tr-mute", facts.join(" · ")));
  }

  drawNeeds() {
    const problems = this.problems.map(([key, sentence]) => ({ key, sentence, blocks: true }));
    const all = [...problems, ...(problems.length ? [] : this.missing)];
    const blocking = all.filter((each) => each.blocks);
    const head = el("p", "tr-needs-head");
    if (!this.checked) head.append("Looking for what is missing …");
    else head.append(icon(blocking.length ? ACTIONS.warn : ACTIONS.check), blocking.length ? (blocking.length === 1 ? "One thing is missing" : `${blocking.length} things are missing`) : "Nothing is missing");
    this.needs.dataset.ready = this.checked ? String(!blocking.length) : "unknown";
    const list = el("ul");
    for (const each of all) {
      const entry = el("li", "", null, { "data-blocks": String(each.blocks) });
      if (each.key) {
        const key = el("button", "tr-key", each.key, { type: "button", title: "Show this field" });
        key.addEventListener("click", () => this.reveal(each.key));
        entry.append(key);
      }
      entry.append(el("span", "", each.sentence));
      if (each.link) entry.append(el("a", "pd-link", "Open the Pool page", { href: each.link }));
      list.append(entry);
    }
    this.needs.replaceChildren(head, ...(all.length ? [list] : []));
  }

  reveal(key) {
    this.go({ new: "1" });
    if (this.source !== "yaml" || !this.problems.length) this.setWay("form");
    requestAnimationFrame(() => this.form.reveal(key));
  }

  drawButton() {
    if (!this.button) return;
    const blocked = this.problems.length || (this.missing || []).filter((each) => each.blocks).length;
    const busy = this.busy?.length;
    const ready = this.checked && !blocked && !this.sending;
    this.button.setAttribute("aria-disabled", String(!ready));
    const label = blocked ? `Cannot start: ${blocked} missing` : busy ? "Add to the queue" : "Start training";
    this.button.replaceChildren(icon(blocked ? ACTIONS.warn : ACTIONS.play), label);
  }

  drawTerminal() {
    const open = this.terminal.open;
    const command = el("div", "tr-command");
    command.append(el("code", "", this.command), copyButton(() => this.command));
    const yaml = el("div", "tr-yaml-line");
    yaml.append(copyButton(() => this.text, "Copy YAML"));
    const save = el("button", "pd-link", `Save ${this.recipe.name}.yaml`, { type: "button" });
    save.addEventListener("click", () => download(`${this.recipe.name}.yaml`, this.text));
    yaml.append(save);
    const note = this.file ? el("p", "tr-mute", `Save the YAML as ${this.file} first.`) : "";
    this.terminal.replaceChildren(el("summary", "", "In a terminal"), command, note, yaml);
    this.terminal.open = open || this.terminal.dataset.drawn !== "1";
    this.terminal.dataset.drawn = "1";
  }

  async submit() {
    if (this.button.getAttribute("aria-disabled") === "true") {
      const first = this.problems[0]?.[0] || this.missing?.find((each) => each.blocks)?.key;
      if (first) this.reveal(first);
      return;
    }
    this.sending = true;
    this.drawButton();
    const reply = await this.ask({ action: "submit", ...this.draft() });
    this.sending = false;
    if (reply.ok) {
      this.say(reply.said);
      await this.loadJobs();
      this.go({ job: reply.job });
    } else {
      this.refuse(reply.problems);
      this.say("Nothing was started.", true);
    }
  }

  // Jobs

  async loadJobs() {
    try {
      const told = await (await fetch("/api/jobs")).json();
      this.jobs = told.jobs;
      this.busy = this.jobs.filter((each) => ["running", "stopping", "queued"].includes(each.state));
      for (const job of this.jobs) this.view.hear(job);
      this.drawJobs();
      this.drawButton();
    } catch {
      this.say("The studio does not answer; trying again.", true);
    }
  }

  drawJobs() {
    const shown = recall("job");
    const key = JSON.stringify([this.jobs, shown]);
    if (key === this.drawnJobs) return;
    this.drawnJobs = key;
    const entries = this.jobs.map((job) => jobLine(job, job.id === shown, () => this.go({ job: job.id })));
    const body = entries.length ? el("div", "tr-list") : el("p", "tr-mute", "No job yet. A job runs on its own: it goes on when the page or the studio is closed.");
    if (entries.length) body.append(...entries);
    this.list.replaceChildren(el("h2", "", "Jobs"), body);
  }
}

function heading() {
  const box = el("header", "pd-heading");
  const text = el("div");
  text.append(el("h1", "", "Train"), el("p", "", "Teach a small model to orchestrate your pool: imitate good runs (SFT), then improve by trying (GRPO)."));
  box.append(text);
  return box;
}

function jobLine(job, shown, work) {
  const link = el("a", "tr-job", null, { href: `/train?job=${encodeURIComponent(job.id)}`, "data-job": job.id });
  if (shown) link.setAttribute("aria-current", "true");
  link.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    work();
  });
  const active = ["running", "stopping"].includes(job.state);
  const line = el("span", "tr-job-line");
  line.append(el("b", "", job.id), el("span", "tr-pill", job.state, { "data-state": job.state }));
  const passed = (Date.now() - Date.parse(job.ended_at || job.started_at || job.created_at)) / 1000;
  const when = active ? `${STAGES[job.stage] || "starting"}, for ${about(passed)}` : `${job.kind.replaceAll("+", ", ")} · ${passed < 60 ? "just now" : `${about(passed)} ago`}`;
  link.append(line, el("span", "tr-job-about", when));
  if (active) {
    const bar = el("span", "tr-job-bar");
    const fill = el("i");
    fill.style.width = `${job.steps ? Math.min(100, (job.step / job.steps) * 100) : 0}%`;
    bar.append(fill);
    link.append(bar);
  }
  return link;
}

/** "Will it fit?": what each part takes, against what is free. */
function fitParts(fit) {
  const head = el("div", "tr-fit-head");
  head.append(el("h3", "", "Will it fit?"), el("span", "tr-fit-verdict", fit.fits ? "Yes" : "No", { "data-fits": String(fit.fits) }));
  const whole = Math.max(fit.need_bytes, fit.free_bytes, 1);
  const said = `${bytes(fit.need_bytes)} needed, ${bytes(fit.free_bytes)} free on ${fit.device}`;
  const bar = el("div", "tr-fit-bar", null, { role: "img", "aria-label": said });
  const list = el("ul", "tr-fit-list");
  fit.parts.filter((part) => part.bytes > 0).forEach((part, place) => {
    const piece = el("i");
    piece.style.width = `${(part.bytes / whole) * 100}%`;
    piece.style.background = `var(--tr-${(place % 8) + 1})`;
    bar.append(piece);
    const entry = el("li", "", null, { title: part.note });
    const dot = el("i");
    dot.style.background = `var(--tr-${(place % 8) + 1})`;
    entry.append(dot, el("span", "", part.name), el("b", "", bytes(part.bytes)));
    list.append(entry);
  });
  const free = el("u");
  free.style.left = `${Math.min(100, (fit.free_bytes / whole) * 100)}%`;
  bar.append(free);
  const advice = fit.advice.map((text) => el("p", "tr-fit-advice", sentence(text), { "data-fits": String(fit.fits) }));
  const work = [`${count(fit.episodes)} episodes`, fit.cost === null ? "" : `about ${dollars(fit.cost)} for workers`].filter(Boolean).join(", ");
  const more = el("details", "tr-fit-more");
  more.append(el("summary", "", "What takes how much"), list, el("p", "tr-mute", fit.note ? sentence(fit.note) : ""));
  more.open = !fit.fits;
  return [head, el("p", "tr-fit-said", `${said}. ${work}.`), bar, ...advice, more];
}

function download(name, text) {
  const link = el("a", "", null, { href: URL.createObjectURL(new Blob([text], { type: "text/yaml" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
