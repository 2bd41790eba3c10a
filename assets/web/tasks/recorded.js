// A data set of tool use that was uploaded: it becomes a pool of its own, whose first plans are shown as graphs.

import { busy, button } from "../lib/controls.js";
import { count, el } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { plain } from "../lib/reply.js";
import { needs } from "../lib/rights.js";
import { picture } from "../train/rollouts.js";

const ABOUT = "Its tools become workers that replay the recorded answers, its calls the reference plans of tasks.";

export class RecordedPool {
  /** @param {import("./paste.js").PasteTasks} paste */
  constructor(paste) {
    this.paste = paste;
    this.name = el("input", { spellcheck: "false", autocomplete: "off" });
    this.field = labelField("Name of the new pool", this.name, ABOUT);
    this.make = needs(button("Make a pool", () => busy(this.make, "Making …", () => this.send()), "page-primary"), "train/make_recorded_pool");
    this.form = el("div.train-tasks-hub", {}, this.field.node, this.make);
    this.result = el("div.train-tasks-recorded", { "aria-live": "polite" });
    this.root = el("div.train-tasks-recorded", {}, this.form, this.result);
    this.hide();
  }

  hide() {
    this.root.hidden = true;
    this.field.say("");
    this.result.replaceChildren();
  }

  /**
   * Offer to make the pool of what was read.
   * @param {import("../types").TasksPreview} preview
   */
  offer({ new_pool: name, total }) {
    this.hide();
    this.name.value = name;
    this.make.textContent = `Make a pool with ${count(total)} ${total === 1 ? "task" : "tasks"}`;
    this.form.hidden = !total;
    this.root.hidden = !name;
  }

  async send() {
    const { page } = this.paste.panel;
    const reply = await page.ask({ action: "make_recorded_pool", ...this.paste.request, new_pool: this.name.value.trim() });
    this.field.say(reply.ok ? "" : plain(reply.problems));
    if (!reply.ok) return;
    page.toast.say(reply.message);
    this.draw(reply.recorded);
  }

  /** @param {import("../types").RecordedPoolDocument} recorded */
  draw({ pool, sentence, runs }) {
    const name = encodeURIComponent(pool);
    const links = el(
      "p.train-tasks-links", {},
      el("a.page-button", { href: `/pool?pool=${name}` }, "Open the pool"), el("a.page-button", { href: `/train?tasks=${name}` }, "Train on its tasks"),
    );
    this.form.hidden = true;
    this.paste.clear();
    this.root.hidden = false;
    this.result.replaceChildren(el("p.train-tasks-counts", {}, sentence), links, el("div.train-rollouts-tiles", {}, ...runs.map(tile)));
  }
}

/** @param {import("../types").PlanRun} run */
function tile({ query, episode, correct, graph }) {
  const link = el("a.train-rollouts-open", { href: `/?episode=${encodeURIComponent(episode)}`, "aria-label": `Open in Run: ${query}` }, picture(graph));
  return el(
    "article.train-rollouts-tile", { "data-correct": String(correct) }, link, el("b.train-rollouts-verdict", {}, correct ? "Right" : "Wrong"),
    el("span.train-mute", { title: query }, query),
  );
}
