// What belongs to a person's login: their open sessions and, for owners, everybody who may log in.

import { getDocument, post } from "../lib/api.js";
import { Drawer, button, select } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { shareLine } from "../lib/share_line.js";

/** @typedef {{ name: string, role: import("../types").UserRole }} Account */
/**
 * A login that is open; `here` marks the one of this browser.
 * @typedef {{ id: string, user: string, opened_at: string, address: string, browser: string, here: boolean }} Session
 */

const ROLES = [
  ["viewer", "viewer: looks"],
  ["editor", "editor: runs, trains, changes pools"],
  ["owner", "owner: all of it"],
];

export class AccountDrawer {
  /**
   * @param {string} user
   * @param {string} role
   */
  constructor(user, role) {
    this.user = user;
    this.role = role;
    this.drawer = new Drawer();
    this.problem = el("p.login-account-problem", { role: "alert" });
    this.sessions = el("ul.login-account-list", { "aria-label": "Sessions" });
    this.links = el("ul.login-account-list", { "aria-label": "Links to runs" });
    this.people = el("ul.login-account-list", { "aria-label": "People" });
  }

  async open() {
    this.problem.textContent = "";
    const lead = el("p.page-lead", {}, { owner: OWNER_LEAD, editor: EDITOR_LEAD, viewer: VIEWER_LEAD }[this.role] || "");
    const people = this.role === "owner" ? [el("h3", {}, "Who may log in"), this.people, this.addForm()] : [];
    this.drawer.open(`${this.user} · ${this.role}`, [lead, this.problem, el("h3", {}, "Open sessions"), this.sessions,
      el("h3", {}, "Links to runs"), this.links, ...people]);
    await this.load();
  }

  async load() {
    const { sessions } = await getDocument("/api/sessions");
    this.sessions.replaceChildren(...sessions.map((/** @type {Session} */ session) => this.sessionLine(session)));
    const { links } = await getDocument("/api/shares");
    const lines = links.map((/** @type {import("../types").ShareLine} */ link) => shareLine(link, () => this.load(), true));
    this.links.replaceChildren(...(lines.length ? lines : [el("li", {}, "None. A run is shared on its page.")]));
    if (this.role !== "owner") return;
    const { accounts } = await getDocument("/api/accounts");
    this.people.replaceChildren(...accounts.map((/** @type {Account} */ account) => this.personLine(account)));
  }

  /** @param {Session} session */
  sessionLine(session) {
    const since = session.opened_at ? `since ${new Date(session.opened_at).toLocaleString()}` : "since before this version";
    const about = [session.here ? "this one" : "", since, session.address && `from ${session.address}`].filter(Boolean).join(", ");
    const text = el("span.login-account-text", { title: session.browser }, el("b", {}, session.user), el("span", {}, about));
    const end = button("End", () => this.send(`/api/sessions/${session.id}/end`, {}), "podium-link");
    end.setAttribute("aria-label", `End the session of ${session.user} ${about}`);
    return el("li", {}, text, session.here ? "" : end);
  }

  /** @param {Account} account */
  personLine(account) {
    const address = `/api/accounts/${encodeURIComponent(account.name)}`;
    const change = (/** @type {string} */ value) => this.send(`${address}/role`, { role: value, based_on: account.role });
    const role = select(ROLES.map(([name]) => [name, name]), account.role, change);
    role.setAttribute("aria-label", `Role of ${account.name}`);
    const remove = button("Remove", () => confirm(`Remove ${account.name}? Their sessions and tokens end at once.`) &&
      this.send(`${address}/remove`, {}), "podium-link");
    remove.setAttribute("aria-label", `Remove ${account.name}`);
    return el("li", {}, el("span.login-account-text", {}, el("b", {}, account.name)), role, account.name === this.user ? "" : remove);
  }

  addForm() {
    const name = el("input", { type: "text", placeholder: "Name", "aria-label": "Name of a new person", maxlength: 64, autocomplete: "off" });
    const password = el(
      "input", { type: "password", placeholder: "Password, 10 characters or more", "aria-label": "Their password", autocomplete: "new-password" },
    );
    const role = select(ROLES, "editor");
    role.setAttribute("aria-label", "Their role");
    const form = el("form.login-account-add", {}, name, password, role, el("button.page-button", { type: "submit" }, "Add person"));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const done = await this.send("/api/accounts", { name: name.value.trim(), password: password.value, role: role.value });
      if (done) form.reset();
    });
    return form;
  }

  /**
   * Send a change and draw what is then. Returns whether it was made.
   * @param {string} address
   * @param {Record<string, string>} body
   */
  async send(address, body) {
    this.problem.textContent = "";
    let done = true;
    try {
      await post(address, body);
    } catch (error) {
      this.problem.textContent = error.message;
      done = false;
    }
    await this.load();
    return done;
  }
}

const VIEWER_LEAD = "A viewer looks at pools, runs, traces and training, and runs or changes nothing.";
const EDITOR_LEAD = "An editor runs, trains and changes pools. What runs programs, reads files or sends keys is for owners.";
const OWNER_LEAD = "An owner may add what runs programs on this machine, and decides who may log in.";
