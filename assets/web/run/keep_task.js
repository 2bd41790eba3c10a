// "Keep as a task": a run whose answer is right, corrected with What if or not, becomes one of its pool's own tasks.

import { post } from "../lib/api.js";
import { el } from "../lib/dom.js";
import { needs } from "../lib/rights.js";

/** @param {import("../types").EpisodeHead} episode */
export function keepTaskButton(episode) {
  const title = "Its query, its answer and the plan that led to it become one of this pool's own tasks.";
  const node = needs(el("button.podium-link", { type: "button", title }, "Keep as a task"), "POST /api/episodes/{episode_id}/task");
  node.addEventListener("click", async () => {
    node.disabled = true;
    try {
      const { pool, problem } = await post(`/api/episodes/${encodeURIComponent(episode.id)}/task`, {});
      if (problem) throw new Error(problem);
      node.replaceWith(el("a.podium-link", { href: `/train?tasks=${encodeURIComponent(pool)}` }, "Kept: look at the tasks"));
    } catch (error) {
      node.textContent = `Not kept: ${error.message}`;
    }
  });
  return node;
}
