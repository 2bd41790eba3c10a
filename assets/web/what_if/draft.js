// The draft of one round while it is edited: steps by their recorded numbers, and the edits that lead to them.

/** @typedef {import("../types").PlannedStep} PlannedStep */
/** @typedef {PlannedStep & { removed: boolean, again: boolean, isNew: boolean }} DraftStep */
/** @typedef {{ edit: import("../types").EditDocument["edit"], step?: number, answer?: any } & Partial<PlannedStep>} Edit */

export class Draft {
  /**
   * `round` as the studio tells it; `fresh` is the first number that no step has.
   * @param {import("../types").EditedRound} round
   * @param {import("../types").PlannedStep[]} earlier
   * @param {number} fresh
   */
  constructor(round, earlier, fresh) {
    this.round = round.round;
    this.earlier = earlier; // steps of earlier rounds, which may be seen
    this.fresh = fresh;
    this.origin = new Map(round.steps.map((step) => [step.id, step]));
    this.steps = new Map(round.steps.map((step) => [step.id, { ...copyStep(step), removed: false, again: false, isNew: false }]));
    this.originAnswer = round.answer;
    this.answer = asText(round.answer);
  }

  /**
   * @param {string} worker
   * @param {Record<string, any>} parameters
   */
  add(worker, parameters) {
    const id = this.fresh++;
    const names = Object.keys(parameters.properties || {});
    const required = names.filter((name) => parameters.required?.includes(name));
    this.steps.set(id, {
      id, worker, arguments: Object.fromEntries(required.map((name) => [name, ""])), access: [], problem: null, status: "PENDING",
      removed: false, again: false, isNew: true,
    });
    return id;
  }

  /**
   * Take a step away; those that may see it, and do not quote it, see it no more.
   * @param {number} id
   */
  remove(id) {
    const step = this.steps.get(id);
    if (step.isNew) this.steps.delete(id);
    else step.removed = true;
    for (const other of this.steps.values()) {
      if (!quotes(other.arguments, id)) other.access = other.access.filter((k) => k !== id);
    }
  }

  /**
   * A step as it was recorded.
   * @param {number} id
   */
  restore(id) {
    this.steps.set(id, { ...copyStep(this.origin.get(id)), removed: false, again: false, isNew: false });
  }

  /** @param {number} id */
  isChanged(id) {
    const step = this.steps.get(id);
    const old = this.origin.get(id);
    return Boolean(old) && !step.removed && JSON.stringify(normalize(step)) !== JSON.stringify(normalize(old));
  }

  /**
   * The steps that `id` could see.
   * @param {number} id
   */
  candidates(id) {
    const here = [...this.steps.values()].filter((step) => step.id !== id && !step.removed);
    return [...this.earlier, ...here];
  }

  edits() {
    /** @type {Edit[]} */
    const made = [];
    for (const step of this.steps.values()) {
      if (step.removed) made.push({ edit: "remove", step: step.id });
      else if (step.isNew) made.push({ edit: "add", step: step.id, ...normalize(step) });
      else if (this.isChanged(step.id)) made.push({ edit: "change", step: step.id, ...normalize(step) });
      else if (step.again) made.push({ edit: "again", step: step.id });
    }
    if (this.answer !== asText(this.originAnswer)) made.push({ edit: "answer", answer: this.answerValue() });
    return made;
  }

  /** What was no text before is read as JSON again, where it is some. */
  answerValue() {
    if (this.answer.trim() === "") return null;
    return this.originAnswer === null || typeof this.originAnswer === "string" ? this.answer : asValue(this.answer);
  }
}

/** @param {import("../types").PlannedStep} step */
function copyStep(step) {
  return { ...step, arguments: { ...step.arguments }, access: [...step.access] };
}

/** @param {PlannedStep} step */
function normalize({ worker, arguments: given, access }) {
  return { worker, arguments: given, access: [...access].sort((a, b) => a - b) };
}

/**
 * @param {unknown} value
 * @param {number} id
 */
function quotes(value, id) {
  return [...JSON.stringify(value).matchAll(/\$(\$|[1-9][0-9]*)/g)].some((match) => match[1] === String(id));
}

/** @param {unknown} value */
export function asText(value) {
  return value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
}

/** @param {string} text */
export function asValue(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
