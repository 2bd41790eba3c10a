// The Compare page: who is compared, on top; below it one query, suites, training, pool conditions and ablations.
// Everything that is chosen lives in the address: a link shows the same.

import { sendCommand } from "../lib/api.js";
import { Drawer } from "../lib/controls.js";
import { Housekeeping } from "../lib/housekeeping.js";
import { Toast } from "../lib/reply.js";
import { el, heading } from "../lib/dom.js";
import { AblationView, MatrixView } from "./conditions.js";
import { EvaluationForm } from "./evaluation_form.js";
import { Picker } from "./picker.js";
import { QueryView } from "./query_view.js";
import { RegradeView } from "./regrade.js";
import { JobChooser } from "./job_chooser.js";
import { SuiteView } from "./suite_view.js";
import { all, one, put } from "./address.js";
import { TrainingView } from "./training_view.js";
import { Tabs } from "../lib/tabs.js";

const TABS =
  [["query", "One query"], ["suite", "Suite"], ["training", "Training"], ["matrix", "Generalization"], ["ablation", "Ablate the pool"],
    ["regrade", "Grade again"]];
const MEASURED = ["suite", "matrix", "ablation", "regrade"]; // tabs that are about evaluations

/** @param {HTMLElement} root */
export function mount(root) {
  new ComparePage(root).start();
}

export class ComparePage {
  /** @param {HTMLElement} root */
  constructor(root) {
    /** @type {Map<string, string>} */
    this.labels = new Map();
    this.picker = new Picker((names) => this.choose(names));
    this.toast = new Toast();
    this.drawer = new Drawer();
    this.housekeeping = new Housekeeping(this.drawer, this.toast, (change) => this.onHousekeeping(change));
    this.jobs = new JobChooser(() => this.refresh(), this.housekeeping);
    this.form = new EvaluationForm(this);
    this.query = new QueryView(this);
    /** @type {Record<string, { root: HTMLElement, show: (again?: boolean) => unknown }>} */
    this.views = {
      query: this.query, suite: new SuiteView(this), training: new TrainingView(this), matrix: new MatrixView(this),
      ablation: new AblationView(this), regrade: new RegradeView(this),
    };
    this.tabs = new Tabs("compare", "What is compared", TABS.map(([name, label]) => [name, label, this.views[name].root]), (name) =>
      this.select(name));
    this.tabs.row.classList.add("compare-tabs");
    this.measured = el("div.compare-measured", {}, this.jobs.root, this.form.root);
    const page = el("div.compare-page", {}, heading("Compare", "Ask several orchestrators the same, and see which is right more often, why, and at what cost."),
      this.picker.root, this.tabs.row, this.measured, this.drawer.node, this.toast.node, ...this.tabs.panels);
    root.replaceChildren(page);
  }

  async start() {
    this.select(this.tabs.has(one("tab")) ? one("tab") : "query", false);
    if (!(await this.loadPool(one("pool")))) return;
    this.query.build(this.reply);
    this.form.build(this.reply);
    this.ready = true;
    this.show();
    addEventListener("popstate", () => this.select(one("tab") || "query"));
  }

  /**
   * Who can be compared on a pool; false when that cannot be told.
   * @param {string} pool
   */
  async loadPool(pool) {
    const reply = await this.ask({ action: "open", pool });
    if (!reply.ok) {
      this.say(sentences(reply), true);
      return false;
    }
    /** @type {import("../types").CompareChoices} */
    this.reply = reply;
    this.labels = new Map(this.reply.orchestrators.map((orchestrator) => [orchestrator.name, orchestrator.label]));
    if (!all("o").length) put({ o: reply.begins });
    this.picker.build(reply, all("o"));
    return true;
  }

  /** @param {string} pool */
  async choosePool(pool) {
    put({ pool });
    if (await this.loadPool(pool)) this.form.build(this.reply);
  }

  /**
   * The name that people read for an orchestrator.
   * @param {string} name
   */
  label(name) {
    return this.labels.get(name) || this.jobs.findLabel(name) || name;
  }

  choice() {
    return all("o");
  }

  /** @param {string[]} names */
  choose(names) {
    put({ o: names });
    this.form.follow(names);
  }

  // Tabs

  /**
   * @param {string} name
   * @param {boolean} show
   */
  select(name, show = true) {
    this.tab = name;
    put({ tab: name === "query" ? null : name });
    this.tabs.show(name);
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

  /**
   * An evaluation was put into the queue: look at it.
   * @param {string} job
   */
  showEvaluation(job) {
    put({ job: [job] });
    this.jobs.drawn = "";
    this.jobs.load();
  }

  /**
   * An evaluation was renamed, deleted or put back.
   * @param {{ name: string, gone: boolean }} change
   */
  onHousekeeping({ name, gone }) {
    if (gone) put({ job: all("job").filter((job) => job !== name) });
    this.jobs.drawn = "";
    this.jobs.load();
  }

  /**
   * Show the form of a new evaluation with these settings.
   * @param {import("./evaluation_form.js").Settings} settings
   */
  measure(settings) {
    this.form.open(settings);
  }

  // Commands

  /** @param {import("../lib/api.js").Command} request */
  ask(request) {
    return sendCommand("compare", request);
  }

  /**
   * A command whose answer is told.
   * @param {import("../lib/api.js").Command} request
   */
  async act(request) {
    const reply = await this.ask(request);
    if (!reply.ok) this.say(sentences(reply), true);
    else if (reply.message) this.say(reply.message);
    return reply;
  }

  /**
   * @param {string} text
   * @param {boolean} [bad]
   */
  say(text, bad) {
    this.toast.say(text, bad);
  }
}

/** @param {{ problems: import("../lib/reply.js").Problem[] }} reply */
function sentences(reply) {
  const message = reply.problems.map(([key, what]) => (key ? `${key}: ${what}` : what)).join("; ");
  return message ? message[0].toUpperCase() + message.slice(1) : "";
}
