// What-if beside a run: the way into the editor, the marks on the graph while somebody edits, and, on a what-if,
// what was changed and what came of it. The editor itself is editor.js.

import { getDocument } from "../lib/api.js";
import { count, dollars, el, icon, seconds } from "../lib/dom.js";
import { ACTIONS } from "../lib/icons.js";
import { describeSteps, isOver } from "../lib/outcome.js";
import { needs } from "../lib/rights.js";
import { drawCopies } from "./copies.js";
import { Editor } from "./editor.js";

/** @typedef {import("../run/run_view.js").RunView} RunView */
/** @typedef {import("./editor.js").Fates} Fates */

/** @type {Record<string, string>} */
const DIFFERENCES = {
  same: "the same", worker: "with another worker", arguments: "with other arguments", access: "with other access", moved: "moved",
  added: "added", removed: "removed",
};
const COMPARING_MS = 1000;
const DID = { change: "Changed", add: "Added", remove: "Removed", again: "Called again", answer: "Changed" };

/**
 * Give a run view its what-ifs. `onStarted(id)` hears of one that begins.
 * @param {RunView} view
 * @param {(id: string) => void} onStarted
 */
export function attach(view, onStarted = (_id) => {}) {
  new WhatIfView(view, onStarted);
}

class WhatIfView {
  /**
   * @param {RunView} view
   * @param {(id: string) => void} onStarted
   */
  constructor(view, onStarted) {
    this.view = view;
    this.key = "";
    this.strip = el("section.what-if-strip", { "aria-label": "What-if" });
    this.strip.hidden = true;
    view.summary.root.after(this.strip);
    this.editor = new Editor({
      started: (id) => {
        onStarted(id);
        view.show(id);
        scrollTo({ top: 0, behavior: "smooth" });
      },
      fates: (fates) => this.markGraph(fates),
      closed: () => this.onClose(),
    });
    view.inspector.root.after(this.editor.root);
    view.summary.offer(() => [this.editButton()], view.state?.episode);
    view.inspector.more = (detail) => this.stepButton(detail);
    view.full.addEventListener("marked", () => this.follow());
    if (view.state) view.refresh();
  }

  editButton() {
    const node = el(
      "button.podium-link.what-if-open",
      { type: "button", "data-when-over": "1", "data-testid": "what-if", title: "Edit the plan and run again only what changes" },
      "What if …",
    );
    node.addEventListener("click", () => this.edit(this.view.step));
    return needs(node, "POST /api/episodes/{episode_id}/what-if");
  }

  /**
   * Below the head of a step in the inspector.
   * @param {import("../types").StepDetail} detail
   */
  stepButton(detail) {
    if (!isOver(this.view.state?.episode)) return null;
    const row = el("div.what-if-step-line");
    if (detail.reused) {
      const href = `/?episode=${encodeURIComponent(detail.reused.episode)}&step=${detail.reused.step}`;
      row.append(el("a.podium-link", { href }, `Taken over from step ${detail.reused.step} of the run it varies`));
    }
    const node = needs(el("button.podium-link", { type: "button" }, icon(ACTIONS.pencil), "Edit this step"), "POST /api/episodes/{episode_id}/what-if");
    node.addEventListener("click", () => this.edit(detail.id));
    row.append(node);
    return row;
  }

  openButton() {
    return this.view.summary.root.querySelector(".what-if-open");
  }

  /** @param {number | null} step */
  async edit(step) {
    this.view.inspector.root.hidden = true;
    await this.editor.open(this.view.episode, step);
    this.editor.root.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }

  onClose() {
    this.view.inspector.root.hidden = false;
    this.markGraph(new Map());
    this.openButton()?.focus();
  }

  /** The view was drawn or something else was selected. */
  follow() {
    const { episode, step, state } = this.view;
    if (this.editor.episode && this.editor.episode !== episode) this.editor.close();
    else if (this.editor.episode && step) this.editor.show(step);
    if (this.editor.episode) this.markGraph(this.fates);
    const key = state ? JSON.stringify([episode, state.episode.state, state.episode.verdict]) : "";
    if (key === this.key) return;
    this.key = key;
    if (!state || !isOver(state.episode)) this.strip.hidden = true;
    else this.load(episode, key);
  }

  /**
   * Cards say what would become of them: kept, called again, changed, removed.
   * @param {Fates} fates
   */
  markGraph(fates) {
    this.fates = fates;
    for (const cards of [this.view.graph.cards, this.view.graph.items]) {
      for (const [id, card] of cards) {
        if (fates.has(id)) card.node.dataset.fate = fates.get(id);
        else delete card.node.dataset.fate;
      }
    }
  }

