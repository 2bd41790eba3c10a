// The editor of a round, in the inspector's place: every step with its worker, arguments and access list. While somebody
// types, the studio says what would be kept and what called, and what is wrong, at its step. The round was recorded (a
// what-if) or is a plan that waits for approval; that is its `kind`.

import { getDocument, post } from "../lib/api.js";
import { button, select } from "../lib/controls.js";
import { el, icon } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { needs } from "../lib/rights.js";
import { ACTIONS } from "../lib/icons.js";
import { CopiesChoice } from "./copies.js";
import { Draft } from "./draft.js";
import { StepForm } from "./step_form.js";

/** @typedef {import("./draft.js").DraftStep} DraftStep */
/** @typedef {"planned" | "kept" | "rerun" | "changed" | "new" | "removed"} Fate */
/** @typedef {Map<number, Fate>} Fates */
/** @typedef {import("../lib/reply.js").Problem} Problem */

const PAUSE_MS = 250;

/** A recorded round.
 * @type {RoundKind} */
const WHAT_IF = {
  path: "what-if",
  title: "What if",
  label: "What-if editor",
  about: "Edit steps, then run: only what you changed, and what may see it, is called again. All other outputs are kept.",
  answerAbout: "Text, in which $3 stands for the output of step 3. A what-if ends with this round.",
  pending: false,
  body: (draft, edits, onCopies) => ({ round: draft.round, edits, on_copies: onCopies }),
};

/** A plan that waits for approval: nothing of it has run.
 * @type {RoundKind} */
export const WAITING_PLAN = {
  path: "approval",
  title: "Edit the plan",
  label: "Plan editor",
  about: "Nothing of this plan has run. Edit, add or remove steps, then approve what is left.",
  answerAbout: "Text, in which $3 stands for the output of step 3. Empty: the orchestrator goes on after this round.",
  pending: true,
  body: (draft, edits) => ({ round: draft.round, verdict: "approve", edits }),
};

/**
 * @typedef {{path: string, title: string, label: string, about: string, answerAbout: string, pending: boolean,
 *   body: (draft: Draft, edits: import("./draft.js").Edit[], onCopies: boolean) => object}} RoundKind
 */

