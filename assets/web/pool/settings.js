// What belongs to a pool as a whole: its limits, its deployment mode, and starting a new one.

import { plain } from "../lib/reply.js";
import { attempt, button, select } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { Form, labelField } from "../lib/form.js";
import { needs } from "../lib/rights.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */

/** @param {PoolPage} page */
export function openLimits(page) {
  const { limits: shown, based_on: basedOn } = page.state.pool;
  const form = new Form(page.state.limits_schema, shown, { special: finalizerField(page) });
  const general = el("div.form-general", { role: "alert" });
  const save = async () => {
    const limits = attempt(() => form.read());
    if (!limits) return;
    const reply = await page.command({ action: "save_limits", limits, based_on: basedOn });
    if (reply.ok) page.drawer.close();
    else general.textContent = plain(form.show(reply.problems.map(inLimits)));
  };
  const foot = page.drawer.foot(button("Cancel", () => page.drawer.close()), needs(button("Save limits", save, "page-primary"), "pool/save_limits"));
  page.drawer.open("Limits", [el("p.page-lead", {}, "Every episode on this pool stays within these, always."), form.root, general, foot]);
}

/**
 * A problem of the pool at its field of the limits' form.
 * @param {import("../lib/reply.js").Problem} problem
 * @returns {import("../lib/reply.js").Problem}
 */
function inLimits([where, what]) {
  return [where.replace(/^limits\./, ""), what];
}

/**
 * The finalizer is chosen among the pool's agents; one that is named and is none any more stays, so that it can be seen.
 * @param {PoolPage} page
 * @returns {(name: string, rule: Record<string, any>, value: any) => import("../lib/form.js").ReadableField | null}
 */
function finalizerField(page) {
  return (name, rule, value) => {
    if (name !== "finalizer") return null;
    const agents = page.state.pool.workers.filter((worker) => worker.role === "agent" && worker.enabled && !worker.judge_only);
    const names = new Set(["off", ...agents.map((worker) => worker.name), value]);
    const node = select([...names].map((choice) => [choice, choice]), value);
    return { ...labelField("Finalizer", node, rule.description || ""), read: () => node.value };
  };
}

/**
 * When plans on this pool run by themselves, and when they wait for a person.
 * @param {PoolPage} page
 */
export function openMode(page) {
  const { mode: shown, based_on: basedOn } = page.state.pool;
  const form = new Form(page.state.mode_schema, shown);
  form.fields.get("name").node.querySelector("label").textContent = "Mode";
  const general = el("div.form-general", { role: "alert" });
  const save = async () => {
    const mode = attempt(() => form.read());
    if (!mode) return;
    const reply = await page.command({ action: "save_mode", mode, based_on: basedOn });
    if (reply.ok) page.drawer.close();
    else general.textContent = plain(form.show(reply.problems));
  };
  const foot = page.drawer.foot(button("Cancel", () => page.drawer.close()), needs(button("Save mode", save, "page-primary"), "pool/save_mode"));
  const lead = "Every run on this pool follows this mode, served ones too; a single run may choose another on the Run page. " +
    "Which workers have effects stands in each worker's form.";
  page.drawer.open("Deployment mode", [el("p.page-lead", {}, lead), form.root, general, foot]);
}

/** @param {PoolPage} page */
export function openNew(page) {
  const name = el("input", { type: "text", autocomplete: "off" });
  const field = labelField("Name", name, "a-z, 0-9, _ and -");
  const copy = select([["", "empty"], ...page.state.pools.map((other) => [other, `a copy of ${other}`])], "");
  const create = async () => {
    const reply = await page.command({ action: "create", name: name.value.trim(), copy_of: copy.value });
    if (reply.ok) page.drawer.close();
    else field.say(plain(reply.problems));
  };
  const foot = page.drawer.foot(button("Cancel", () => page.drawer.close()), needs(button("Create", create, "page-primary"), "pool/create"));
  page.drawer.open("New pool", [field.node, labelField("Start with", copy).node, foot]);
}

/**
 * Another name for the pool, or none at all: what depends on it is said first, and a deletion can be undone.
 * @param {PoolPage} page
 */
export async function openManage(page) {
  const pool = page.state.pool.name;
  const name = el("input", { type: "text", autocomplete: "off", value: pool });
  const field = labelField("Name", name, "a-z, 0-9, _ and -");
  const rename = async () => {
    const reply = await page.command({ action: "rename_pool", name: name.value.trim() });
    if (reply.ok) page.drawer.close();
    else field.say(plain(reply.problems));
  };
  const remove = async () => {
    const reply = await page.act({ action: "delete_pool" });
    if (!reply.ok) return;
    page.drawer.close();
    page.say(`${pool} is deleted.`, false, ["Undo", () => page.act({ action: "put_back", trash: reply.trash })]);
  };
  const dependents = await page.send({ action: "dependents", pool });
  const lines = dependents.ok ? [...dependents.blocking, ...dependents.affected] : [plain(dependents.problems)];
  const blocked = !dependents.ok || dependents.blocking.length > 0;
  const what = el("ul.page-lines", { "data-blocked": String(blocked) }, ...lines.map((line) => el("li", {}, line)));
  const dangerous = needs(button("Delete", remove, "page-danger"), "pool/delete_pool");
  dangerous.disabled = blocked;
  const keep = needs(button("Rename", rename, "page-primary"), "pool/rename_pool");
  keep.disabled = blocked;
  const foot = page.drawer.foot(button("Cancel", () => page.drawer.close()), dangerous, keep);
  page.drawer.open(`The pool ${pool}`, [field.node, ...shareParts(page), ...(lines.length ? [what] : []), foot]);
}

/**
 * Whether editors may change the pool: for owners to decide.
 * @param {PoolPage} page
 */
function shareParts(page) {
  if (page.state.role !== "owner") return [];
  const box = el("input", { type: "checkbox" });
  needs(box, "pool/set_read_only");
  box.checked = page.state.read_only;
  box.addEventListener("change", async () => {
    const reply = await page.act({ action: "set_read_only", on: box.checked });
    if (!reply.ok) box.checked = page.state.read_only;
  });
  return [el("label.pool-share", {}, box, el("span", {}, "Share read-only: editors run and copy it, only owners change it"))];
}
