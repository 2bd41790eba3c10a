// The Compare page: who is compared, on top; below it one query, suites, training, pool conditions and ablations.
// Everything that is chosen lives in the address: a link shows the same.

import { el } from "./dom.js";
import { AblationView, MatrixView } from "./compare_pools.js";
import { EvaluationForm } from "./compare_evaluate.js";
import { Picker } from "./compare_picker.js";
import { QueryView } from "./compare_query.js";
import { JobChooser, SuiteView } from "./compare_suite.js";
import { all, one, put } from "./compare_state.js";
import { TrainingView } from "./compare_training.js";

const TABS = [["query", "One query"], ["suite", "Suite"], ["training", "Training"], ["matrix", "Generalization"], ["ablation", "Ablate the pool"]];
const MEASURED = ["suite", "matrix", "ablation"]; // tabs that are about evaluations

export function mount(root, send) {
  new ComparePage(root, send).start();
}

class ComparePage {
  constructor(root, send) {
    this.send = send;
    this.labels = new Map();
    this.picker = new Picker((names) => this.choose(names));
    this.tabs = el("div", "jv-tabs cp-tabs", null, { role: "tablist", "aria-label": "What is compared" });
    this.toast = el("div", "pp-toast", null, { role: "status" });
    this.jobs = new JobChooser(() => this.refresh());
    this.form = new EvaluationForm(this);
    this.views = { query: new QueryView(this), suite: new SuiteView(this), training: new TrainingView(this), matrix: new MatrixView(this), ablation: new AblationView(this) };
    this.measured = el("div", "cp-measured");
    this.measured.append(this.jobs.root, this.form.root);
    const page = el("div", "cp");
    page.append(heading(), this.picker.root, this.tabs, this.measured, this.toast);
    root.replaceChildren(page);
    this.drawTabs(page);
  }

  async start() {
    this.select(TABS.some(([name]) => name === one("tab")) ? one("tab") : "query", false);
    if (!(await this.loadPool(one("pool")))) return;
    this.views.query.build(this.told);
    this.form.build(this.told);
    this.ready = true;
    this.show();
    addEventListener("popstate", () => this.select(one("tab") || "query"));
  }

  /** Who can be compared on a pool; false when that cannot be told. */
  async loadPool(pool) {
    const told = await this.ask({ action: "open", pool });
    if (!told.ok) {
      this.say(sentences(told), true);
      return false;
    }
    this.told = told;
    this.labels = new Map(told.orchestrators.map((each) => [each.name, each.label]));
    if (!all("o").length) put({ o: told.begins });
    this.picker.build(told, all("o"));
    return true;
  }

  async choosePool(pool) {
    put({ pool });
    if (await this.loadPool(pool)) this.form.build(this.told);
  }

  /** The name that people read for an orchestrator. */
  label(name) {
    return this.labels.get(name) || name;
  }

  chosen() {
    return all("o");
  }

  choose(names) {
    put({ o: names });
    this.form.follow(names);
  }

  // Tabs

  drawTabs(page) {
    for (const [name, label] of TABS) {
      const tab = el("button", "jv-tab", label, { type: "button", role: "tab", id: `cp-tab-${name}`, "aria-controls": `cp-${name}`, "data-tab": name });
      tab.addEventListener("click", () => this.select(name));
      this.tabs.append(tab);
      const panel = el("div", "cp-panel", null, { role: "tabpanel", id: `cp-${name}`, "aria-labelledby": `cp-tab-${name}` });
      panel.append(this.views[name].root);
      page.append(panel);
    }
    this.tabs.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const at = (TABS.findIndex(([name]) => name === this.tab) + by + TABS.length) % TABS.length;
      this.select(TABS[at][0]);
      this.tabs.children[at].focus();
    });
  }

  select(name, show = true) {
    this.tab = name;
    put({ tab: name === "query" ? null : name });
    for (const tab of this.tabs.children) {
      tab.setAttribute("aria-selected", String(tab.dataset.tab === name));
      tab.tabIndex = tab.dataset.tab === name ? 0 : -1;
    }
    for (const [each] of TABS) this.views[each].root.parentNode.hidden = each !== name;
    this.measured.hidden = !MEASURED.includes(name);
    this.picker.root.hidden = name === "training";
    if (show) this.show();
  }

  show() {
    if (!this.ready) return;
    if (MEASURED.includes(this.tab)) this.jobs.load();
    this.views[this.tab].show();
  }

  /** Other jobs or filters were chosen, or an evaluation went on. */
  refresh() {
    if (MEASURED.includes(this.tab)) this.views[this.tab].show(true);
  }

  /** An evaluation was put into the queue: look at it. */
  started(job) {
    put({ job: [job] });
    this.jobs.drawn = "";
    this.jobs.load();
  }

  /** Show the form of a new evaluation with these settings. */
  measure(settings) {
    this.form.open(settings);
  }

  // Commands

  async ask(request) {
    try {
      return await this.send(request);
    } catch (error) {
      return { ok: false, problems: [["", `The studio did not answer: ${error.message || error}`]] };
    }
  }

  /** A command whose answer is told. */
  async act(request) {
    const reply = await this.ask(request);
    if (!reply.ok) this.say(sentences(reply), true);
    else if (reply.said) this.say(reply.said);
    return reply;
  }

  say(text, bad = false) {
    this.toast.textContent = text;
    this.toast.classList.toggle("pp-bad", bad);
    this.toast.classList.add("pp-shown");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.toast.classList.remove("pp-shown"), bad ? 8000 : 3500);
  }
}

export function sentences(reply) {
  const told = reply.problems.map(([key, what]) => (key ? `${key}: ${what}` : what)).join("; ");
  return told ? told[0].toUpperCase() + told.slice(1) : "";
}

function heading() {
  const box = el("header", "pd-heading");
  const words = el("div");
  words.append(el("h1", "", "Compare"), el("p", "", "Which orchestrator is better, why, at what cost, and for which pools."));
  box.append(words);
  return box;
}
