// Deployments on the Serve page: what answers a name, its candidate with what that showed, and its history.

import { sendCommand } from "../lib/api.js";
import { button, busy, select } from "../lib/controls.js";
import { count, dollars, el, seconds } from "../lib/dom.js";
import { plain } from "../lib/reply.js";
import { needs } from "../lib/rights.js";

const SHARES = [["", "in the shadow"], ["5", "on 5 % of conversations"], ["10", "on 10 %"], ["25", "on 25 %"], ["50", "on 50 %"]];
const SIDES = /** @type {Record<string, string>} */ ({ serving: "Serves", candidate: "Candidate", shadow: "Shadow" });

/** The cards of all deployments. `page` is the Serve page. */
export class DeploymentList {
  /** @param {import("./page.js").ServePage} page */
  constructor(page) {
    this.page = page;
    /** @type {Map<string, DeploymentCard>} */
    this.cards = new Map();
    this.target = new URLSearchParams(location.search); // a link may name a deployment, and a change of it
    this.root = el("section.serve-servers", { "aria-label": "Deployments", hidden: "" });
  }

  /** @param {import("../types").ServeState} state */
  draw(state) {
    const names = state.deployments.map((deployment) => deployment.name);
    for (const [name, card] of this.cards) {
      if (names.includes(name)) continue;
      card.root.remove();
      this.cards.delete(name);
    }
    for (const deployment of state.deployments) {
      const card = this.cards.get(deployment.name) || new DeploymentCard(this.page, deployment.name);
      this.cards.set(deployment.name, card);
      card.draw(deployment, state.orchestrators);
      if (!card.root.isConnected) this.root.append(card.root);
    }
    this.root.hidden = !names.length;
    this.cards.get(this.target.get("deployment") ?? "")?.reveal(this.target.get("change"));
    this.target.delete("deployment");
  }
}

class DeploymentCard {
  /** @param {import("./page.js").ServePage} page @param {string} name */
  constructor(page, name) {
    this.page = page;
    this.name = name;
    this.drawn = "";
    this.root = el("article.serve-card.serve-deployment", { "data-deployment": name, "aria-label": `Deployment ${name}` });
  }

  /**
   * Draw the card where something has changed: what a person types into it stays.
   * @param {import("../types").DeploymentCard} deployment
   * @param {[string, string][]} orchestrators
   */
  draw(deployment, orchestrators) {
    const drawn = JSON.stringify(deployment);
    if (drawn === this.drawn || this.root.querySelector("input:focus, select:focus")) return;
    const open = this.root.querySelector("details")?.open;
    this.drawn = drawn;
    const tried = deployment.trial ? this.trial(deployment.trial) : this.candidateForm(deployment, orchestrators);
    this.root.replaceChildren(this.head(deployment), tried, history(deployment.changes, Boolean(open)));
  }

  /** Bring the card into view, with a change in its history. @param {string | null} change */
  reveal(change) {
    const line = this.root.querySelector(`[data-change="${CSS.escape(change ?? "")}"]`);
    line?.setAttribute("aria-current", "true");
    const details = this.root.querySelector("details");
    if (details && line) details.open = true;
    (line || this.root).scrollIntoView({ block: "center" });
  }

  /** @param {import("../types").DeploymentCard} deployment */
  head(deployment) {
    const { ports, back_to: before } = deployment;
    const about = `${deployment.label} · Pool ${deployment.pool} v${deployment.pool_version}`;
    const title = el("div.serve-title", {}, el("h2", {}, this.name), el("p", {}, about));
    const pill = el("span.traces-pill", { "data-kind": ports.length ? "good" : "" }, ports.length ? `served on port ${ports.join(", ")}` : "not served");
    const serve = ports.length ? null : needs(button("Serve", (event) => this.serve(event.currentTarget)), "serve/start");
    const back = before && needs(button("Roll back", (event) => this.send(event.currentTarget, "Rolling back …", "roll_back")), "serve/roll_back");
    if (back) back.title = `Back to ${before}`;
    return el("header.serve-head", {}, title, pill, serve, back);
  }

