// Which charts a job can have, and which of its metrics each of them draws.

/**
 * A chart draws its `keys` as (key, label), or every metric that begins with `prefix`.
 * @typedef {{ id: string, group: string, title: string, about: string, keys?: string[][], prefix?: string, share?: boolean,
 *   exact?: boolean, tight?: boolean }} ChartSpec
 */

/** What a group of charts is about, in the order of the page.
 * @type {Record<string, string>} */
export const GROUPS = {
  outcome: "What it has learnt", reward: "What it is rewarded for", plans: "How it plans", optimizer: "The optimizer", speed: "Speed",
};

/** In the order of the groups.
 * @type {ChartSpec[]} */
export const CHARTS = [
  { id: "reward", group: "outcome", title: "Reward", about: "Weighted sum of the terms, mean over episodes", keys: [["reward", ""]] },
  {
    id: "solved", group: "outcome", title: "Solved", about: "Share of episodes with the right answer",
    keys: [["rollout/correct", "rollouts"], ["check/correct", "validation"]], share: true,
  },
  {
    id: "pools", group: "outcome", title: "Solved, by pool", about: "Validation tasks on the pool as it is, renamed, and on pools that training does not draw",
    keys: [["check/seen", "seen"], ["check/renamed", "renamed"], ["check/unseen", "unseen"]], share: true,
  },
  {
    id: "valid", group: "outcome", title: "Valid turns", about: "Share of turns that can be run",
    keys: [["rollout/valid_turns", "rollouts"], ["check/valid_turns", "validation"]], share: true,
  },
  {
    id: "accuracy", group: "outcome", title: "Token accuracy", about: "Share of the tokens it is to learn that it would have written",
    keys: [["mean_token_accuracy", ""]], share: true,
  },
  { id: "levels", group: "outcome", title: "Success by task level", about: "As the curriculum sees it", prefix: "level/", share: true },
  { id: "terms", group: "reward", title: "Reward terms", about: "Mean of each term before its weight", prefix: "term/", share: true },
  {
    id: "recursion", group: "reward", title: "Recursive calls", about: "Share of right answers before the call and after it",
    keys: [["recursion/first", "first answer"], ["recursion/last", "last answer"]], share: true,
  },
  { id: "weights", group: "reward", title: "Annealed weights", about: "Of the reward terms whose weight falls to 0", prefix: "weight/" },
  {
    id: "groups", group: "reward", title: "Groups that teach nothing", about: "All rewards equal: drawn again, or kept to fill the batch",
    keys: [["groups/skipped", "skipped"], ["groups/equal", "kept all the same"]],
  },
  { id: "status", group: "plans", title: "Share of each Status", about: "How the steps of a round ended", prefix: "status/", share: true },
  { id: "workers", group: "plans", title: "Worker shares", about: "Which workers the steps go to", prefix: "worker/", share: true, tight: true },
  { id: "length", group: "plans", title: "Length", about: "Tokens that the model writes per episode", keys: [["rollout/length", ""]] },
  { id: "turns", group: "plans", title: "Turns and steps", about: "Per episode", keys: [["rollout/turns", "turns"], ["rollout/steps", "steps"]] },
  { id: "width", group: "plans", title: "Parallel width", about: "Most steps of an episode that can run at once", keys: [["rollout/width", ""]] },
  {
    id: "clipped", group: "plans", title: "Cut off", about: "Share of episodes that hit the length limit", keys: [["completions/clipped_ratio", ""]],
    share: true,
  },
  { id: "loss", group: "optimizer", title: "Loss", about: "What the optimizer lowers", keys: [["loss", ""]] },
  { id: "entropy", group: "optimizer", title: "Entropy", about: "How undecided it is about the next token", keys: [["entropy", ""]] },
  { id: "kl", group: "optimizer", title: "KL", about: "Distance from where it began", keys: [["kl", ""]] },
  { id: "rate", group: "optimizer", title: "Learning rate", about: "Of the optimizer", keys: [["learning_rate", ""]], exact: true },
  {
    id: "time", group: "speed", title: "Seconds a step", about: "And what of them went into episodes",
    keys: [["step_time", "step"], ["time/rollouts_s", "rollouts"], ["time/generation_s", "of it generation"]],
  },
  { id: "speed", group: "speed", title: "Tokens per second", about: "While generating", keys: [["time/tokens_per_s", ""]] },
];

/** @type {Record<string, string>} */
export const STATUS_COLOURS = { OK: "--podium-ok", PARSE_ERR: "--podium-err", EXEC_ERR: "--podium-series-4", TIMEOUT: "--podium-series-8" };

/**
 * The lines of a chart among the metrics that are there: key and label.
 * @param {ChartSpec} chart
 * @param {Record<string, unknown>} series
 */
export function keysOf(chart, series) {
  if (chart.keys) return chart.keys.filter(([key]) => series[key]);
  return Object.keys(series)
    .filter((key) => key.startsWith(chart.prefix) && !key.endsWith("/spread"))
    .map((key) => [key, key.slice(chart.prefix.length)])
    .sort((a, b) => order(a[1]) - order(b[1]) || a[1].localeCompare(b[1]));
}

/** @param {string} name */
function order(name) {
  const place = Object.keys(STATUS_COLOURS).indexOf(name);
  return place < 0 ? 99 : place;
}
