// What-ifs on copies: the choice in the editor, and what the edited run changed on the copies beside the originals.

import { el } from "../lib/dom.js";

/** Whether the steps that may change something work on copies; offered only where there are such steps. */
export class CopiesChoice {
  constructor() {
    this.box = el("input", { type: "checkbox" });
    this.box.checked = true;
    this.about = el("p.what-if-note");
    this.root = el("div.what-if-copies", {}, el("label", {}, this.box, "Work on copies"), this.about);
    this.box.addEventListener("change", () => this.explain());
    this.offer([]);
  }

  /** @param {number[]} steps that may change something */
  offer(steps) {
    this.steps = steps;
    this.root.hidden = !steps.length;
    this.explain();
  }

  explain() {
    const steps = `${this.steps.length > 1 ? "Steps" : "Step"} ${this.steps.join(", ")}`;
    this.about.textContent = this.box.checked
      ? `${steps} may change something. Files, folders and SQLite databases are copied first; the originals stay as they are.`
      : `${steps} will be called for real.`;
  }

  get chosen() {
    return !this.root.hidden && this.box.checked;
  }
}

/**
 * Both worlds: the originals as they are, and the copies as the what-if left them.
 * @param {import("../types").CopiesDocument} copies
 * @param {boolean} comparing
 */
export function drawCopies({ places, changes, compared }, comparing) {
  const box = el("div.what-if-worlds", {}, el("p.what-if-note", {}, `It worked on copies of ${places.join(", ")}; the originals were not changed.`));
  if (comparing) box.append(el("p.what-if-note", {}, "Comparing the copies with the originals …"));
  else if (!compared) box.append(el("p.what-if-note", {}, "It did not come to its end, so the copies were not compared."));
  else if (!changes.length) box.append(el("p.what-if-note", {}, "Nothing is other on the copies."));
  else box.append(el("div.what-if-worlds-scroll", {}, table(changes)));
  return box;
}

/** @param {import("../types").ChangeDocument[]} changes */
function table(changes) {
  const head = el("thead", {}, el("tr", {}, ...["Where", "Original", "Copy"].map((name) => el("th", { scope: "col" }, name))));
  const rows = changes.map(({ place, item, original, on_copy: onCopy }) =>
    el(
      "tr", {}, el("th", { scope: "row", title: place }, [place.split("/").at(-1), item].filter(Boolean).join(": ")),
      el("td", { "data-name": "Original" }, original || "nothing"), el("td", { "data-name": "Copy" }, onCopy || "nothing"),
    ));
  return el("table.what-if-outcome", {}, el("caption.podium-offscreen", {}, "What the what-if changed on the copies"), head, el("tbody", {}, ...rows));
}
