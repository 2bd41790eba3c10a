// One worker's card: its light, what it is and where it runs, its figures, and what can be done with it.

import { button } from "../lib/controls.js";
import { count, dollars, el, icon, seconds } from "../lib/dom.js";
import { ACTIONS, LIGHTS, kindIcon } from "../lib/icons.js";
import { needs } from "../lib/rights.js";
import { openEvidence } from "./evidence.js";
import { factsOf } from "./facts.js";
import { openRemove, openTry, openWorker } from "./worker_dialogs.js";
import { testOnCard, testResult } from "./worker_test.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */

const PLACES = { here: "local", machine: "server on this machine", remote: "remote" };
const REFRESHABLE = ["mcp", "function"];

/**
 * @param {PoolPage} page
 * @param {import("../types").WorkerCard} worker
 */
export function workerCard(page, worker) {
  const card = el("article.page-card", { "data-name": worker.name, "data-role": worker.role });
  card.classList.toggle("pool-linked", worker.name === page.linked);
  card.classList.toggle("page-off", !worker.enabled);
  const badge = el("span.page-badge", {}, icon(kindIcon(worker)));
  const title = el("div.page-card-title", {}, el("h2", {}, worker.name), el("span", {}, `${worker.label} · ${PLACES[worker.place]}`));
  const head = el("div.page-card-head", {}, badge, title, toggle(page, worker));
  card.append(head, light(worker), el("p.page-about", { title: worker.description }, worker.description));
  if (worker.kind === "extractor") card.append(el("p.page-stand-in", {}, "Rule-based: stands in for an LLM reader."));
  if (worker.points_at) card.append(el("code.page-points", { title: worker.points_at }, worker.points_at));
  if (worker.agreement) card.append(el("p.pool-agreement", {}, worker.agreement));
  card.append(marks(worker), figures(worker));
  const facts = page.facts.get(worker.name) || worker.facts;
  if (facts) card.append(factsOf(page, worker, facts));
  card.append(actions(page, worker));
  const test = page.tests.get(worker.name);
  if (test) card.append(testResult(test));
  return card;
}

/**
 * A light that is read without its colour, too: every state has a shape and a word.
 * @param {import("../types").WorkerCard} worker
 */
function light(worker) {
  const state = worker.enabled ? worker.light.light : "off";
  const [word, path] = LIGHTS[state];
  const box = el("div.page-health", { "data-health": state }, icon(path), el("b", {}, word));
  if (worker.enabled && state !== "unknown") box.append(el("span", { title: lightWords(worker.light) }, worker.light.sentence));
  return box;
}

/** @param {import("../types").WorkerHealth} report */
function lightWords(report) {
  const parts = [report.sentence];
  if (report.probe) parts.push(`last probe ${new Date(report.probe.at).toLocaleTimeString()}: ${report.probe.text}`);
  if (report.calls) parts.push(`${count(report.errors)} of its last ${count(report.calls)} calls failed`);
  if (report.median_latency_s !== null) parts.push(`${seconds(report.median_latency_s)} at the median`);
  if (report.circuit.state !== "closed") parts.push(`circuit ${report.circuit.state} after ${report.circuit.failures} failures`);
  return parts.join("; ");
}

/**
 * What is out of the ordinary about it, as chips.
 * @param {import("../types").WorkerCard} worker
 */
function marks(worker) {
  const list = el("ul.pool-marks");
  /** @type {(text: string, kind?: string, title?: string) => void} */
  const add =
    (text, kind = "", title = "") => list.append(el("li", { class: kind && `pool-mark-${kind}`, ...(title ? { title } : {}) }, text));
  if (worker.permissions) add("sandboxed", "safe", `It runs in the sandbox: ${worker.permissions}.`);
  if (worker.runs_program) add(worker.kind === "function" ? "runs as you" : "runs a program", "warn", `It starts ${worker.runs_program} on this machine, outside the sandbox.`);
  if (worker.isolated && worker.light.probe)
    add(isolation(worker.light.probe), worker.light.probe.ok ? "safe" : "warn", worker.light.probe.text);
  if (worker.light.circuit.state !== "closed") add(`circuit ${worker.light.circuit.state}`, "warn");
  if (worker.judge_only) add("judge", "", "It only grades answers: no plan calls it, and it orchestrates nothing.");
  if (worker.config.mended?.length)
    add("arguments mended", "", `Changed at import, so that they can be used here: ${worker.config.mended.join("; ")}.`);
  if (worker.cache) add("cached", "", "An equal call that sees the same gets the recorded observation.");
  if (worker.fallback) add(`falls back to ${worker.fallback}`);
  if (worker.output)
    add("output checked", "", worker.output.pattern ? `It must match ${worker.output.pattern}` : "It must be JSON that fits a schema.");
  if (worker.rate_limit) add(`${worker.rate_limit} a minute at most`);
  list.hidden = !list.children.length;
  return list;
}

