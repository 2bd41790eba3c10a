// One worker's evidence: what it brings to the pool, measured on the same tasks with and without it, and a description
// from calls of it, which a person edits and accepts.

/** @typedef {import("../types").EvidenceDocument} EvidenceDocument */
/** @typedef {import("../types").ValueDocument} ValueDocument */
/** @typedef {import("../types").FigureChange} FigureChange */
/** @typedef {import("../types").DescriptionProposal} DescriptionProposal */
/** @typedef {import("./page.js").PoolPage} PoolPage */

import { plain } from "../lib/reply.js";
import { busy, button, select } from "../lib/controls.js";
import { count, el } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { needs } from "../lib/rights.js";

const LEAD = "The same tasks are done with this worker and without it. Nothing of it is added to the traces.";
const SECONDS = [["30", "Half a minute"], ["60", "A minute"], ["180", "Three minutes"], ["600", "Ten minutes"]];
/** @type {Record<string, [string, (value: number) => string]>} */
const FIGURES = {
  score: ["Right answers", (value) => `${Math.round(value * 100)} %`],
  seconds: ["Seconds a task", (value) => value.toFixed(2)],
  dollars: ["Dollars a task", (value) => value.toPrecision(2)],
  tokens: ["Tokens a task", (value) => String(Math.round(value))],
};

/**
 * @param {PoolPage} page
 * @param {string} name
 */
export async function openEvidence(page, name) {
  const reply = await page.act({ action: "evidence", name });
  if (reply.ok) new Evidence(page, reply.evidence).open();
}

class Evidence {
  /**
   * @param {PoolPage} page
   * @param {EvidenceDocument} evidence
   */
  constructor(page, evidence) {
    this.page = page;
    this.evidence = evidence;
    this.seconds = select(SECONDS, "60");
    const own = [["", evidence.orchestrator_label]];
    this.orchestrator = select(evidence.orchestrator === "oracle" ? own : [...own, ["oracle", "Oracle"]], "");
    this.allowed = el(
      "fieldset.pool-training-allowed", {}, el("legend", {}, "Tools whose calls might have effects: call them too?"),
      ...evidence.refused.map((name) => el("label", {}, el("input", { type: "checkbox", value: name }), name)),
    );
    this.allowed.hidden = !evidence.refused.length;
    this.agent = select([["", "Nobody: measured figures only"], ...evidence.agents.map((name) => [name, name])], "");
    this.result = el("div.pool-value", { role: "status", "aria-label": "What it brings" });
    this.proposal = el("div.pool-proposal", { role: "status" });
    this.cap = el("input", { type: "text", inputMode: "decimal", placeholder: "none" });
    this.alone = needs(button("Evaluate it alone", () => busy(this.alone, "Starting …", () => this.evaluate())), "pool/evaluate_alone");
    this.problem = el("p.form-general", { role: "alert" });
    this.replay = needs(button("Replay tasks", () => busy(this.replay, "Replaying …", () => this.measure()), "page-primary"), "pool/value_worker");
    this.describe = needs(button("Describe this worker", () => busy(this.describe, "Calling it …", () => this.propose())), "pool/describe_worker");
  }

  open() {
    const { worker, practice, recorded, agents } = this.evidence;
    const tasks = `${count(practice)} practice ${practice === 1 ? "task" : "tasks"} and ${count(recorded)} graded recorded ${recorded === 1 ? "query" : "queries"}`;
    const author = labelField("Strengths and weaknesses are worded by", this.agent);
    author.node.hidden = !agents.length;
    const alone = [
      el("h3.pool-memory-heading", {}, "On its own"),
      el("p.page-lead", {}, "It answers the pool's own tasks to measure, at most 60, as a job. Each outcome enters the facts on its card."),
      labelField("Most that it may cost, in US dollars", this.cap).node, el("div.pool-evidence-act", {}, this.alone),
    ];
    const parts = [
      el("p.page-lead", {}, `${LEAD} There are ${tasks}.`),
      labelField("Time", this.seconds).node, labelField("Done by", this.orchestrator).node, this.allowed, this.problem,
      el("div.pool-evidence-act", {}, this.replay), this.result, ...(this.evidence.is_agent ? alone : []),
      el("h3.pool-memory-heading", {}, "Description from evidence"),
      el("p.page-lead", {}, "Calls it with arguments that are known to work, and writes success, latency, price and failures into its description. Orchestrators read it. You accept or edit it first."),
      author.node, el("div.pool-evidence-act", {}, this.describe), this.proposal,
      this.page.drawer.foot(button("Close", () => this.page.drawer.close())),
    ];
    this.page.drawer.open(`What does ${worker} bring?`, parts, { focus: this.replay });
  }

