// The star of a run: a starred trace is a demonstration that SFT imitates.

import { el, icon } from "./dom.js";
import { ACTIONS } from "./icons.js";

/** What is written on the toggle before and after; an edited run is saved rather than liked. */
export const STAR = ["Star", "Starred"];
export const SAVE = ["Save as demonstration", "Saved as demonstration"];

/** A toggle for an episode; `on` is its present state, null when it has to be asked for. Without `words` it is a
 * star alone. */
export function starButton(episode, on = null, words = null) {
  const word = el("span", { class: words ? "" : "podium-offscreen" });
  const node = el("button.podium-star", { type: "button" }, icon(ACTIONS.star), word);
  const address = `/api/episodes/${encodeURIComponent(episode)}/star`;
  const show = (state) => {
    node.setAttribute("aria-pressed", String(state));
    word.textContent = (words || STAR)[Number(state)];
    node.title = state ? "Starred: SFT imitates this run. Press to take the star back." : "Star this run: SFT will imitate it.";
  };
  show(Boolean(on));
  if (on === null) ask(address).then((told) => told && show(told.on));
  node.addEventListener("click", async (event) => {
    event.preventDefault();
    event.stopPropagation();
    const wanted = node.getAttribute("aria-pressed") !== "true";
    const told = await ask(address, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ on: wanted }) });
    if (told) show(told.on);
    else node.title = "The star could not be saved: the studio did not answer.";
  });
  return node;
}

async function ask(address, options = {}) {
  try {
    const answer = await fetch(address, options);
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}
