// The texts of a pool that leave this machine, which no scan can judge: a person reads them before anything is sent.

import { el } from "../lib/dom.js";

/**
 * The texts and the question without which "Publish" stays off; nothing where the pool has no text of its own.
 * @param {import("../types").SentTextDocument[]} texts
 * @param {HTMLButtonElement} publishing
 * @param {() => boolean} isCurrent whether the preview is still that of the choices
 */
export function ownTexts(texts, publishing, isCurrent) {
  if (!texts.length) return [];
  const list = el("dl.publish-texts", { tabindex: "0", "aria-label": "Texts of the pool" });
  for (const { worker, field, text } of texts)
    list.append(el("dt", {}, el("b", {}, worker), ` ${field}`), el("dd", {}, text));
  const box = el("input", { type: "checkbox" });
  const mayPublish = !publishing.disabled;
  publishing.disabled = true;
  box.addEventListener("change", () => {
    publishing.disabled = !(box.checked && mayPublish && isCurrent());
  });
  const words = "I have read them: they hold no secret, and whoever sees the repository may read them.";
  const why = "No scan knows whether they hold a secret, such as a password in plain words or a customer's name.";
  return [
    el("h3.publish-left-head", {}, "Texts of your pool that leave this machine"), el("p.publish-mute", {}, why), list,
    el("label.publish-question", {}, box, words),
  ];
}
