// What is stored of served traffic: whether it may become tasks, for how long it stays, and how it is deleted.

import { busy } from "../lib/controls.js";
import { copyButton, el } from "../lib/dom.js";
import { needs } from "../lib/rights.js";

const FORGET = "podium forget --user NAME";

export class TrafficSettings {
  /** @param {(action: string, fields: Record<string, any>) => Promise<any>} send */
  constructor(send) {
    this.box = needs(el("input", { type: "checkbox", "aria-describedby": "tasks-consent" }), "tasks/allow_clients");
    this.box.addEventListener("change", async () => {
      const isAllowed = this.box.checked;
      const reply = await send("allow_clients", { clients: isAllowed });
      if (!reply.ok) this.box.checked = !isAllowed;
      this.outcome.textContent = reply.ok ? reply.message : "";
    });
    this.days = el("input.tasks-input", { type: "text", inputmode: "decimal", autocomplete: "off", placeholder: "for ever" });
    this.save = needs(el("button.page-button", { type: "submit" }, "Save"), "tasks/keep_served");
    this.problem = el("p.tasks-problem", { role: "alert" });
    this.outcome = el("p.tasks-kept", { role: "status" });
    const form = el("form.tasks-days", { novalidate: "" }, el("label", {}, "Days that traces of served requests stay", this.days), this.save);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      busy(this.save, "Saving …", async () => {
        const reply = await send("keep_served", { days: this.days.value.trim() });
        this.problem.textContent = reply.ok ? "" : reply.problems.map((/** @type {[string, string]} */ [, what]) => what).join("; ");
        this.outcome.textContent = reply.ok ? reply.message : "";
      });
    });
    this.pool = el("b");
    const consent = el("label.tasks-consent", {}, this.box, el("span", {}, "May requests of clients become tasks?"));
    const about = el("p.tasks-about", { id: "tasks-consent" }, "Of the pool ", this.pool, ". While this is off, what clients of a served model send is not listed here, not learnt from and not shown to a coding agent. What was accepted stays.");
    const forget = el("div.tasks-forget", {}, el("p.tasks-about", {}, "Delete what a person or a client's token sent for good, with the tasks made of it:"),
      el("div.tasks-code", {}, el("code", {}, FORGET), copyButton(FORGET)));
    const nothing = el("p.tasks-about", {}, "Nothing is stored of requests with ", el("code", {}, "store: false"), ", or of any under ", el("code", {}, "podium serve --no-record"), ".");
    this.node = el("section.tasks-settings", { "aria-label": "What is stored of traffic" }, el("h2", {}, "What is stored of traffic"),
      consent, about, form, this.problem, nothing, forget, this.outcome);
  }

  /**
   * @param {import("../types").TrafficSettings} settings
   * @param {string} pool
   */
  show({ clients, served_days: days }, pool) {
    this.pool.textContent = pool;
    this.box.checked = clients;
    if (document.activeElement !== this.days) this.days.value = days === null ? "" : String(days);
  }
}
