// A plan that waits for a person: why, what it takes, and the three answers. Below it, or alone after the run, who
// decided about each plan. And, above everything, the other plans that wait.

import { getDocument, post } from "../lib/api.js";
import { busy, button } from "../lib/controls.js";
import { dollars, el, seconds } from "../lib/dom.js";
import { needs } from "../lib/rights.js";
import { Editor, WAITING_PLAN } from "../what_if/editor.js";

/** @typedef {import("../types").ApprovalRequest} ApprovalRequest */
/** @typedef {import("../types").AuditLine} AuditLine */
/** @typedef {import("../run/run_view.js").RunView} RunView */
/** @typedef {import("../what_if/editor.js").Fates} Fates */

const LOOK_MS = 10_000;
/** @type {Record<AuditLine["kind"], string>} */
const KINDS = { held: "Held", escalated: "Escalated to", approved: "Approved by", edited: "Edited and approved by", rejected: "Rejected by" };

/**
 * Give a run view its approvals.
 * @param {RunView} view
 */
export function attach(view) {
  new ApprovalView(view);
}

class ApprovalView {
  /** @param {RunView} view */
  constructor(view) {
    this.view = view;
    this.key = "";
    this.root = el("section.run-approval", { "aria-label": "Approval" });
    this.root.hidden = true;
    this.waiting = el("p.run-approval-others", { role: "status" });
    this.waiting.hidden = true;
    view.summary.root.after(this.root);
    view.notice.before(this.waiting);
    this.editor = new Editor({
      started: () => this.listWaiting(),
      fates: (fates) => this.markGraph(fates),
      closed: () => this.onClose(),
      kind: WAITING_PLAN,
    });
    view.inspector.root.after(this.editor.root);
    view.full.addEventListener("marked", () => this.follow());
    if (view.state) view.refresh();
    this.listWaiting();
    setInterval(() => document.hidden || this.listWaiting(), LOOK_MS);
  }

  /** The view was drawn or something else was selected. */
  follow() {
    const { episode, step, state } = this.view;
    const head = state?.episode;
    if (this.editor.episode && (this.editor.episode !== episode || !head?.approval)) this.editor.close();
    else if (this.editor.episode && step) this.editor.show(step);
    const key = JSON.stringify([episode, head?.approval, head?.audit]);
    if (key === this.key) return;
    this.key = key;
    this.draw(episode, head);
    this.listWaiting();
  }

  /**
   * @param {string} episode
   * @param {import("../types").EpisodeHead} head
   */
  draw(episode, head) {
    const parts = [];
    if (head?.approval) parts.push(...this.question(episode, head.approval));
    const audit = (head?.audit || []).filter((line) => !(head.approval && line.kind === "held" && line.round === head.approval.round));
    if (audit.length) parts.push(auditTrail(audit));
    this.root.dataset.waits = String(Boolean(head?.approval));
    this.root.replaceChildren(...parts);
    this.root.hidden = !parts.length;
  }

  /**
   * @param {string} episode
   * @param {ApprovalRequest} request
   */
  question(episode, request) {
    const note = el("input", { type: "text", maxlength: "2000", placeholder: "A note for the audit trail", "aria-label": "Note" });
    const problem = el("p.run-approval-problem", { role: "alert" });
    /** @type {(node: HTMLButtonElement, word: string, verdict: "approve" | "reject") => Promise<void>} */
    const decide = (node, word, verdict) =>
      busy(node, word, () => this.decide(episode, { round: request.round, verdict, note: note.value.trim() }, problem));
    /** @param {HTMLButtonElement} node */
    const may = (node) => needs(node, "POST /api/episodes/{episode_id}/approval");
    const approve = may(button("Approve and run", () => decide(approve, "Approving …", "approve"), "page-primary"));
    const edit = may(button("Edit the plan …", () => this.edit(episode)));
    const reject = may(button("Reject", () => decide(reject, "Rejecting …", "reject"), "page-button run-approval-reject"));
    return [
      el("h2", {}, request.round > 1 ? `The plan of round ${request.round} waits for you` : "The plan waits for you"),
      el("ul.run-approval-reasons", {}, ...request.reasons.map((reason) => el("li", { "data-code": reason.code }, reason.sentence))),
      el("p.run-approval-estimate", { "data-testid": "estimate" }, estimate(request)),
      calls(request),
      el("div.run-approval-answers", {}, note, approve, edit, reject), problem,
    ];
  }