  /**
   * @param {import("../types").DeploymentCard} deployment
   * @param {[string, string][]} orchestrators
   */
  candidateForm(deployment, orchestrators) {
    const others = orchestrators.filter(([, name]) => name !== deployment.orchestrator).map(([label, name]) => [name, label]);
    const who = select(others, others[0]?.[0]);
    who.setAttribute("aria-label", `Candidate for ${this.name}`);
    const how = select(SHARES, "");
    how.setAttribute("aria-label", "How it is tried");
    const go = needs(el("button.page-button", { type: "submit" }, "Try it"), "serve/candidate");
    const form = el("form.serve-try", { "aria-label": `Try a candidate on ${this.name}`, novalidate: "" }, el("span.serve-label", {}, "Try"), who, how, go);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send(go, "Checking …", "candidate", { orchestrator: who.value, share: how.value ? Number(how.value) : null });
    });
    return form;
  }

  /** @param {import("../types").TrialView} trial */
  trial(trial) {
    const withdraw = needs(button("Withdraw", (event) => this.send(event.currentTarget, "Withdrawing …", "withdraw")), "serve/withdraw");
    const parts = [el("p.serve-sentence", {}, `${trial.sentence}.`)];
    if (trial.sides.length) parts.push(figures(trial.sides));
    parts.push(...trial.notes.map((note) => el("p.serve-lead", {}, note)));
    if (trial.evidence) parts.push(el("p.serve-lead", {}, trial.evidence));
    if (trial.refusals.length) parts.push(this.refused(trial.refusals, withdraw));
    else parts.push(el("div.serve-line", {}, this.promotion(), withdraw));
    return el("div.serve-trial", { "aria-label": "Candidate", role: "group" }, ...parts);
  }

  promotion() {
    return needs(button("Promote", (event) => this.send(event.currentTarget, "Promoting …", "promote"), "page-primary"), "serve/promote");
  }

  /** Why it is not promoted, and the way to do it all the same. @param {string[]} refusals @param {HTMLElement} withdraw */
  refused(refusals, withdraw) {
    const why = el("div.serve-refusals", {}, el("strong", {}, "Not to be promoted yet"), el("ul", {}, ...refusals.map((line) => el("li", {}, sentence(line)))));
    const reason = el("input.serve-input", { type: "text", maxlength: 500, placeholder: "Reason, kept in the history", "aria-label": "Reason to promote it all the same" });
    const go = needs(el("button.page-button", { type: "submit" }, "Promote all the same"), "serve/promote");
    const form = el("form.serve-line", { novalidate: "" }, reason, go, withdraw);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!reason.value.trim()) return this.page.say("Say why it is promoted all the same; the reason is kept.", true);
      return this.send(go, "Promoting …", "promote", { reason: reason.value.trim() });
    });
    return el("div.serve-trial", {}, why, form);
  }

  /** @param {any} control */
  serve(control) {
    return this.send(control, "Starting …", "start", { port: this.page.state.port });
  }

  /**
   * @param {any} control
   * @param {string} word
   * @param {string} action
   * @param {object} fields
   */
  send(control, word, action, fields = {}) {
    return busy(control, word, async () => {
      const done = await sendCommand("serve", { action, deployment: this.name, ...fields });
      this.page.say(done.ok ? done.message : sentence(plain(done.problems)), !done.ok);
      if (document.activeElement instanceof HTMLElement && this.root.contains(document.activeElement)) document.activeElement.blur();
      await this.page.load();
    });
  }
}

/** @param {import("../types").TrialSide[]} sides */
function figures(sides) {
  const names = ["", "Orchestrator", "Answered", "Right", "Wrong", "Cost", "Time"];
  const head = el("thead", {}, el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, name))));
  const rows = sides.map((side) =>
    el("tr", {}, el("th", { scope: "row" }, SIDES[side.side]), ...[
      side.label, `${count(side.answered)} of ${count(side.runs)}`, count(side.right), count(side.wrong), dollars(side.cost), seconds(side.median_s),
    ].map((text) => el("td", {}, text))));
  return el("div.serve-figures", { tabindex: 0, role: "region", "aria-label": "Figures of the sides" }, el("table", {}, head, el("tbody", {}, ...rows)));
}

/** @param {import("../types").ChangeLine[]} changes @param {boolean} open */
function history(changes, open) {
  const lines = changes.map((change) =>
    el("li", { "data-change": String(change.number) }, el("span.serve-since", {}, `${change.number}. `), el("b", {}, change.action), ` ${change.serves} `, el("span.serve-since", {}, `${change.by}, ${new Date(change.at).toLocaleString()}`),
      change.reason && el("p.serve-lead", {}, change.reason), change.evidence && el("p.serve-lead", {}, change.evidence)));
  const node = el("details.serve-history", {}, el("summary", {}, `History (${count(changes.length)})`), el("ol", {}, ...lines));
  node.open = open;
  return node;
}

/** @param {string} text */
function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}
