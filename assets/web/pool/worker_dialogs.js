// A worker's own dialogs: the whole form, "Try it" with any arguments, and removing it.

import { plain } from "../lib/reply.js";
import { attempt, button, select } from "../lib/controls.js";
import { count, el, icon, readable, seconds } from "../lib/dom.js";
import { keyField } from "../lib/fields.js";
import { Form, labelField } from "../lib/form.js";
import { STATUSES } from "../lib/icons.js";
import { needs } from "../lib/rights.js";
import { openEvidence } from "./evidence.js";
import { testOnCard } from "./worker_test.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */
/** @typedef {import("../types").WorkerSpec} WorkerSpec */
/** @typedef {Record<string, any>} Rule */
/** @typedef {import("../lib/reply.js").Problem} Problem */

const COMMON = {
  name: { type: "string", title: "Name", description: "What plans call it: a-z, 0-9, _ and -." },
  description: { type: "string", title: "Description", maxLength: 2000, description: "One or two sentences; the orchestrator reads them." },
};

/**
 * The whole form of a worker; `replacing` is its present name, null for a new one.
 * @param {PoolPage} page
 * @param {WorkerSpec} worker
 * @param {string | null} replacing
 * @param {(() => void) | null} back
 */
export function openWorker(page, worker, replacing, back = null) {
  const kind = page.state.kinds.find((candidate) => candidate.name === worker.kind);
  const basedOn = page.state.pool.based_on;
  const special = specialFields(page, worker);
  const common = new Form({ properties: COMMON, required: ["name", "description"] }, worker);
  const config = new Form(kind.schema, worker.config, { special });
  const advanced = new Form(page.state.advanced_schema, worker, { special });
  const more =
    el("details.page-more", {}, el("summary", {}, "Guards: time-out, retries, output check, fallback, rate, prices, effects, context, judging"), advanced.root);
  const general = el("div.form-general", { role: "alert" });
  const draft = () => ({ ...common.read(), ...advanced.read(), kind: kind.name, enabled: worker.enabled ?? true, config: config.read() });
  /** @param {Problem[]} problems */
  const show = (problems) => {
    /** @type {Problem[]} */
    const own = problems.filter(([where]) => where.startsWith("config.")).map(([where, what]) => [where.slice(7), what]);
    const rest = [...config.show(own), ...advanced.show(common.show(problems.filter(([where]) => !where.startsWith("config."))))];
    if (advanced.root.querySelector(".form-wrong")) more.open = true;
    general.textContent = plain(rest);
    page.drawer.node.querySelector(".form-wrong input, .form-wrong textarea, .form-wrong select")?.focus();
  };
  const save = async () => {
    const document = attempt(draft);
    if (!document) return;
    const reply = await page.command({ action: "save_worker", replacing, worker: document, based_on: basedOn });
    if (!reply.ok) return show(reply.problems);
    page.tests.delete(document.name);
    page.drawer.close();
    if (!replacing) offerNext(page, document.name);
  };
  const configPart = Object.keys(kind.schema.properties || {}).length ? [el("h3", {}, kind.label), config.root] : [];
  const go = needs(button(replacing ? "Save" : "Add worker", save, "page-primary"), "pool/save_worker");
  const foot = page.drawer.foot(button("Cancel", () => page.drawer.close()), go);
  page.drawer.open(
    replacing ? `Edit ${replacing}` : `Add: ${kind.label}`,
    [el("p.page-lead", {}, kind.summary), common.root, ...configPart, more, general, foot], { back },
  );
}

/**
 * After a worker was added: test it, or measure what it brings.
 * @param {PoolPage} page
 * @param {string} name
 */
function offerNext(page, name) {
  page.say(`Added ${name}`, false, ["Test", () => testOnCard(page, name)], ["What does it bring?", () => openEvidence(page, name)]);
}

/**
 * Fields that are more than their type says: key references, and the choice of another worker.
 * @param {PoolPage} page
 * @param {WorkerSpec} worker
 * @returns {(name: string, rule: Rule, value: any) => import("../lib/form.js").ReadableField | null}
 */
function specialFields(page, worker) {
  return (name, rule, value) => {
    if (name === "api_key") return keyField(page, { label: "API key", about: rule.description || "", value: value ?? rule.default ?? "" });
    if (name === "fallback") {
      const others = page.state.pool.workers.filter((other) => other.name !== worker.name && other.role !== "recursion" && !other.judge_only);
      return choiceField(rule, value, [["", "none"], ...others.map((other) => [other.name, other.name])]);
    }
    if (name === "summarizer") {
      const agents = page.state.pool.workers.filter((other) => other.name !== worker.name && other.role === "agent" && !other.judge_only);
      return choiceField(rule, value, [["", "none"], ...agents.map((other) => [other.name, other.name])], "Summarizer");
    }
    return name === "output" ? outputField(rule, value) : null;
  };
}