  /**
   * @param {string} episode
   * @param {{ round: number, verdict: "approve" | "reject", note: string }} body
   * @param {HTMLElement} problem
   */
  async decide(episode, body, problem) {
    try {
      /** @type {import("../types").DecidedPlan} */
      const reply = await post(`/api/episodes/${encodeURIComponent(episode)}/approval`, body);
      problem.textContent = reply.problems.map(([, what]) => what).join("; ");
    } catch (error) {
      problem.textContent = error.message;
    }
    this.listWaiting();
  }

  /** @param {string} episode */
  async edit(episode) {
    this.view.inspector.root.hidden = true;
    await this.editor.open(episode, this.view.step);
    this.editor.root.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }

  onClose() {
    this.view.inspector.root.hidden = false;
    this.markGraph(new Map());
  }

  /** @param {Fates} fates */
  markGraph(fates) {
    for (const cards of [this.view.graph.cards, this.view.graph.items]) {
      for (const [id, card] of cards) {
        if (fates.has(id) && fates.get(id) !== "planned") card.node.dataset.fate = fates.get(id);
        else delete card.node.dataset.fate;
      }
    }
  }

  /** The other plans that wait, each a link. */
  async listWaiting() {
    try {
      /** @type {{ waiting: import("../types").WaitingPlan[] }} */
      const { waiting } = await getDocument("/api/approvals");
      const others = waiting.filter(({ id }) => id !== this.view.episode);
      const links = others.slice(0, 5).map(({ id, query }) =>
        el("a.podium-link", { href: `/?episode=${encodeURIComponent(id)}` }, query.length > 60 ? `${query.slice(0, 60)}…` : query));
      const more = others.length > links.length ? el("a.podium-link", { href: "/traces?state=waiting" }, `all ${others.length}`) : null;
      const verb = others.length === 1 ? "plan waits" : "plans wait";
      this.waiting.replaceChildren(el("b", {}, `${others.length} ${verb} for approval:`), ...links, ...(more ? [more] : []));
      this.waiting.hidden = !others.length;
    } catch {
      this.waiting.hidden = true; // the run itself says when the studio is gone
    }
  }
}

/** @param {ApprovalRequest} request */
function estimate({ cost, seconds: time, calls: planned }) {
  const unknown = planned.filter((call) => call.seconds === null).map((call) => call.step);
  if (unknown.length === planned.length) return `No recorded calls of these workers yet, so there is no estimate of time. Cost by price: ${dollars(cost)}.`;
  const rest = unknown.length ? `; nothing is recorded for ${unknown.length > 1 ? "steps" : "step"} ${unknown.join(", ")}` : "";
  return `By earlier calls: about ${seconds(time)} and ${dollars(cost)}${rest}.`;
}

/** @param {ApprovalRequest} request */
function calls({ calls: planned }) {
  const rows = planned.map((call) => {
    const effects = call.effects ? el("span.run-approval-effects", {}, "may change something outside") : "";
    return el(
      "tr", {}, el("th", { scope: "row" }, `${call.step} · ${call.worker}`), el("td", {}, el("span", {}, call.instruction), written(call.planned), effects),
      el("td", {}, call.seconds === null ? "–" : seconds(call.seconds)), el("td", {}, dollars(call.cost)),
    );
  });
  const names = ["Step", "Call", "Time", "Cost"].map((name) => el("th", { scope: "col" }, name));
  return el(
    "details.run-approval-steps", { open: "" }, el("summary", {}, `${planned.length} ${planned.length === 1 ? "step" : "steps"} to run`),
    el("table", {}, el("caption.podium-offscreen", {}, "The steps that wait"), el("thead", {}, el("tr", {}, ...names)), el("tbody", {}, ...rows)),
  );
}

/**
 * How a plan wrote a call that quotes other steps.
 * @param {string} planned
 */
function written(planned) {
  return planned && el("small.run-approval-written", {}, "planned as ", el("code", {}, planned));
}

/** @param {AuditLine[]} lines */
function auditTrail(lines) {
  const rows = lines.map((line) =>
    el(
      "li", { "data-kind": line.kind }, el("b", {}, `Round ${line.round}`), el("span", {}, [KINDS[line.kind], person(line.by)].filter(Boolean).join(" ")),
      line.when ? el("time", { datetime: line.when }, new Date(line.when).toLocaleString()) : "", line.text ? el("q", {}, line.text) : "",
    ));
  return el(
    "details.run-approval-audit", { "data-testid": "audit" }, el("summary", {}, `Audit trail: ${lines.length} ${lines.length === 1 ? "entry" : "entries"}`),
    el("ol", {}, ...rows),
  );
}

/** @param {string} by */
function person(by) {
  return by.startsWith("mode:") ? `the mode ${by.slice(5)}` : by;
}
