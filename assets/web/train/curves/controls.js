// How the curves are drawn: how much of the noise is taken out, on which scale, and beside which other job.

import { getDocument } from "../../lib/api.js";
import { button, select } from "../../lib/controls.js";
import { el, saveFile } from "../../lib/dom.js";
import { writeCsv } from "./beside.js";
import { Columns } from "./columns.js";

/** @typedef {"auto" | "off" | "strong"} Smoothing */

const SMOOTHING = [["auto", "Smooth long curves"], ["off", "Not smoothed"], ["strong", "Smooth strongly"]];
const NOTHING = [["", "No other job"]];

export class CurveControls {
  /** @param {import("./curves.js").Curves} owner */
  constructor(owner) {
    this.owner = owner;
    /** @type {Smoothing} */
    this.smoothing = "auto";
    this.log = false;
    /** @type {{ job: string, label: string, columns: Columns } | null} */
    this.other = null;
    /** @type {string[][]} */
    this.offers = [];
    this.smooth = select(SMOOTHING, this.smoothing, (value) => {
      this.smoothing = /** @type {Smoothing} */ (value);
      this.owner.redraw();
    });
    this.smooth.setAttribute("aria-label", "Smoothing");
    this.scale = button("Log scale", () => this.setLog(!this.log), "page-chip");
    this.scale.setAttribute("aria-pressed", "false");
    this.scale.title = "Of curves that are above 0 and no shares";
    this.beside = select(NOTHING, "", (job) => this.choose(job));
    this.beside.setAttribute("aria-label", "Other job to compare with");
    this.besideLabel = el("label.train-curves-key", {}, "Beside", this.beside);
    this.besideLabel.hidden = true;
    this.save = button("Download CSV", () => this.saveCsv(), "page-link");
    this.problem = el("span.train-curves-key", { role: "status" });
    this.root = el("div.train-curves-controls", {}, this.smooth, this.scale, this.besideLabel, this.save, this.problem);
  }

  /**
   * The jobs that can be put beside the one that is shown.
   * @param {import("../../types").JobLine[]} jobs
   * @param {string} shown
   */
  offer(jobs, shown) {
    const offers = jobs.filter(({ id }) => id !== shown).map(({ id, label }) => [id, label]);
    if (JSON.stringify(offers) === JSON.stringify(this.offers) || document.activeElement === this.beside) return;
    this.offers = offers;
    this.besideLabel.hidden = !offers.length;
    this.beside.replaceChildren(...[...NOTHING, ...offers].map(([id, label]) => el("option", { value: id }, label)));
    if (this.other && !offers.some(([id]) => id === this.other.job)) this.clear();
    this.beside.value = this.other?.job || "";
  }

  /** Another job is shown, or the one beside it is gone. */
  clear() {
    this.other = null;
    this.beside.value = "";
    this.problem.textContent = "";
  }

  /** @param {boolean} on */
  setLog(on) {
    this.log = on;
    this.scale.setAttribute("aria-pressed", String(on));
    this.owner.redraw();
  }

  /** @param {string} job */
  async choose(job) {
    this.problem.textContent = "";
    if (!job) this.other = null;
    else {
      try {
        /** @type {import("../../types").JobDocument} */
        const { curves } = await getDocument(`/api/jobs/${encodeURIComponent(job)}`);
        if (this.beside.value !== job) return; // another one was chosen meanwhile
        const label = this.offers.find(([id]) => id === job)?.[1] || job;
        this.other = { job, label, columns: new Columns(curves) };
        if (!curves.steps.length) this.problem.textContent = `${label} has no curves yet.`;
      } catch (error) {
        this.clear();
        this.problem.textContent = error.message;
      }
    }
    this.owner.redraw();
  }

  saveCsv() {
    const text = writeCsv(this.owner.columns, this.other);
    saveFile(`podium-${this.owner.job?.id || "job"}-curves.csv`, new Blob([text], { type: "text/csv;charset=utf-8" }));
  }
}
