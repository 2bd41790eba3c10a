// Housekeeping of one thing, on any page: another name, deletion with what depends on it, its undo, and the trash.

import { sendCommand } from "./api.js";
import { button } from "./controls.js";
import { el } from "./dom.js";
import { labelField } from "./form.js";
import { plain } from "./reply.js";
import { needs } from "./rights.js";

/**
 * @param {string} action
 * @param {Record<string, unknown>} fields
 */
const ask = (action, fields = {}) => sendCommand("housekeeping", { action, ...fields });

export class Housekeeping {
  /**
   * @param {import("./controls.js").Drawer} drawer
   * @param {import("./reply.js").Toast} toast
   * @param {(change: { kind: string, name: string, gone: boolean }) => unknown} onChange hears what was renamed,
   *   deleted or put back
   */
  constructor(drawer, toast, onChange) {
    this.drawer = drawer;
    this.toast = toast;
    this.onChange = onChange;
  }

  /**
   * Show what can be done with a thing, and what depends on it.
   * @param {{ kind: string, name: string, label?: string, renames?: boolean }} thing
   */
  async open({ kind, name, label = name, renames = false }) {
    const reply = await ask("dependents", { kind, name });
    const lines = reply.ok ? [...reply.blocking, ...reply.affected] : [plain(reply.problems)];
    const blocked = !reply.ok || reply.blocking.length > 0;
    const remove = needs(button("Delete", () => this.remove(kind, name, label), "page-danger"), "housekeeping/delete");
    remove.disabled = blocked;
    const parts = [];
    const buttons = [button("Cancel", () => this.drawer.close()), remove];
    if (renames) {
      const input = el("input", { type: "text", autocomplete: "off", value: label, maxlength: "80" });
      const field = labelField("Name", input, "For people; addresses and commands keep the id.");
      parts.push(field.node);
      buttons.push(needs(button("Rename", () => this.rename(kind, name, input.value.trim(), field), "page-primary"), "housekeeping/rename"));
    }
    if (lines.length) parts.push(el("ul.page-lines", { "data-blocked": String(blocked) }, ...lines.map((line) => el("li", {}, line))));
    else if (!renames) parts.push(el("p.page-lead", {}, "Nothing depends on it."));
    parts.push(el("p.page-lead", {}, "What is deleted can be put back for a while."), this.drawer.foot(...buttons));
    this.drawer.open(`The ${kind} ${label}`, parts);
  }

  /**
   * @param {string} kind
   * @param {string} name
   * @param {string} text
   * @param {{ say: (text: string) => void }} field
   */
  async rename(kind, name, text, field) {
    const reply = await ask("rename", { kind, name, new: text });
    if (!reply.ok) return field.say(plain(reply.problems));
    this.drawer.close();
    this.toast.say(reply.message);
    return this.onChange({ kind, name, gone: false });
  }

  /**
   * @param {string} kind
   * @param {string} name
   * @param {string} label
   */
  async remove(kind, name, label) {
    const reply = await ask("delete", { kind, name });
    this.drawer.close();
    if (!reply.ok) return this.toast.say(plain(reply.problems), true);
    this.toast.say(`${label} is deleted.`, false, ["Undo", () => this.putBack(reply.trash)]);
    return this.onChange({ kind, name, gone: true });
  }

  /** @param {string} trash */
  async putBack(trash) {
    const reply = await ask("put_back", { trash });
    this.toast.say(reply.ok ? reply.message : plain(reply.problems), !reply.ok);
    if (reply.ok) this.onChange({ kind: reply.kind, name: reply.name, gone: false });
    return reply.ok;
  }

  /**
   * List what of these kinds was deleted, each with the way back.
   * @param {string[]} kinds
   */
  async openTrash(kinds) {
    const reply = await ask("trash", { kinds });
    const entries = reply.ok ? reply.entries : [];
    const lines = entries.map((/** @type {import("../types").DeletedThing} */ entry) => this.trashLine(entry));
    const empty = el("p.page-lead", {}, reply.ok ? "Nothing was deleted lately." : plain(reply.problems));
    const list = lines.length ? el("ul.page-versions", {}, ...lines) : empty;
    this.drawer.open("Deleted", [list]);
  }

  /** @param {import("../types").DeletedThing} entry */
  trashLine({ key, kind, name, deleted_at: at, days }) {
    const back = needs(button("Put back", async () => {
      if (await this.putBack(key)) this.drawer.close();
    }), "housekeeping/put_back");
    const when = `${new Date(at).toLocaleString()} · goes for good in ${Math.max(1, Math.round(days))} days`;
    return el("li", {}, el("div.page-version-line.page-trash-line", {}, el("b", {}, name), el("span", {}, kind), back), el("p", {}, when));
  }
}