  readAllowed() {
    return [...this.allowed.querySelectorAll("input:checked")].map((box) => /** @type {HTMLInputElement} */ (box).value);
  }

  /** @param {import("../lib/api.js").Command} request */
  async send(request) {
    const reply = await this.page.command({ name: this.evidence.worker, allowed: this.readAllowed(), ...request });
    this.problem.textContent = reply.ok ? "" : plain(reply.problems);
    return reply;
  }

  async measure() {
    const reply = await this.send({
      action: "value_worker", seconds: Number(this.seconds.value), orchestrator: this.orchestrator.value,
    });
    this.result.replaceChildren(...(reply.value ? drawValue(reply.value) : []));
  }

  async evaluate() {
    const reply = await this.send({ action: "evaluate_alone", max_cost: this.cap.value });
    if (reply.ok) location.href = `/train?job=${encodeURIComponent(reply.job)}`;
  }

  async propose() {
    const reply = await this.send({ action: "describe_worker", agent: this.agent.value });
    if (reply.proposal) this.showProposal(reply.proposal);
  }

  /** @param {DescriptionProposal} proposal */
  showProposal(proposal) {
    const text = Object.assign(el("textarea", { rows: "6" }), { value: proposal.proposed });
    const field = labelField("Proposed description", text, proposal.author ? `Words by ${proposal.author}; figures were measured.` : "");
    const accept = needs(button("Use this description", async () => {
      const reply = await this.send({ action: "set_description", description: text.value, based_on: proposal.based_on });
      if (!reply.ok) return field.say(plain(reply.problems));
      this.page.drawer.close();
    }, "page-primary"), "pool/set_description");
    accept.hidden = !proposal.facts;
    const calls = `${count(proposal.sampled)} calls made now, ${count(proposal.recorded)} recorded earlier.`;
    this.proposal.replaceChildren(
      el("p.pool-hint", {}, [calls, proposal.note && `Note: ${proposal.note}.`].filter(Boolean).join(" ")), field.node,
      el("div.pool-evidence-act", {}, accept),
    );
    text.focus();
  }
}

/** @param {ValueDocument} value */
function drawValue(value) {
  const head = ["", "With it", "Without it", "Change, 95 %"].map((word) => el("th", { scope: "col" }, word));
  const rows = (value.pairs ? value.changes : []).filter((change) => change.name === "score" || change.with_it || change.without_it).map(drawChange);
  const table = el("table.pool-value-table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows));
  const done = `${count(value.pairs)} of ${count(value.tasks)} tasks, by ${value.orchestrator_label}; it was called in ${count(value.called)}.`;
  const differing = value.differing.map((task) =>
    el("li", {}, el("b", {}, task.query), el("small", {}, task.with_it ? "right only with it" : "right only without it")));
  /** @type {HTMLElement[]} */
  const parts = [
    el("p.pool-value-verdict", { "data-enough": String(value.enough) }, value.verdict), el("p.pool-value-done", {}, done),
  ];
  if (rows.length) parts.push(el("div.pool-value-frame", { tabindex: "0", role: "region", "aria-label": "Figures" }, table));
  if (differing.length) {
    const tasks = el("ul.pool-value-tasks", {}, ...differing);
    parts.push(el("details.page-more", {}, el("summary", {}, `${differing.length} tasks came out otherwise`), tasks));
  }
  return [...parts, ...value.notes.map((note) => el("p.pool-value-note", {}, note))];
}

/** @param {FigureChange} change */
function drawChange(change) {
  const [label, write] = FIGURES[change.name];
  /** @param {number} value */
  const signed = (value) => {
    const size = write(Math.abs(value));
    return Number.parseFloat(size) ? `${value > 0 ? "+" : "−"}${size}` : size;
  };
  const interval = el("small", {}, `${signed(change.low)} to ${signed(change.high)}`);
  return el(
    "tr", { "data-figure": change.name }, el("th", { scope: "row" }, label), el("td", {}, write(change.with_it)),
    el("td", {}, write(change.without_it)), el("td", {}, signed(change.difference), interval),
  );
}
