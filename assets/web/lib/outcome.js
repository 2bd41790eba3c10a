// How an episode ended, as a chip: green only where a task's verifier found the answer right, amber where nothing
// verified it, red where it is wrong or there is none.

import { count, el } from "./dom.js";

const OUTCOMES = {
  answered: "Answered",
  gave_up: "Gave up",
  max_rounds: "Out of rounds",
  max_tokens: "Out of tokens",
  max_cost: "Out of budget",
  deadline: "Out of time",
  stopped: "Stopped",
  orchestrator_failed: "Orchestrator failed",
  rejected: "Rejected",
};

/** Whether nothing more will come of an episode by itself or by a decision about its plan.
 * @param {import("../types").EpisodeHead | undefined} episode */
export function isOver(episode) {
  return Boolean(episode) && episode.state !== "running" && episode.state !== "waiting";
}

/**
 * The steps of an episode, other tries of a rejected call apart: "2 steps (1 failed), 8 other tries". Without `noun` it
 * begins with the bare number.
 * @param {import("../types").StepCounts} counts
 */
export function describeSteps({ steps, failed, tries }, noun = "") {
  const name = noun && ` ${noun}${steps === 1 ? "" : "s"}`;
  return `${count(steps)}${name}${failed ? ` (${count(failed)} failed)` : ""}${tries ? `, ${count(tries)} other ${tries === 1 ? "try" : "tries"}` : ""}`;
}

/** @param {import("../types").EpisodeHead} episode */
export function outcomeChip(episode) {
  const [state, word] = describe(episode);
  return el("span.run-summary-pill", { "data-state": state, "data-testid": "state" }, word);
}

/** The kind of result, which gives the colour, and its words.
 * @param {import("../types").EpisodeHead} episode */
function describe({ state, outcome, verdict, task, refused, not_judged: unjudged }) {
  if (state === "running") return ["running", "Running"];
  if (state === "waiting") return ["waiting", "Waits for approval"];
  if (state === "interrupted") return ["stopped", "Interrupted"];
  const word = refused ? "No worker fits" : OUTCOMES[outcome] || outcome;
  if (outcome === "stopped" || outcome === "rejected") return ["stopped", word];
  if (outcome !== "answered") return ["failed", word];
  if (verdict) return [verdict.correct ? "correct" : "wrong", word];
  if (refused) return ["unverified", word];
  if (unjudged) return ["unverified", `${word}, not judged`];
  return ["unverified", task ? word : `${word}, not verified`]; // the verdict of a task is on its way
}
