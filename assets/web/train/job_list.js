// The list of jobs beside a recipe or a job.

import { button } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { about, labelStage } from "./formats.js";
import { HERE, describePlace } from "./places.js";

export class JobList {
  /**
   * `open(job)` shows one of them, `openTrash()` those that were deleted.
   * @param {(job: string) => void} open
   * @param {() => unknown} openTrash
   */
  constructor(open, openTrash) {
    this.open = open;
    this.openTrash = openTrash;
    this.drawn = "";
    this.root = el("section.train-card.train-jobs", { "aria-label": "Jobs" });
  }

  /**
   * @param {import("../types").JobLine[]} jobs
   * @param {string | null} shown
   */
  draw(jobs, shown) {
    const key = JSON.stringify([jobs, shown]);
    if (key === this.drawn) return;
    this.drawn = key;
    const entries = jobs.map((job) => jobLine(job, job.id === shown, () => this.open(job.id)));
    const body = entries.length
      ? el("div.train-list")
      : el("p.train-mute", {}, "No job yet. A job runs on its own: it goes on when the page or the studio is closed.");
    if (entries.length) body.append(...entries);
    const trash = button("Deleted", this.openTrash, "page-link");
    trash.dataset.key = "deleted-jobs";
    this.root.replaceChildren(el("header.page-card-line", {}, el("h2", {}, "Jobs"), trash), body);
  }
}

/**
 * @param {import("../types").JobLine} job
 * @param {boolean} shown
 * @param {() => void} work
 */
function jobLine(job, shown, work) {
  const link = el("a.train-job", { href: `/train?job=${encodeURIComponent(job.id)}`, "data-job": job.id });
  if (shown) link.setAttribute("aria-current", "true");
  link.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    work();
  });
  const active = ["running", "stopping"].includes(job.state);
  const line = el("span.train-jobs-line", {}, el("b", { title: job.id }, job.label), el("span.train-pill", { "data-state": job.state }, job.state));
  const passed = (Date.now() - Date.parse(job.ended_at || job.started_at || job.created_at)) / 1000;
  const when = active
    ? `${labelStage(job.stage) || "starting"}, for ${about(passed)}`
    : `${job.kind.split("+").map(labelStage).join(", ")} · ${passed < 60 ? "just now" : `${about(passed)} ago`}`;
  const place = describePlace(job);
  link.append(line, el("span.train-job-about", {}, place === HERE ? when : `${when} · ${place}`));
  if (active) {
    const fill = el("i");
    fill.style.width = `${job.steps ? Math.min(100, (job.step / job.steps) * 100) : 0}%`;
    link.append(el("span.train-jobs-bar", {}, fill));
  }
  return link;
}
