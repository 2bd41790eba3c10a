// A pool's failure memory: who writes it, every lesson with the run it was made of, and forgetting.

import { plain } from "../lib/reply.js";
import { busy, button, select } from "../lib/controls.js";
import { dollars, el, icon } from "../lib/dom.js";
import { labelField } from "../lib/form.js";
import { ACTIONS } from "../lib/icons.js";
import { needs } from "../lib/rights.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */

const LEAD = "What went wrong in a failed run is kept as one sentence, and shown to an orchestrating model before similar queries. Nothing of it leaves this pool.";
const REACH = "It reaches language models that orchestrate (Model, ReAct, Agent with tools) and checkpoints that read the pool with each query. It does not reach readers, checkpoints that were trained on the bare query, or baselines; below the choice of an orchestrator the Run page says which. Training never uses it; an evaluation does in the condition “memory” alone.";

const RETRY = "Where a task says what is right, and where you say that an answer is wrong: once, within the limits of the run, without calls that may change something. The lesson is kept only if that is right, by the task, by the answer that you typed, or by your verdict.";

/** @param {PoolPage} page */
export async function openMemory(page) {
  const reply = await page.act({ action: "memory" });
  if (reply.ok) new Memory(page, reply.memory).open();
}

class Memory {
  /**
   * @param {PoolPage} page
   * @param {import("../types").MemoryDocument} reply
   */
  constructor(page, reply) {
    this.page = page;
    this.list = el("ul.pool-memory-list");
    this.note = el("p.pool-hint", {}, REACH);
    this.problem = el("p.form-general", { role: "alert" });
    this.heading = el("h3.pool-memory-heading");
    this.learn = needs(button("Learn from recorded failures", () => busy(this.learn, "Learning …", () => this.send({ action: "learn" }))), "pool/learn");
    this.tryAll = needs(button("Try the lessons", () => busy(this.tryAll, "Trying …", () => this.send({ action: "try_lessons" }))), "pool/try_lessons");
    this.gain = el("p.pool-memory-gain", { role: "status" });
    this.cap = el("input", { type: "text", inputmode: "decimal", placeholder: "no cap", "aria-label": "Spend at most, US dollars" });
    this.measure = needs(
      button("Measure on held-out tasks", () => busy(this.measure, "Starting …", () => this.send({ action: "measure_memory", max_cost: this.cap.value }))),
      "pool/measure_memory",
    );
    this.measuring = el("div.pool-memory-measure", {}, this.measure, el("label", {}, "$", this.cap));
    this.clear = needs(button("Clear all", () => this.forgetAll(), "page-danger"), "pool/forget");
    this.choice = needs(select([], "", (memory) => this.send({ action: "set_memory", memory })), "pool/set_memory");
    this.field = labelField(
      "Lessons are", this.choice, "By rule: from the states of turns and steps, at no cost. By an agent: one call for each failed run.",
    );
    this.retry = needs(el("input", { type: "checkbox" }), "pool/set_memory");
    this.retry.addEventListener("change", () => this.send({ action: "set_memory", memory: this.reply.mode, retry: this.retry.checked }));
    this.retrying = el("label.pool-memory-retry", {}, this.retry, el("span", {}, "Try a failed run again, with its lesson", el("small", {}, RETRY)));
    this.take(reply);
  }

  open() {
    const foot = this.page.drawer.foot(this.clear, button("Close", () => this.page.drawer.close()));
    this.page.drawer.open(
      "Failure memory", [el("p.page-lead", {}, LEAD), this.field.node, this.retrying, this.gain, this.measuring, this.note, this.problem, this.heading, el("div.pool-memory-actions", {}, this.learn, this.tryAll), this.list, foot],
      { focus: this.choice },
    );
  }

  /** @param {import("../types").MemoryDocument} reply */
  take(reply) {
    this.reply = reply;
    this.choice.replaceChildren(...options(reply));
    this.choice.value = reply.mode;
    this.retry.checked = reply.retry;
    this.retrying.hidden = reply.mode === "off";
    this.heading.textContent = reply.count ? `${reply.count} ${reply.count > 1 ? "lessons" : "lesson"}` : "No lessons yet";
    this.list.replaceChildren(...reply.lessons.map((lesson) => this.item(lesson)));
    this.learn.hidden = reply.mode === "off";
    this.tryAll.hidden = !reply.lessons.some((lesson) => !lesson.retry);
    this.measuring.hidden = !reply.count;
    this.gain.replaceChildren(...describeGain(reply));
    this.clear.hidden = !reply.count;
    this.sure = false;
    this.clear.textContent = "Clear all";
  }

