// Where notices by webhook go: the address, a key by reference, which events notify, and a test that shows what came back.

import { sendCommand } from "../lib/api.js";
import { attempt, busy, button } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { keyField, textField } from "../lib/fields.js";
import { plain } from "../lib/reply.js";
import { needs } from "../lib/rights.js";

/** @typedef {import("../types").NoticesDocument} NoticesDocument */
/** @typedef {import("../lib/reply.js").Problem} Problem */

const LEAD = "One POST of a JSON document for every event that is ticked, also while no page is open. In a terminal: ";
const COMMAND = "podium notices";

export class NoticesForm {
  /**
   * @param {import("../lib/controls.js").Drawer} drawer
   * @param {import("../lib/reply.js").Toast} toast
   */
  constructor(drawer, toast) {
    this.drawer = drawer;
    this.toast = toast;
    this.opener = needs(button("Notices by webhook", () => busy(this.opener, "Opening …", () => this.open()), "page-link train-notices-opener"), "train/notices");
    this.opener.dataset.key = "notices";
  }

  async open() {
    const reply = await sendCommand("train", { action: "notices" });
    if (!reply.ok) return this.toast.say(plain(reply.problems), true);
    this.draw(reply.notices);
    return null;
  }

  /** @param {NoticesDocument} state */
  draw(state) {
    this.webhook = textField({
      label: "Address", value: state.webhook, optional: true, placeholder: "https://chat.example.org/hook",
      about: "Where it contains a secret, write env:NAME or keyring:NAME instead. Empty: nothing is sent.",
    });
    const sender = { send: (/** @type {import("../lib/api.js").Command} */ request) => sendCommand("pool", request) };
    this.key = keyField(sender, { label: "Header Authorization", value: state.authorization, about: "A reference to all that it says, such as Bearer and a token. Empty: none." });
    this.kinds = Object.entries(state.labels).map(([kind, label]) => tick(kind, label, state.kinds.includes(kind)));
    this.queries = tick("queries", "A notice may contain the texts of queries", state.queries);
    this.problem = el("p.train-notices-problem", { role: "alert" });
    this.outcome = el("p.train-notices-outcome", { role: "status" });
    const events = el("fieldset.train-notices-kinds", {}, el("legend", {}, "Events that notify"), ...this.kinds.map(({ node }) => node));
    const test = needs(button("Send a test", () => busy(test, "Sending …", () => this.test())), "train/test_notice");
    const save = needs(button("Save", () => busy(save, "Saving …", () => this.save()), "page-primary"), "train/set_notices");
    this.drawer.open("Notices by webhook", [
      el("p.page-lead", {}, LEAD, el("code", {}, COMMAND), "."), this.webhook.node, this.key.node, events, this.queries.node,
      this.outcome, this.problem, this.drawer.foot(test, save),
    ]);
  }

  /** What the form holds; null when a field says what is wrong with it. */
  read() {
    this.outcome.textContent = this.problem.textContent = "";
    return attempt(() => ({
      webhook: this.webhook.read() || "", authorization: this.key.read() || "", queries: this.queries.input.checked,
      kinds: this.kinds.filter(({ input }) => input.checked).map(({ input }) => input.name),
    }));
  }

  async test() {
    const notices = this.read();
    if (!notices) return;
    const reply = await sendCommand("train", { action: "test_notice", notices });
    if (!reply.ok) this.show(reply.problems);
    else this.outcome.textContent = `It was taken: the answer is ${reply.status}${reply.reply ? `, “${reply.reply}”` : " without a text"}.`;
  }

  async save() {
    const notices = this.read();
    if (!notices) return;
    const reply = await sendCommand("train", { action: "set_notices", notices });
    if (!reply.ok) this.show(reply.problems);
    else {
      this.toast.say(reply.message);
      this.drawer.close();
    }
  }

  /**
   * Problems at their fields, and the others below the form.
   * @param {Problem[]} problems
   */
  show(problems) {
    const fields = new Map([["webhook", this.webhook], ["authorization", this.key]]);
    const left = problems.filter(([where, what]) => {
      fields.get(where)?.say(what);
      return !fields.has(where);
    });
    this.problem.textContent = plain(left);
  }
}

/**
 * @param {string} name
 * @param {string} label
 * @param {boolean} checked
 */
function tick(name, label, checked) {
  const input = Object.assign(el("input", { type: "checkbox", name }), { checked });
  return { input, node: el("label.train-notices-tick", {}, input, el("span", {}, label)) };
}
