// The binding of a checkpoint: which workers here stand for those that it learnt on another pool, and changing that.

import { plain } from "../lib/reply.js";
import { button, select } from "../lib/controls.js";
import { el, icon } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { kindIcon } from "../lib/icons.js";
import { needs } from "../lib/rights.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */

const LEAD = "A checkpoint that was trained on the bare query knows the workers of one pool by heart. On this pool each of them stands for a worker that does the same, found by their descriptions.";
const AUTOMATIC = "auto:"; // no worker's name holds a colon
/** @type {Record<string, string>} */
const HOW = { name: "same name", meaning: "by meaning", words: "by words", person: "your choice" };

/** @param {PoolPage} page */
export async function openBinding(page) {
  const binding = new Binding(page);
  binding.open();
  await binding.send({ action: "binding" });
}

class Binding {
  /** @param {PoolPage} page */
  constructor(page) {
    this.page = page;
    /** @type {import("../types").BindingDocument|null} */
    this.reply = null;
    this.summary = el("p.pool-binding-summary", { role: "status" }, "Comparing descriptions …");
    this.problem = el("p.form-general", { role: "alert" });
    this.rows = el("ul.pool-binding-rows", { "aria-label": "Learnt workers" });
    this.choice = select([], "", (checkpoint) => this.send({ action: "binding", checkpoint }));
    this.field = labelField("Checkpoint", this.choice);
    this.reset = needs(button("Reset all", () => this.send({ action: "reset_binding" })), "pool/reset_binding");
  }

  open() {
    const { drawer, state } = this.page;
    const foot = drawer.foot(this.reset, button("Close", () => drawer.close()));
    drawer.open(
      `Binding on ${state.pool.name}, version ${state.pool.version}`,
      [el("p.page-lead", {}, LEAD), this.field.node, this.summary, this.problem, this.rows, foot], { wide: true, focus: this.choice },
    );
  }

  /**
   * What was chosen belongs to the version that is shown.
   * @param {import("../lib/api.js").Command} request
   */
  async send(request) {
    this.rows.setAttribute("aria-busy", "true");
    const { version } = this.page.state.pool;
    const reply = await this.page.command({ checkpoint: this.reply?.checkpoint, version, ...request });
    this.rows.removeAttribute("aria-busy");
    this.problem.textContent = reply.ok ? "" : plain(reply.problems);
    if (reply.binding) this.take(reply.binding);
    else if (this.reply?.checkpoint) this.take(this.reply);
    else this.summary.textContent = "";
  }

  /** @param {import("../types").BindingDocument} reply */
  take(reply) {
    const focused = this.rows.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    this.reply = reply;
    this.choice.replaceChildren(...reply.checkpoints.map(([value, label]) => el("option", { value }, label)));
    this.choice.value = reply.checkpoint || "";
    this.field.node.hidden = !reply.checkpoints.length;
    this.summary.textContent = summarize(reply);
    this.rows.replaceChildren(...reply.rows.map((row) => this.row(row)));
    this.reset.hidden = !reply.rows.some((row) => row.edited);
    if (focused) this.rows.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  /** @param {import("../types").BindingRow} row */
  row(row) {
    const automatic = row.automatic || "none";
    const options = [
      [AUTOMATIC, `Automatic: ${automatic}`], ["", "None"], ...row.choices.map((name) => [name, name]),
    ];
    const seen = row.edited ? row.worker : AUTOMATIC;
    const choice = needs(select(options, seen, (worker) => this.choose(row.learnt, worker, seen)), "pool/bind");
    choice.setAttribute("aria-label", `Worker for ${row.learnt}`);
    choice.dataset.key = `bind-${row.learnt}`;
    const state = row.worker ? (row.edited ? "chosen" : "bound") : "unbound";
    const name = el("div.pool-binding-name", {}, icon(kindIcon({ kind: "", role: row.role })), el("b", {}, row.learnt));
    const old = el("div.pool-binding-learnt", {}, name, el("p", { title: row.description }, row.description));
    const here = el("div.pool-binding-here", {}, choice, el("p", { title: row.worker_description }, explainBinding(row)));
    return el("li.pool-binding-row", { "data-role": row.role, "data-state": state, "data-learnt": row.learnt }, old, here, likeness(row));
  }

  /**
   * @param {string} learnt
   * @param {string} worker
   * @param {string} seen
   */
  choose(learnt, worker, seen) {
    if (worker === AUTOMATIC) return this.send({ action: "reset_binding", learnt, replaces: seen });
    return this.send({ action: "bind", learnt, worker, replaces: seen });
  }
}

/**
 * What the bound worker does, or why there is none; and which parameters are called otherwise.
 * @param {import("../types").BindingRow} row
 */
function explainBinding(row) {
  if (row.problem) return row.edited ? "Its steps will be PARSE_ERR." : sentence(row.problem);
  const names = row.parameters.map(([old, here]) => `${old} is ${here}`).join(", ");
  return names ? `${row.worker_description} Here ${names}.` : row.worker_description;
}

/** @param {string} text */
function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

/** @param {import("../types").BindingRow} row */
function likeness(row) {
  if (!row.worker) return el("div.pool-binding-likeness", {}, el("b", {}, "—"), el("span", {}, "unbound"));
  const share = Math.round(Math.max(0, Math.min(1, row.likeness)) * 100);
  const bar = el("span.pool-binding-bar", { "aria-hidden": "true" }, el("i", { style: `width:${share}%` }));
  return el("div.pool-binding-likeness", {}, el("b", {}, row.likeness.toFixed(2)), el("span", {}, HOW[row.by] || row.by), bar);
}

/** @param {import("../types").BindingDocument} reply */
function summarize(reply) {
  if (!reply.checkpoint) return "There is no checkpoint here that learnt one pool. Those that read their pool need no binding.";
  if (reply.reason) return `Not bound: ${reply.reason}.`;
  if (reply.changes_nothing) return "Every worker that it learnt is in this pool under its own name: nothing needs to be bound.";
  const bound = reply.rows.filter((row) => row.worker).length;
  const chosen = reply.rows.filter((row) => row.edited).length;
  const parts = [`${bound} of ${reply.rows.length} learnt workers are bound`];
  if (bound < reply.rows.length) parts.push("steps of the others will be PARSE_ERR");
  if (chosen) parts.push(`${chosen} chosen by you`);
  return `${parts.join("; ")}.`;
}
