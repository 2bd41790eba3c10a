// A link to a run that opens without a login, as it is listed on the run and among a person's accesses.

import { post } from "./api.js";
import { busy, button } from "./controls.js";
import { el } from "./dom.js";
import { needs } from "./rights.js";

/** @typedef {import("../types").ShareLine} ShareLine */

/**
 * A link that works, and the way to take it back; `named` adds the run.
 * @param {ShareLine} link
 * @param {() => Promise<void>} onRevoked
 * @param {boolean} named
 */
export function shareLine(link, onRevoked, named = false) {
  const until = `until ${new Date(link.expires_at).toLocaleDateString(undefined, { dateStyle: "medium" })}`;
  const about = [until, link.user && `by ${link.user}`].filter(Boolean).join(", ");
  const run = named ? [el("a.podium-link", { href: `/?episode=${encodeURIComponent(link.episode)}` }, link.query), " "] : [];
  const problem = el("span.form-problem", { role: "alert" });
  const back = button("Take back", () => busy(back, "Taking back …", async () => {
    problem.textContent = "";
    try {
      await post(`/api/shares/${link.id}/revoke`, {});
      await onRevoked();
    } catch (error) {
      problem.textContent = error.message;
    }
  }), "podium-link");
  back.setAttribute("aria-label", `Take back the link ${about}`);
  const text = el("span.page-share-text", {}, ...run, el("span", {}, about), problem);
  return el("li.page-share", {}, text, link.mine ? needs(back, "POST /api/shares/{key}/revoke") : "");
}
