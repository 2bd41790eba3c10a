// How a job stands in the title of the tab, and a notice of the browser when it ends.

import { el } from "../lib/dom.js";

/** @typedef {import("../types").JobView} JobView */

const ACTIVE = ["queued", "running", "stopping"];
/** @type {Record<string, string>} */
const ENDS = { done: "Done", failed: "Failed", stopped: "Stopped" };

/** @param {JobView} job */
function jobTitle({ state, label, place }) {
  const status = ENDS[state] || (state === "queued" ? "Queued" : `${Math.round(place.share * 100)} %`);
  return `${status} · ${label} · Podium`;
}

/** Keeps the title of the tab, and gives the notice that a person wants of a job. */
export class JobNotice {
  constructor() {
    /** @type {Set<string>} the jobs whose end is waited for */
    this.awaited = new Set();
  }

  /** @param {JobView} job */
  follow(job) {
    document.title = jobTitle(job);
    if (ACTIVE.includes(job.state) || !this.awaited.delete(job.id)) return;
    const notice = new Notification(`${ENDS[job.state] || job.state}: ${job.label}`, { body: job.outcome?.sentence || job.message, tag: job.id });
    notice.addEventListener("click", () => window.focus());
  }

  /**
   * The box by which a person wants to hear of the end; null where the browser has no notices, or the job has ended.
   * @param {JobView} job
   */
  box(job) {
    if (!("Notification" in window) || !ACTIVE.includes(job.state)) return null;
    const tick = el("input", { type: "checkbox" });
    tick.checked = this.awaited.has(job.id);
    const note = el("span", { role: "status" });
    tick.addEventListener("change", async () => {
      this.awaited.delete(job.id);
      note.textContent = "";
      if (!tick.checked) return;
      if (await Notification.requestPermission() === "granted") this.awaited.add(job.id);
      else {
        tick.checked = false;
        note.textContent = "The browser does not let this page give notices; allow them in its settings for this address.";
      }
    });
    return el("label.train-job-notice", {}, tick, "Tell me when it ends, while a tab shows it", note);
  }
}