  /** @param {import("../lib/api.js").Command} request */
  async send(request) {
    const reply = await this.page.command(request);
    this.problem.textContent = reply.ok ? "" : plain(reply.problems);
    if (reply.memory) this.take(reply.memory);
    else this.take(this.reply);
  }

  /** The first press asks, the second does. */
  forgetAll() {
    if (this.sure) return this.send({ action: "forget" });
    this.sure = true;
    this.clear.textContent = `Really forget ${this.reply.count}?`;
    return null;
  }

  /** @param {import("../types").LessonDocument} lesson */
  item(lesson) {
    const forget = needs(button("", () => this.send({ action: "forget", lesson: lesson.id }), "page-close"), "pool/forget");
    forget.append(icon(ACTIONS.trash));
    forget.setAttribute("aria-label", `Forget: ${lesson.sentence}`);
    const by = lesson.written_by === "rule" ? "by rule" : `by ${lesson.written_by}`;
    const used = lesson.shown ? ` · shown in ${lesson.shown} ${lesson.shown > 1 ? "runs" : "run"}, ${lesson.helped} right` : "";
    const proof = describeProof(lesson);
    const foot = el(
      "p.pool-memory-foot", {},
      `${by}${lesson.instead_of ? `, because ${lesson.instead_of}` : ""}${lesson.cost ? ` · ${dollars(lesson.cost)}` : ""} · `,
      el("a.podium-link", { href: `/?episode=${encodeURIComponent(lesson.episode)}` }, "the run"), ...proof, used,
    );
    const text =
      el("div.pool-memory-text", {}, el("p.pool-memory-sentence", {}, lesson.sentence), el("p.pool-memory-query", {}, lesson.query), foot);
    return el("li.pool-memory-lesson", { "data-lesson": lesson.id }, text, forget);
  }
}

/** What shows that a lesson is good, or has yet to show it.
 * @param {import("../types").LessonDocument} lesson */
function describeProof({ retry, awaits, is_tried: isTried }) {
  /** @param {string} id @param {string} text */
  const link = (id, text) => el("a.podium-link", { href: `/?episode=${encodeURIComponent(id)}` }, text);
  if (retry) return [" · ", link(retry, "right with it")];
  if (!awaits) return [" · not tried"];
  if (isTried) return [" · not used yet: its question is being tried again"];
  return [" · not used yet: ", link(awaits, "its second try"), " waits for your verdict"];
}

/**
 * What the memory brings by the last measurement on this pool, and who can write lessons here.
 * @param {import("../types").MemoryDocument} memory
 */
function describeGain({ gain, agents }) {
  const writers = agents.length ? "" : " No agent is in this pool, so that lessons can be written by rule alone.";
  if (!gain) return [`What it brings here is not measured yet.${writers}`];
  const link = el("a.podium-link", { href: `/compare?tab=suite&condition=all&job=${encodeURIComponent(gain.job)}` }, "the measurement");
  if (!gain.difference) return [`It is being measured (${gain.state}): `, link, `.${writers}`];
  const [mean, low, high] = gain.difference;
  const verdict = low > 0 ? "It helps" : high < 0 ? "It harms" : "No sure gain";
  const shares = `${percent(gain.without)} right without, ${percent(gain.with_lessons)} with lessons`;
  const points = `${signed(mean)} points [${signed(low)}, ${signed(high)}]`;
  return [el("b", {}, `${verdict}: `), `${shares} (${points}) on ${gain.tasks} held-out tasks with ${gain.orchestrator}; `, link, `.${writers}`];
}

/** @param {number} share */
const percent = (share) => `${Math.round(share * 100)} %`;

/** @param {number} share */
const signed = (share) => `${share > 0 ? "+" : share < 0 ? "−" : ""}${Math.abs(share * 100).toFixed(1)}`;

/** @param {import("../types").MemoryDocument} memory */
function options({ agents, gone, mode }) {
  const choices = [
    ["off", "off: nothing is kept or shown"], ["rule", "written by rule"],
    ...agents.map((name) => [name, `written by ${name}${gone && name === mode ? " (not in this pool any more)" : ""}`]),
  ];
  return choices.map(([value, label]) => el("option", { value }, label));
}
