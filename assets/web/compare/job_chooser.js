// Which evaluations the views of the Compare page are about.

import { button } from "../lib/controls.js";
import { count, el, icon } from "../lib/dom.js";
import { ACTIONS } from "../lib/icons.js";
import { all, ask, put } from "./address.js";
import { plural } from "./formats.js";

const REFRESH_MS = 4000;

/** The evaluations that are looked at; without a choice the newest one. */
export class JobChooser {
  /**
   * `onChange()` hears that others are looked at; `housekeeping` renames, deletes and puts back.
   * @param {() => void} onChange
   * @param {import("../lib/housekeeping.js").Housekeeping} housekeeping
   */
  constructor(onChange, housekeeping) {
    this.onChange = onChange;
    this.housekeeping = housekeeping;
    /** @type {string | undefined} */
    this.drawn = undefined;
    this.root = el("section.train-card.compare-jobs", { "aria-label": "Evaluations" });
    setInterval(() => document.visibilityState === "visible" && this.root.offsetParent && this.load(), REFRESH_MS);
  }

  async load() {
    const reply = await ask("jobs");
    const key = JSON.stringify([reply, all("job")]);
    if (key === this.drawn || !reply.ok) return;
    const first = this.drawn === undefined;
    this.drawn = key;
    /** @type {import("../types").EvaluationLine[]} */
    this.jobs = reply.jobs;
    this.draw();
    if (!first) this.onChange();
  }

  /**
   * The label of an orchestrator that some evaluation measured.
   * @param {string} name
   */
  findLabel(name) {
    return (this.jobs || []).map((job) => job.labels[name]).find(Boolean);
  }

  draw() {
    const chosen = all("job");
    const shown = chosen.length ? chosen : this.jobs.filter((job) => job.episodes).slice(0, 1).map((job) => job.id);
    const list = el("div.compare-job-list", { role: "group", "aria-label": "Evaluations" });
    for (const job of this.jobs) list.append(this.entry(job, shown));
    const trash = button("Deleted", () => this.housekeeping.openTrash(["job", "evaluation"]), "page-link");
    trash.dataset.key = "deleted-evaluations";
    const pools = new Set(this.jobs.filter((job) => shown.includes(job.id)).map((job) => job.pool));
    const warning = pools.size > 1
      ? el(
        "p.compare-warn", {},
        `These evaluations ran on different pools (${[...pools].join(", ")}): differences between them are not the orchestrators' alone.`,
      )
      : "";
    this.root.replaceChildren(
      el("header.page-card-line", {}, el("h2", {}, "Evaluations"), trash), this.jobs.length ? list : el("p.train-mute", {}, "None yet. Start one with “New evaluation”."), warning,
    );
  }

  /**
   * @param {import("../types").EvaluationLine} job
   * @param {string[]} shown
   */
  entry(job, shown) {
    const on = shown.includes(job.id);
    const measured = job.episodes
      ? `${count(job.episodes)} ${job.episodes === 1 ? "episode" : "episodes"} · ${plural(job.orchestrators.length, "orchestrator")}`
      : "nothing measured yet";
    const line = el(
      "button.compare-job-job", { type: "button", "aria-pressed": String(on), "data-job": job.id }, el("b", { title: job.id }, job.label),
      el("span", {}, `${measured} · ${job.state}`),
    );
    if (job.message) line.append(el("span.compare-job-message", {}, job.message));
    line.addEventListener("click", () => {
      const next = on ? shown.filter((key) => key !== job.id) : [...shown, job.id];
      put({ job: next });
      this.drawn = "";
      this.load();
    });
    const manage = button("", () => this.housekeeping.open({
      kind: job.measures ? "job" : "evaluation", name: job.id, label: job.label, renames: job.measures,
    }), "compare-job-manage");
    manage.dataset.key = `manage-${job.id}`;
    manage.setAttribute("aria-label", `Rename or delete ${job.label}`);
    manage.append(icon(ACTIONS.pencil));
    return el("div.compare-job", {}, line, manage);
  }
}
