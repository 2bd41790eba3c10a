// "Share": a link to this run that another person opens without a login, and the links that there are.

import { getDocument, post } from "../lib/api.js";
import { busy, button, select } from "../lib/controls.js";
import { copyButton, el } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { needs } from "../lib/rights.js";
import { shareLine } from "../lib/share_line.js";

/** @typedef {import("../types").ShareLine} ShareLine */

const REQUEST = "POST /api/episodes/{episode_id}/share";
const DAYS = [["1", "1 day"], ["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["365", "a year"]];
const LEAD = "Whoever has the link reads this run: its question, graph, steps with what they returned, and answer. It needs no login and opens "
  + "nothing else of the studio.";
const HERE = "This studio answers on this machine alone: others can open the link once it is started for them. To send the run today, take "
  + "“Page that replays it” under Export.";
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** @param {string} episode */
export function shareButton(episode) {
  const node = el("button.podium-link", { type: "button", title: "A link for somebody without a login", "data-key": "share" }, "Share");
  node.addEventListener("click", () => new ShareDialog(episode).open());
  return needs(node, REQUEST);
}

class ShareDialog {
  /** @param {string} episode */
  constructor(episode) {
    this.address = `/api/episodes/${encodeURIComponent(episode)}`;
    this.days = select(DAYS, "30");
    this.made = el("div.run-share-made");
    this.problem = el("p.form-general", { role: "alert" });
    this.links = el("div.run-share-links");
    const make = button("Make a link", () => busy(make, "Making …", () => this.make()), "page-primary");
    this.node = el(
      "dialog.run-share", { "aria-labelledby": "run-share-title" }, el("h2", { id: "run-share-title" }, "Share this run"), el("p", {}, LEAD),
      ...(LOOPBACK.test(location.hostname) ? [el("p.run-share-here", {}, HERE)] : []),
      el("div.run-share-form", {}, labelField("Works for", this.days).node, make), this.made, this.problem, this.links,
      el("div.run-share-foot", {}, button("Close", () => this.node.close())),
    );
    this.node.addEventListener("close", () => {
      this.node.remove();
      /** @type {HTMLElement|null} */ (document.querySelector("[data-key=share]"))?.focus();
    });
  }

  open() {
    document.querySelector(".run-view")?.append(this.node);
    this.node.showModal();
    return this.load();
  }

  async make() {
    this.problem.textContent = "";
    try {
      const { address, problem } = await post(`${this.address}/share`, { days: Number(this.days.value) });
      if (problem) throw new Error(problem);
      const link = new URL(address, location.href).href;
      const field = el("input", { type: "text", readonly: "", value: link });
      this.made.replaceChildren(labelField("The link, which is shown this once", field).node, copyButton(() => link, "Copy"));
      field.focus();
      field.select();
      await this.load();
    } catch (error) {
      this.problem.textContent = `No link: ${error.message}`;
    }
  }

  async load() {
    const { links } = await getDocument(`${this.address}/shares`);
    const list = el("ul", { "aria-label": "Links to this run" }, ...links.map((/** @type {ShareLine} */ link) => shareLine(link, () => this.load())));
    this.links.replaceChildren(...(links.length ? [el("h3", {}, "Links that work"), list] : []));
  }
}
