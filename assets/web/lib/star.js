// The star of a run: a starred trace is a demonstration that SFT imitates.

import { getDocument, post } from "./api.js";
import { el, icon } from "./dom.js";
import { ACTIONS } from "./icons.js";
import { needs } from "./rights.js";

/** What is written on the toggle before and after; an edited run is saved rather than liked. */
export const STAR = ["Star", "Starred"];
export const SAVE = ["Save as demonstration", "Saved as demonstration"];

/**
 * A toggle for an episode; `on` is its present state, null when it has to be asked for. Without `words` it is a
 * star alone.
 * @param {string} episode
 * @param {boolean|null} on
 * @param {string[]|null} words
 */
export function starButton(episode, on = null, words = null) {
  const word = el("span", { class: words ? "" : "podium-offscreen" });
  const node = needs(el("button.podium-star", { type: "button" }, icon(ACTIONS.star), word), "POST /api/episodes/{episode_id}/star");
  const address = `/api/episodes/${encodeURIComponent(episode)}/star`;
  /** @param {boolean} state */
  const show = (state) => {
    node.setAttribute("aria-pressed", String(state));
    word.textContent = (words || STAR)[Number(state)];
    node.title = state ? "Starred: SFT imitates this run. Press to take the star back." : "Star this run: SFT will imitate it.";
  };
  show(Boolean(on));
  if (on === null) getDocument(address).then((star) => show(star.on), () => {});
  node.addEventListener("click", async (event) => {
    event.preventDefault();
    event.stopPropagation();
    const starred = node.getAttribute("aria-pressed") !== "true";
    try {
      show((await post(address, { on: starred })).on);
    } catch (error) {
      node.title = `The star could not be saved. ${error.message}`;
    }
  });
  return node;
}
