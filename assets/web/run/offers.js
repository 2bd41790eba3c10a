// What can be tried next when a run has no answer, or none that can be trusted: each one click away.

import { post } from "../lib/api.js";
import { el } from "../lib/dom.js";
import { needs } from "../lib/rights.js";

/** The offers below a result. `onStarted(id)` hears of a run that is started here.
 * @param {import("../types").EpisodeHead} episode
 * @param {(id: string) => void} onStarted */
export function offerList(episode, onStarted) {
  const problem = el("p.run-offers-problem", { role: "alert" });
  const list = el("ul.run-offers-list");
  for (const offer of episode.offers) list.append(el("li", {}, control(episode, offer, onStarted, problem)));
  return el("div.run-offers", { "data-testid": "offers" }, el("h2", {}, "Try next"), list, problem);
}

/**
 * @param {import("../types").EpisodeHead} episode
 * @param {import("../types").Offer} offer
 * @param {(id: string) => void} onStarted
 * @param {HTMLElement} problem
 */
function control(episode, offer, onStarted, problem) {
  if (offer.href) return el("a.podium-link", { href: offer.href }, offer.text);
  const button = needs(el("button.podium-link", { type: "button" }, offer.text), "POST /api/episodes/{episode_id}/again");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const body = { orchestrator: offer.orchestrator, query: offer.query };
      onStarted((await post(`/api/episodes/${encodeURIComponent(episode.id)}/again`, body)).episode);
    } catch (error) {
      problem.textContent = error.message;
    } finally {
      button.disabled = false;
    }
  });
  return button;
}
