// What belongs to a pool as a whole: its limits, and starting a new one.

import { plain } from "../lib/reply.js";
import { attempt, button, select } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { Form, labelField } from "../lib/form.js";

export function openLimits(page) {
  const form = new Form(page.state.limits_schema, page.state.pool.limits);
  const general = el("div.form-general", { role: "alert" });
  const save = async () => {
    const limits = attempt(() => form.read());
    if (!limits) return;
    const reply = await page.command({ action: "save_limits", limits });
    if (reply.ok) page.drawer.close();
    else general.textContent = plain(form.show(reply.problems));
  };
  const foot = page.drawer.foot(button("Cancel", () => page.drawer.close()), button("Save limits", save, "page-primary"));
  page.drawer.open("Limits", [el("p.page-lead", {}, "Every episode on this pool stays within these, always."), form.root, general, foot]);
}

export function openNew(page) {
  const name = el("input", { type: "text", autocomplete: "off" });
  const field = labelField("Name", name, "a-z, 0-9, _ and -");
  const copy = select([["", "empty"], ...page.state.pools.map((other) => [other, `a copy of ${other}`])], "");
  const create = async () => {
    const reply = await page.command({ action: "create", name: name.value.trim(), copy_of: copy.value });
    if (reply.ok) page.drawer.close();
    else field.say(plain(reply.problems));
  };
  const foot = page.drawer.foot(button("Cancel", () => page.drawer.close()), button("Create", create, "page-primary"));
  page.drawer.open("New pool", [field.node, labelField("Start with", copy).node, foot]);
}