/**
 * @param {Rule} rule
 * @param {string} value
 * @param {string[][]} options
 * @param {string} label
 */
function choiceField(rule, value, options, label = "Fallback") {
  const node = select(options, value ?? "");
  const field = labelField(label, node, rule.description || "");
  return { ...field, read: () => node.value || undefined };
}

/**
 * What a result must be: anything, text that a pattern matches, or JSON that a schema accepts.
 * @param {Rule} rule
 * @param {import("../types").Output} value
 */
function outputField(rule, value) {
  const text = el("textarea.form-code", { rows: "3", spellcheck: "false", "aria-label": "The pattern or the schema" });
  const how =
    select([["", "anything"], ["pattern", "text that matches a pattern"], ["json_schema", "JSON that a schema accepts"]], "", () => {
    text.hidden = !how.value;
  });
  how.value = value?.pattern ? "pattern" : value?.json_schema ? "json_schema" : "";
  text.value = value?.pattern ?? (value?.json_schema ? JSON.stringify(value.json_schema, null, 1) : "");
  text.hidden = !how.value;
  const field = labelField("Output must be", how, rule.description || "");
  field.node.insertBefore(text, how.nextSibling);
  const read = () => {
    if (!how.value) return undefined;
    if (how.value === "pattern") return { pattern: text.value };
    try {
      return { json_schema: JSON.parse(text.value) };
    } catch (error) {
      field.say(`write JSON: ${error.message}`);
      throw error;
    }
  };
  return { ...field, read };
}

/**
 * @param {PoolPage} page
 * @param {import("../types").WorkerCard} worker
 */
export function openRemove(page, worker) {
  const remove = async () => {
    const reply = await page.act({ action: "remove_worker", name: worker.name });
    if (reply.ok) page.drawer.close();
  };
  const go = needs(button(`Remove ${worker.name}`, remove, "page-danger"), "pool/remove_worker");
  const foot = page.drawer.foot(button("Keep it", () => page.drawer.close()), go);
  page.drawer.open(`Remove ${worker.name}?`, [
    el("p.page-lead", {}, "The new version of the pool will not have this worker. Earlier versions and past runs keep it."), foot,
  ]);
}

/**
 * @param {PoolPage} page
 * @param {WorkerSpec} worker
 */
export async function openTry(page, worker) {
  const panel = await tryPanel(page, worker);
  if (!panel) return;
  const foot = page.drawer.foot(button("Close", () => page.drawer.close()), panel.call);
  page.drawer.open(`Try ${worker.name}`, [el("p.page-lead", {}, worker.description), ...panel.parts, foot]);
}

/**
 * A form of the worker's arguments with a sample, the button that calls it, and a place for the answer.
 * @param {PoolPage} page
 * @param {WorkerSpec} worker
 */
export async function tryPanel(page, worker) {
  const opened = await page.act({ action: "try_worker", worker });
  if (!opened.ok) return null;
  const last = page.tried.get(worker.name) || { values: opened.sample, seen: opened.seen };
  const form = new Form(opened.parameters, last.values);
  const seen = Object.assign(el("textarea", { rows: "3" }), { value: last.seen ?? "" });
  const sees = labelField("It may see", seen, "The output of an earlier step; leave it empty for none.").node;
  sees.hidden = opened.seen === null;
  const out = el("div.page-out", { "aria-live": "polite" });
  const call = needs(button("Call it", async () => {
    const values = attempt(() => form.read());
    if (!values) return;
    page.tried.set(worker.name, { values, seen: seen.value });
    call.disabled = true;
    out.replaceChildren(el("p.page-lead", {}, "Calling …"));
    const reply = await page.act({ action: "try_worker", worker, arguments: values, seen: seen.value });
    call.disabled = false;
    out.replaceChildren(...(reply.observation ? observationParts(reply.observation) : []));
  }, "page-primary"), "pool/try_worker");
  const returns = opened.returns
    ? [el("p.pool-try-returns", {}, "Returns ", el("code", {}, opened.returns), ". A plan quotes a field as ", el("code", {}, "$1.name"), ".")]
    : [];
  return { parts: [form.root, sees, ...returns, out], call };
}

/** @param {import("../types").ObservationDocument} observation */
function observationParts(observation) {
  const [word, path] = STATUSES[observation.status];
  const status = el("span.podium-status", {}, icon(path), el("b", {}, word));
  const tokens = observation.tokens_in + observation.tokens_out;
  const facts = [seconds(observation.latency_s), tokens ? `${count(observation.tokens_in)} → ${count(observation.tokens_out)} tokens` : ""];
  const head = el("div.page-out-head", { "data-status": observation.status }, status, el("span", {}, facts.filter(Boolean).join(" · ")));
  const notes = observation.notes.length ? [el("p.page-about", {}, `Read as meant. ${observation.notes.join("; ")}.`)] : [];
  return [head, ...notes, el("pre.page-value", { tabindex: "0", "aria-label": "Result" }, observation.error || readable(observation.value))];
}