  /**
   * What was changed on copies is compared when the run has ended, so it is asked for again.
   * @param {string} episode
   * @param {string} key
   */
  async load(episode, key, tries = 30) {
    try {
      const reply = await getDocument(`/api/episodes/${encodeURIComponent(episode)}/variations`);
      if (key !== this.key) return;
      const comparing = Boolean(reply.copies && !reply.copies.compared && tries);
      this.draw(reply, comparing);
      if (comparing) setTimeout(() => this.load(episode, key, tries - 1), COMPARING_MS);
    } catch {
      this.strip.hidden = true; // the run itself says when the studio is gone
    }
  }

  /**
   * @param {import("../types").VariationsDocument} reply
   * @param {boolean} comparing
   */
  draw(reply, comparing) {
    const parts = reply.origin ? [heading(reply), outcome(reply), edits(reply)] : [];
    if (reply.copies) parts.push(drawCopies(reply.copies, comparing));
    if (reply.variations.length) parts.push(others(reply));
    this.strip.replaceChildren(...parts);
    this.strip.hidden = !parts.length;
  }
}

/** @param {import("../types").VariationsDocument} reply */
function heading({ origin, kept, rerun, dropped }) {
  const later = dropped ? `, ${dropped} later ${dropped > 1 ? "rounds" : "round"} dropped` : "";
  return el(
    "div.what-if-head", {}, el("h2", {}, "What if"), link(origin.id, "of this run"),
    el("span.what-if-note", {}, `${plural(kept, "output")} kept, ${plural(rerun, "step")} called${later}`),
  );
}

/**
 * Before and after, side by side.
 * @param {import("../types").VariationsDocument} reply
 */
function outcome({ origin, result, differences }) {
  const row =
    el("tr", {}, el("td"), ...["Answer", "Verdict", "Time", "Steps", "Tokens", "Cost"].map((name) => el("th", { scope: "col" }, name)));
  const head = el("thead", {}, row);
  const body = el("tbody", {}, line("Before", origin), line("Now", result));
  const table = el("table.what-if-outcome", {}, el("caption.podium-offscreen", {}, "The run before and now"), head, body);
  const differing = Object.entries(DIFFERENCES).filter(([name]) => differences[name]).map(([name, words]) =>
    `${differences[name]} ${words}`);
  return el("div.what-if-result", {}, table, el("p.what-if-note", {}, `Steps: ${differing.join(", ")}.`));
}

/**
 * @param {string} name
 * @param {import("../types").RunResult} run
 */
function line(name, run) {
  const verdict = run.correct === true ? "Correct" : run.correct === false ? "Wrong" : "–";
  const cells = [
    ["Answer", run.answer ?? `none (${run.state})`],
    ["Verdict", verdict],
    ["Time", seconds(run.wall_s)],
    ["Steps", describeSteps(run.counts)],
    ["Tokens", count(run.tokens)],
    ["Cost", dollars(run.cost)],
  ];
  const row = el("tr", {}, el("th", { scope: "row" }, name), ...cells.map(([label, text]) => el("td", { "data-name": label }, text)));
  row.dataset.correct = String(run.correct);
  return row;
}

/** @param {import("../types").VariationsDocument} reply */
function edits({ edits: made, origin }) {
  const list = el("ul.what-if-edits");
  for (const edit of made) {
    const what = edit.edit === "answer" ? "the answer" : `step ${edit.step} (${edit.worker})`;
    const title = el("b", {}, `${DID[edit.edit]} ${what}`);
    if (edit.edit === "remove") title.append(" ", link(origin.id, "look", edit.step));
    list.append(el("li", {}, title, ...edit.fields.map(field)));
  }
  return list;
}

/** @param {import("../types").EditedField} edited */
function field({ field: name, before, after }) {
  const row = el("div.what-if-field", {}, el("span.run-inspector-key", {}, name));
  if (before) row.append(el("del", {}, before));
  row.append(el("ins", {}, after || "nothing"));
  return row;
}

/** @param {import("../types").VariationsDocument} reply */
function others({ origin, variations }) {
  const row = el("p.what-if-others", {}, `${plural(variations.length, "what-if")} of this run: `);
  variations.forEach((variation, place) => {
    const text = variation.answer ?? variation.state;
    if (place) row.append(", ");
    row.append(link(variation.id, text.length > 40 ? `${text.slice(0, 40)}…` : text || "(blank)"));
    if (variation.correct !== null) row.append(variation.correct ? " (correct)" : " (wrong)");
  });
  if (origin) row.classList.add("what-if-further");
  return row;
}

/**
 * @param {string} episode
 * @param {string} text
 * @param {number | null} step
 */
function link(episode, text, step = null) {
  return el("a.podium-link", { href: `/?episode=${encodeURIComponent(episode)}${step ? `&step=${step}` : ""}` }, text);
}

/**
 * @param {number} number
 * @param {string} word
 */
function plural(number, word) {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}