/**
 * The sandbox's level in two or three words; the whole sentence is its title.
 * @param {import("../types").Probe} probe
 */
function isolation(probe) {
  if (!probe.ok) return "no sandbox";
  return (probe.text.match(/isolated by [^(;,.:]+/i)?.[0].trim() || "isolated").toLowerCase();
}

/** @param {import("../types").WorkerCard} worker */
function figures(worker) {
  const shown = [];
  if (worker.calls) shown.push(["Calls", count(worker.calls)]);
  if (worker.success !== null) shown.push(["Success", `${Math.round(worker.success * 100)} %`]);
  if (worker.median_latency_s !== null) shown.push(["Median", seconds(worker.median_latency_s)]);
  if (worker.light.error_rate) shown.push(["Errors", `${Math.round(worker.light.error_rate * 100)} %`]);
  if (worker.config.api_key) shown.push(["Key", worker.config.api_key]);
  if (worker.price_in || worker.price_out) shown.push(["$/M tokens", `${worker.price_in} / ${worker.price_out}`]);
  if (worker.price_call) shown.push(["Per call", dollars(worker.price_call)]);
  const box = el("dl.page-figures");
  for (const [name, value] of shown) {
    box.append(el("div", {}, el("dt", {}, name), el("dd", {}, value)));
  }
  box.hidden = !shown.length;
  return box;
}

/**
 * @param {PoolPage} page
 * @param {import("../types").WorkerCard} worker
 */
function toggle(page, worker) {
  const label = `${worker.enabled ? "Disable" : "Enable"} ${worker.name}`;
  const node = needs(el("button.page-toggle", {
    type: "button", role: "switch", "aria-checked": String(worker.enabled), "aria-label": label, "data-key": `toggle-${worker.name}`,
  }), "pool/set_enabled");
  node.disabled = page.isOld();
  node.addEventListener("click", async () => {
    const reply = await page.act({ action: "set_enabled", name: worker.name, enabled: !worker.enabled });
    if (!reply.ok) return;
    const [state, question] = worker.enabled ? ["off", "What did it bring?"] : ["on", "What does it bring?"];
    page.say(`${worker.name} is ${state}`, false, [question, () => openEvidence(page, worker.name)]);
  });
  return node;
}

/**
 * @param {PoolPage} page
 * @param {import("../types").WorkerCard} worker
 */
function actions(page, worker) {
  const row = el("div.page-actions");
  /**
   * @type {(command: string, label: string, path: string, work: (event: { currentTarget: HTMLButtonElement }) => void,
   *   brief?: boolean, about?: string) => void}
   */
  const add = (command, label, path, work, brief = false, about = "") => {
    const node = needs(button("", work, "page-action"), command);
    node.append(icon(path), brief ? "" : label);
    if (brief) node.title = label;
    if (about) node.title = about;
    node.dataset.key = `${label}-${worker.name}`;
    node.setAttribute("aria-label", `${label} ${worker.name}`);
    row.append(node);
  };
  if (!page.isOld()) add("pool/test_worker", "Test", ACTIONS.pulse, (event) => testOnCard(page, worker.name, event.currentTarget), false, "Call it once with a sample input, unless a call may change something outside");
  add("pool/try_worker", "Try it", ACTIONS.play, () => openTry(page, worker), false, "Call it with arguments of your own");
  if (page.isOld()) return row;
  add("pool/save_worker", "Edit", ACTIONS.pencil, () => openWorker(page, worker, worker.name));
  if (worker.judge_only) add("pool/measure_judge", "Measure", ACTIONS.scale, (event) => measureJudge(page, worker.name, event.currentTarget), false, "Compare it with the verdicts that you gave on answers");
  else add("pool/evidence", "Measure", ACTIONS.scale, () => openEvidence(page, worker.name));
  add("pool/save_worker", "Clone", ACTIONS.copy, () => openWorker(page, { ...worker, name: `${worker.name}-copy`.slice(0, 48) }, null), true);
  if (REFRESHABLE.includes(worker.kind)) add("pool/refresh", "Refresh", ACTIONS.again, () => page.act({ action: "refresh", name: worker.name }), true);
  add("pool/remove_worker", "Remove", ACTIONS.trash, () => openRemove(page, worker), true);
  return row;
}

/**
 * Have a judge grade the answers that the person has judged.
 * @param {PoolPage} page
 * @param {string} name
 * @param {HTMLButtonElement} node
 */
async function measureJudge(page, name, node) {
  node.classList.add("page-busy");
  node.disabled = true;
  const reply = await page.act({ action: "measure_judge", name });
  if (reply.ok) return page.show();
  node.classList.remove("page-busy");
  node.disabled = false;
}
