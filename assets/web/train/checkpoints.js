// The checkpoints of a job and their evaluations, as tables.

import { button } from "../lib/controls.js";
import { count, el, icon, seconds } from "../lib/dom.js";
import { ACTIONS } from "../lib/icons.js";
import { needs } from "../lib/rights.js";
import { bytes, labelStage, moment, runLink, share, shareInterval } from "./formats.js";

/**
 * What a job has kept, and how it did on tasks that no training has seen.
 * @param {import("../types").JobView} document
 * @param {(thing: { kind: string, name: string, label: string }) => unknown} manage
 */
export function checkpointParts({ id, checkpoints, evaluations }, manage) {
  const parts = [];
  if (!checkpoints.length) parts.push(el("p.train-empty", {}, "No checkpoint yet. The first comes after saving.every steps, and when you stop the job."));
  else parts.push(checkpointTable(checkpoints, manage));
  if (evaluations.length) {
    const again = el("a.podium-link", { href: `/compare?tab=regrade&job=${encodeURIComponent(id)}` }, "Grade again");
    parts.push(el("h3.train-job-sub", {}, "Evaluation on tasks that no training has seen ", again), evaluationTable(evaluations));
  }
  return parts;
}

/**
 * @param {import("../types").JobCheckpoint[]} checkpoints
 * @param {(thing: { kind: string, name: string, label: string }) => unknown} manage
 */
function checkpointTable(checkpoints, manage) {
  const { frame, body } = table(["Checkpoint", "Solved on validation", "Valid turns", "Tested", "Saved", ""]);
  for (const checkpoint of checkpoints) {
    const first = el("span", {}, el("b", { title: checkpoint.name }, checkpoint.label));
    if (checkpoint.best) first.append(el("span.page-tag", {}, "best"));
    const kind = checkpoint.kind === "adapter" ? "adapter" : "whole model";
    const name = el(
      "span.train-job-checkpoint", {}, first,
      el(
        "small", {}, `${describeStage(checkpoint)}, step ${count(checkpoint.step)} · ${kind}, ${bytes(checkpoint.bytes)}`,
      ),
    );
    const run = el(
      "a.page-button.train-job-run", { href: runLink(checkpoint.name), "aria-label": `Run it: ${checkpoint.name}` }, icon(ACTIONS.play),
      "Run it",
    );
    const publish = el(
      "a.podium-link", { href: `/publish?orchestrator=${encodeURIComponent(checkpoint.name)}`, "aria-label": `Publish ${checkpoint.name}` },
      "Publish",
    );
    const thing = { kind: "checkpoint", name: checkpoint.name, label: checkpoint.label };
    const remove = needs(button("", () => manage(thing), "page-action"), "housekeeping/delete");
    remove.setAttribute("aria-label", `Delete ${checkpoint.name}`);
    remove.append(icon(ACTIONS.trash));
    const doing = el("span.train-job-doing", {}, run, publish, remove);
    const tested = checkpoint.evaluation ? `${share(checkpoint.evaluation.mean)} of ${checkpoint.evaluation.tasks}` : "–";
    line(body, [
      ["Checkpoint", name], ["Solved", share(checkpoint.correct)], ["Valid turns", share(checkpoint.valid_turns)], ["Tested", tested],
      ["Saved", moment(checkpoint.created_at)], ["", doing],
    ]);
  }
  return frame;
}

/** @param {import("../types").JobCheckpoint} checkpoint */
function describeStage({ stage, phase }) {
  const name = labelStage(stage);
  return phase ? `${name}, phase ${phase}` : name;
}

/** @param {import("../types").JobEvaluation[]} evaluations */
function evaluationTable(evaluations) {
  const { frame, body } = table(["Orchestrator", "Solved", "95 % interval", "Tasks", "Median time", "By task"]);
  for (const evaluation of evaluations) {
    const cells = el("span.train-job-cells");
    for (const cell of evaluation.cells) cells.append(el("span", {}, `${cell.family} ${cell.level} · ${share(cell.mean)}`));
    line(body, [
      [
        "Orchestrator",
        el(
          "b", { title: evaluation.orchestrator },
          !evaluation.condition || evaluation.condition === "seen" ? evaluation.label : `${evaluation.label}, ${evaluation.condition}`,
        ),
      ],
      ["Solved", share(evaluation.mean)], ["95 %", shareInterval(evaluation.interval)],
      ["Tasks", count(evaluation.tasks)], ["Median time", seconds(evaluation.p50_s)], ["By task", cells],
    ]);
  }
  return frame;
}

/** @param {string[]} names */
function table(names) {
  const row = el("tr");
  for (const name of names) row.append(name ? el("th", { scope: "col" }, name) : el("td"));
  const head = el("thead", {}, row);
  const body = el("tbody");
  const node = el("table.traces-table.train-job-table", {}, head, body);
  const frame = el("div.traces-frame", { tabindex: "0", role: "group", "aria-label": names[0] }, node);
  return { frame, body };
}

/**
 * @param {HTMLElement} body
 * @param {[string, string | HTMLElement][]} cells
 */
function line(body, cells) {
  const row = el("tr");
  for (const [name, content] of cells) {
    row.append(el("td", { "data-name": name }, content));
  }
  body.append(row);
}