export class Editor {
  /**
   * `started(id)` hears of a run that begins, `fates(map)` of what becomes of each step, `closed()` of the end.
   * @param {{ started: (id: string) => void, fates: (fates: Fates) => void, closed: () => void, kind?: RoundKind }} on
   */
  constructor({ started, fates, closed, kind = WHAT_IF }) {
    this.on = { started, fates, closed };
    this.kind = kind;
    this.copies = new CopiesChoice();
    this.root = el("aside.run-inspector.what-if", { "aria-label": kind.label });
    this.root.hidden = true;
    /** @type {string | null} */
    this.episode = null;
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
    });
  }

  /**
   * @param {string} episode
   * @param {number | null} step
   */
  async open(episode, step = null) {
    if (this.episode === episode) return this.show(step, true);
    this.episode = episode;
    this.root.hidden = false;
    this.root.replaceChildren(el("p.run-inspector-about", {}, "Loading …"));
    /** @type {Partial<import("../types").WhatIfEditor>} */
    const run = await exchange(this.address());
    if (this.episode !== episode) return;
    if (!run.rounds) return this.cannot(run.problems.map(([, what]) => what).join("; "));
    this.episodeRun = run;
    this.workers = new Map(run.workers.map((worker) => [worker.name, worker]));
    this.drafts = new Map();
    const at = run.rounds.find((round) => round.steps.some((other) => other.id === step));
    this.edit((at || run.rounds.at(-1) || { round: 0 }).round, step);
    this.show(step, true);
  }

  /** Where this round is read, checked and sent to. */
  address(more = "") {
    return `/api/episodes/${encodeURIComponent(this.episode)}/${this.kind.path}${more}`;
  }

  close() {
    if (!this.episode) return;
    this.episode = null;
    clearTimeout(this.timer);
    this.root.hidden = true;
    this.root.replaceChildren();
    this.on.closed();
  }

  /** @param {string} reason */
  cannot(reason) {
    const box = el("div.run-inspector-problem", {}, el("p", {}, `This ${this.kind.pending ? "plan" : "run"} cannot be edited: ${reason}`));
    this.root.replaceChildren(this.head(), box);
  }

  /**
   * Edit this round; what was typed in another one waits there.
   * @param {number} number
   * @param {number | null} step
   */
  edit(number, step = null) {
    const round = this.episodeRun.rounds.find((candidate) => candidate.round === number);
    if (!round) return this.cannot("nothing was planned in it.");
    const earlier = this.episodeRun.rounds.filter((other) => other.round < number).flatMap((other) => other.steps);
    if (!this.drafts.has(number)) this.drafts.set(number, new Draft(round, earlier, this.episodeRun.fresh));
    this.draft = this.drafts.get(number);
    this.draw(step);
    this.check();
  }

  /** @param {number | null} open */
  draw(open = null) {
    this.forms = new Map();
    const list = el("div.what-if-steps");
    for (const step of this.draft.steps.values()) list.append(this.form(step).root);
    if (!this.draft.steps.size) list.append(el("p.run-inspector-about", {}, "This round has no steps yet."));
    const add = button("", () => this.add(), "podium-link what-if-add");
    add.append(icon(ACTIONS.plus), "Add a step");
    this.answer = el("textarea", { rows: "2", spellcheck: "false", placeholder: "For example $3" });
    this.answer.value = this.draft.answer;
    this.answer.addEventListener("input", () => {
      this.draft.answer = this.answer.value;
      this.onChange();
    });
    this.answerField = labelField("Answer", this.answer, this.kind.answerAbout);
    this.note = el("p.what-if-note", { role: "status" });
    this.general = el("p.form-general", { role: "alert" });
    this.go = needs(button("Run", () => this.run(), "page-primary"), `POST /api/episodes/{episode_id}/${this.kind.path}`);
    const foot = el("div.what-if-foot", {}, this.copies.root, this.note, this.general, button("Cancel", () => this.close()), this.go);
    this.root.replaceChildren(this.head(), list, add, this.answerField.node, foot);
    if (open && this.forms.has(open)) this.forms.get(open).root.open = true;
  }

  head() {
    const close = button("", () => this.close(), "page-close");
    close.append(icon(ACTIONS.cross));
    close.setAttribute("aria-label", "Close the editor");
    const line = el("div.run-inspector-title", {}, icon(ACTIONS.pencil), el("h2", {}, this.kind.title), close);
    const box = el("header.run-inspector-head", {}, line);
    const rounds = this.episodeRun?.rounds || [];
    if (rounds.length > 1) {
      const choice = select(
        rounds.map((round) => [String(round.round), `Round ${round.round} of ${rounds.length}`]), String(this.draft.round),
        (value) => this.edit(Number(value)),
      );
      choice.setAttribute("aria-label", "Round to edit");
      box.append(choice);
    }
    box.append(el("p.run-inspector-about", {}, this.kind.about));
    return box;
  }

  /** @param {DraftStep} step */
  form(step) {
    const form = new StepForm(step, this, {
      changed: () => this.onChange(),
      removed: () => {
        this.draft.remove(step.id);
        this.redraw(step.id);
      },
      restored: () => {
        this.draft.restore(step.id);
        this.redraw(step.id);
      },
    });
    this.forms.set(step.id, form);
    return form;
  }

  /**
   * The set of steps is another one: access lists offer others.
   * @param {number | null} focus
   */
  redraw(focus = null) {
    const open = new Set([...this.forms].filter(([, form]) => form.root.open).map(([id]) => id));
    this.draw();
    for (const [id, form] of this.forms) form.root.open = open.has(id);
    this.check();
    const at = this.forms.get(focus) || [...this.forms.values()].at(-1);
    at?.summary.focus();
  }

  add() {
    const [worker] = this.workers.values();
    if (!worker) {
      this.general.textContent = "This pool has no enabled worker that a step could call.";
      return;
    }
    const id = this.draft.add(worker.name, worker.parameters);
    this.episodeRun.fresh = this.draft.fresh;
    this.redraw(id);
    this.show(id, true);
  }

  /**
   * Bring a step into view; in another round only where nothing was typed yet.
   * @param {number} step
   * @param {boolean} focus
   */
  show(step, focus = false) {
    if (!this.draft || !step) return;
    if (!this.draft.steps.has(step)) {
      const at = this.episodeRun.rounds.find((round) => round.steps.some((one) => one.id === step));
      if (!at || this.draft.edits().length) return;
      this.edit(at.round, step);
    }
    const form = this.forms.get(step);
    if (!form) return;
    form.root.open = true;
    form.root.scrollIntoView({ block: "nearest" });
    if (focus) form.focus();
  }

  onChange() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), PAUSE_MS);
    this.go.disabled = !this.canRun(this.draft.edits());
  }

  /**
   * A recorded round runs again only where something was changed; a plan that waits may also run as it is.
   * @param {import("./draft.js").Edit[]} edits
   */
  canRun(edits) {
    return this.kind.pending || edits.length > 0;
  }

  async check() {
    const draft = this.draft;
    const edits = draft.edits();
    this.go.disabled = !this.canRun(edits);
    const mine = (this.asking = Symbol());
    const reply = await exchange(this.address("/check"), { round: draft.round, edits });
    if (mine !== this.asking || !this.episode || draft !== this.draft) return;
    this.tell(reply, edits.length > 0);
  }

  /**
   * @param {import("../types").StepFates} reply
   * @param {boolean} edited
   */
  tell(reply, edited) {
    this.complain(reply.problems);
    const rerun = new Set(reply.rerun || []);
    /** @type {Fates} */
    const fates = new Map();
    for (const step of this.draft.steps.values()) fates.set(step.id, this.fate(step, rerun));
    for (const [id, form] of this.forms) form.tellFate(fates.get(id));
    for (const step of this.draft.earlier) fates.set(step.id, "kept");
    this.on.fates(edited ? fates : new Map());
    this.copies.offer(reply.effectful || []);
    const fit = !reply.problems.length;
    this.go.disabled = !fit || !(edited || this.kind.pending);
    this.go.textContent = this.kind.pending ? (edited ? "Approve the edited plan" : "Approve and run") : runLabel(fit && edited, rerun.size);
    if (!fit) this.note.textContent = "";
    else if (!edited) this.note.textContent = "Nothing is changed yet.";
    else this.note.textContent = this.kind.pending ? `${rerun.size} ${rerun.size === 1 ? "step" : "steps"} will run.` : sentence(reply);
  }

  /**
   * @param {DraftStep} step
   * @param {Set<number>} rerun
   * @returns {Fate}
   */
  fate(step, rerun) {
    if (step.removed) return "removed";
    if (step.isNew) return "new";
    if (this.draft.isChanged(step.id)) return "changed";
    if (this.kind.pending) return "planned";
    return rerun.has(step.id) ? "rerun" : "kept";
  }

  /**
   * Problems at their steps; a closed step with one opens.
   * @param {Problem[]} problems
   */
  complain(problems) {
    for (const form of this.forms.values()) form.say("");
    this.answerField.say("");
    const rest = [];
    for (const [where, what] of problems) {
      const form = this.forms.get(Number(where));
      if (form) form.say(what);
      else if (where === "answer") this.answerField.say(what);
      else rest.push(what);
    }
    this.general.textContent = rest.join("; ");
  }

  async run() {
    const edits = this.draft?.edits() || [];
    if (!this.draft || !this.canRun(edits) || this.busy) return;
    this.busy = true;
    this.go.disabled = true;
    const reply = await exchange(this.address(), this.kind.body(this.draft, edits, this.copies.chosen));
    this.busy = false;
    if (reply.episode) {
      this.close();
      this.on.started(reply.episode);
    } else {
      this.complain(reply.problems);
      this.go.disabled = false;
    }
  }
}

/**
 * @param {boolean} ready
 * @param {number} steps
 */
function runLabel(ready, steps) {
  if (!ready) return "Run";
  return steps ? `Run ${steps} ${steps > 1 ? "steps" : "step"}` : "Make the what-if";
}

/** @param {import("../types").StepFates} fates */
function sentence({ rerun, kept, dropped }) {
  const later = dropped ? ` ${dropped} later ${dropped > 1 ? "rounds are" : "round is"} dropped.` : "";
  const calls = rerun.length ? `Calls ${rerun.length > 1 ? "steps" : "step"} ${rerun.join(", ")}` : "Calls nobody";
  return `${calls}, keeps ${kept.length} ${kept.length === 1 ? "output" : "outputs"}.${later}`;
}

/**
 * Get a document or send edits; what goes wrong on the way is a problem like any other.
 * @param {string} path
 * @param {object | null} body
 * @returns {Promise<any>}
 */
async function exchange(path, body = null) {
  try {
    return await (body ? post(path, body) : getDocument(path));
  } catch (error) {
    return { problems: [["", error.message]] };
  }
}
