/* What workers want of this machine and its owner, shown to a person before they are switched on. */

import { el } from "../lib/dom.js";
import { button } from "../lib/controls.js";
import { needs } from "../lib/rights.js";

/** @typedef {(choose: (choice: boolean) => void) => HTMLElement[]} Foot */

/**
 * Ask about what one worker wants. Resolves to true when the person agrees.
 * @param {string} name
 * @param {string[]} wants
 */
export function askConsent(name, wants) {
  /** @type {Foot} */
  const foot = (choose) => [button("Cancel", () => choose(false)), button("I have read this: go on", () => choose(true), "page-primary")];
  return openConsent(`${name} wants`, [wantList(wants)], foot);
}

/**
 * Ask about every worker of an imported pool that wants something. Resolves to {name: wants} of the ticked ones.
 * @param {Record<string, string[]>} wants
 */
export async function askAboutPool(wants) {
  const boxes = Object.entries(wants).map(([name, sentences]) => {
    const box = el("input", { type: "checkbox", name });
    return { name, box, node: el("div.pool-consent-worker", {}, el("label", {}, box, el("b", {}, name)), wantList(sentences)) };
  });
  const lead = el("p.page-lead", {}, "These workers are off. Switch on those whose wants you have read and agree with; the others stay off.");
  /** @type {Foot} */
  const foot = (choose) => [
    button("Leave all off", () => choose(false)),
    needs(button("Switch on the ticked", () => choose(true), "page-primary"), "pool/switch_on"),
  ];
  const agreed = await openConsent("This pool wants", [lead, ...boxes.map((row) => row.node)], foot);
  const ticked = boxes.filter((row) => agreed && row.box.checked);
  return Object.fromEntries(ticked.map((row) => [row.name, wants[row.name]]));
}

/** @param {string[]} wants */
function wantList(wants) {
  return el("ul.pool-consent-wants", {}, ...wants.map((want) => el("li", {}, want)));
}

/**
 * A dialog above everything, drawers too. Resolves to the choice; Escape is a no.
 * @param {string} title
 * @param {HTMLElement[]} parts
 * @param {Foot} foot
 * @returns {Promise<boolean>}
 */
export function openConsent(title, parts, foot) {
  return new Promise((resolve) => {
    let choice = false;
    const heading = el("h2", { id: "pool-consent-title" }, title);
    const dialog = el("dialog.pool-consent", { "aria-labelledby": "pool-consent-title" });
    /** @param {boolean} chosen */
    const choose = (chosen) => {
      choice = chosen;
      dialog.close();
    };
    dialog.append(heading, ...parts, el("div.pool-consent-foot", {}, ...foot(choose)));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(choice);
    });
    document.querySelector(".pool-page").append(dialog);
    dialog.showModal();
  });
}
