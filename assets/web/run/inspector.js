// The inspector: exactly what a step was allowed to see, what it was sent, what came back; or one turn.

import { getDocument } from "../lib/api.js";
import { copyButton, count, dollars, el, icon, readable, seconds } from "../lib/dom.js";
import { STATUSES, kindIcon } from "../lib/icons.js";
import { contextBar } from "./context_bar.js";

/** @typedef {import("../types").StepDetail} StepDetail */
/** @typedef {import("../types").TurnDetail} TurnDetail */

export class Inspector {
  /**
   * `read(path)` gives the details behind an address of the API, or throws an error that says why not.
   * @param {(path: string) => Promise<any>} read
   */
  constructor(read = getDocument) {
    this.read = read;
    this.root = el("aside.run-inspector", { "aria-label": "Inspector" });
    /** @type {string | null} */
    this.path = null;
    /** @type {(detail: StepDetail) => HTMLElement | null} */
    this.more = () => null; // something to do with a step, below its head
    this.clear();
  }

  clear() {
    this.path = null;
    const hint = el(
      "div.run-inspector-empty", {}, el("b", {}, "Nothing selected"),
      el(
        "p", {},
        "Click a step to see what it was allowed to see, what it was sent and what it returned. Click a round to read what the orchestrator wrote.",
      ),
    );
    this.root.replaceChildren(hint);
  }

  /**
   * Open one of the folded blocks.
   * @param {string} name
   */
  unfold(name) {
    const block = /** @type {HTMLDetailsElement} */ (this.root.querySelector(`details[data-block="${name}"]`));
    if (block) block.open = true;
  }

  /** Scroll just enough that what was asked for can be read. */
  reveal() {
    const box = this.root.getBoundingClientRect();
    const hidden = Math.min(box.bottom, box.top + 260) - innerHeight;
    if (hidden > 0) scrollBy({ top: hidden + 12, behavior: "smooth" });
  }

  /**
   * @param {string} episode
   * @param {number} step
   */
  async showStep(episode, step) {
    await this.load(`/api/episodes/${episode}/steps/${step}`, (detail) => {
      const [top, ...rest] = stepParts(detail);
      const more = this.more(detail);
      return more ? [top, more, ...rest] : [top, ...rest];
    });
  }

  /**
   * @param {string} episode
   * @param {number} round
   */
  async showTurn(episode, round) {
    await this.load(`/api/episodes/${episode}/turns/${round}`, (detail) => turnParts(detail));
  }

  /** @param {string} episode */
  async showFinal(episode) {
    await this.load(`/api/episodes/${episode}/final`, (detail) => finalParts(detail));
  }

  /**
   * Fetch and show; a newer request wins over one that is still under way.
   * @param {string} path
   * @param {(detail: any) => HTMLElement[]} parts
   */
  async load(path, parts) {
    const latest = (this.path = path);
    const again = this.root.dataset.path === path;
    try {
      const detail = await this.read(path);
      if (latest !== this.path) return;
      const open = again ? openBlocks(this.root) : null;
      this.root.dataset.path = path;
      this.root.replaceChildren(...parts(detail));
      if (open) restoreBlocks(this.root, open);
      else this.root.scrollTop = 0;
    } catch (error) {
      if (latest === this.path) this.root.replaceChildren(el("p.run-inspector-problem", {}, `This cannot be shown: ${error.message}`));
    }
  }
}

/** @param {import("../types").StepDetail} detail */
function stepParts(detail) {
  const facts = [seconds(detail.latency_s)];
  if (detail.tokens_in + detail.tokens_out) facts.push(`${count(detail.tokens_in)} → ${count(detail.tokens_out)} tokens`);
  if (detail.cost) facts.push(dollars(detail.cost));
  if (detail.cached) facts.push("recorded at an earlier equal call");
  if (detail.kind === "skill") facts.unshift("a plan skill");
  const parts = [head(`Step ${detail.id} · ${detail.worker || "?"}`, detail, facts)];
  if (detail.description) parts.push(el("p.run-inspector-about", {}, detail.description));
  if (detail.need) parts.push(el("p.run-inspector-about", {}, `Needed: “${detail.need}”; ${detail.worker} fits it best.`));
  if (detail.choice) parts.push(el("p.run-inspector-about", { "data-testid": "choice" }, detail.choice));
  if (detail.binding?.worker) parts.push(el("p.run-inspector-about", { "data-testid": "binding" }, describeBinding(detail.binding)));
  if (detail.error) parts.push(problem(detail.code, detail.error));
  if (detail.notes.length) parts.push(el("p.run-inspector-about", { "data-testid": "notes" }, `Read as meant. ${detail.notes.join("; ")}.`));
  if (detail.answered_by) parts.push(el("p.run-inspector-about.run-inspector-instead", {}, tookOver(detail)));
  if (detail.child) parts.push(childLink(detail.child));
  parts.push(...argumentParts(detail));
  parts.push(section("What it was allowed to see", accessParts(detail)));
  if (detail.context) parts.push(section("Context budget", [contextBar(detail.context)]));
  if (detail.prompt) parts.push(section("Prompt sent", [block(detail.prompt, "prompt", detail.prompt.length > 900)]));
  if (detail.status === "OK") parts.push(section("Output", [block(readable(detail.value), "output")]));
  return parts;
}

/** How a finalizer wrote the answer for a person, beside the plan's own.
 * @param {import("../types").FinalAnswerDetail} detail */
function finalParts(detail) {
  const facts = [seconds(detail.latency_s)];
  if (detail.tokens_in + detail.tokens_out) facts.push(`${count(detail.tokens_in)} → ${count(detail.tokens_out)} tokens`);
  if (detail.cost) facts.push(dollars(detail.cost));
  const parts = [head(`Final answer · ${detail.worker}`, { status: detail.state, kind: "", role: "agent" }, facts)];
  parts.push(el("p.run-inspector-about", {}, detail.sentence));
  if (detail.plan_answer !== null) parts.push(section("The plan's own answer", [block(detail.plan_answer, "plan-answer")]));
  const seen = detail.visible.length ? accessParts(detail) : [el("p.run-inspector-about", {}, "No output: the plan's own answer quotes none.")];
  parts.push(section("What it was allowed to see", seen));
  if (detail.prompt) parts.push(section("Prompt sent", [block(detail.prompt, "prompt", true)]));
  if (detail.state === "OK") parts.push(section("Output", [block(readable(detail.value), "output")]));
  return parts;
}

/** A checkpoint that learnt another pool asked for a worker by the name that it knows.
 * @param {import("../types").StepBinding} binding */
function describeBinding({ learnt, worker, likeness, by, parameters }) {
  const how = by === "person" ? "chosen by a person" : `${likeness.toFixed(2)} alike by ${by}`;
  const names = Object.entries(parameters).map(([old, here]) => `; ${old} is ${here} here`);
  return `Asked for ${learnt}, bound to ${worker}: ${how}${names.join("")}.`;
}

/** @param {import("../types").StepDetail} detail */
function tookOver(detail) {
  const why = detail.instead_of ? `: ${detail.worker} failed with ${detail.instead_of.code} (${detail.instead_of.message})` : "";
  return `Answered by ${detail.answered_by}${why}`;
}

/** @param {import("../types").TurnDetail} detail */
function turnParts(detail) {
  const facts = [seconds(detail.latency_s)];
  if (detail.tokens_in + detail.tokens_out) facts.push(`${count(detail.tokens_in)} → ${count(detail.tokens_out)} tokens`);
  const parts = [head(`Round ${detail.round} · the orchestrator's turn`, { ...detail, kind: "", role: "recursion" }, facts)];
  if (detail.error) parts.push(problem(detail.status, detail.error));
  const written = detail.text ? block(pretty(detail.text), "turn") : el("p.run-inspector-about", {}, "Nothing was written.");
  if (detail.repairs.length) parts.push(section("Mended by code", [repairList(detail.repairs)]));
  if (detail.vote) parts.push(section("How the vote went", voteParts(detail.vote, detail)));
  if (detail.confidence) parts.push(section("How likely it is right", confidenceParts(detail.confidence)));
  parts.push(section("What it wrote", [written]));
  if (detail.shown) parts.push(section("Which workers it saw", [workersInPrompt(detail.shown)]));
  if (detail.recalled) parts.push(section("What it was told of earlier failures", lessonParts(detail.recalled)));
  if (detail.context) parts.push(section("Context budget", [contextBar(detail.context)]));
  if (detail.prompt) parts.push(section("What it was sent", [block(detail.prompt, "prompt", true)]));
  return parts;
}

/**
 * @param {string} title
 * @param {Pick<StepDetail, "status" | "kind" | "role"> & { icon?: string }} detail
 * @param {string[]} facts
 */
function head(title, detail, facts) {
  const line = el("div.run-inspector-title", {}, icon(kindIcon(detail)), el("h2", {}, title));
  const [word, path] = STATUSES[detail.status] || STATUSES.PENDING;
  const status = el("span.podium-status", { "data-status": detail.status }, icon(path), el("b", {}, word));
  const under = el("div.run-inspector-facts", {}, status, el("span", {}, facts.filter(Boolean).join(" · ")));
  return el("header.run-inspector-head", { "data-role": detail.role }, line, under);
}

/** @param {import("../types").StepDetail} detail */
function argumentParts(detail) {
  const planned = Object.entries(detail.arguments);
  if (!planned.length) return [];
  if (!detail.resolved) return [section("Planned", planned.map(([name, value]) => argument(name, value)))];
  const called = Object.entries(detail.resolved).map(([name, value]) => {
    const written = detail.arguments[name];
    const same = written === undefined || JSON.stringify(written) === JSON.stringify(value);
    return argument(name, value, same ? "" : readable(written));
  });
  return [section("As called", called)];
}

/**
 * A value, and below it how the plan wrote it, where that quotes other steps.
 * @param {string} name
 * @param {unknown} value
 * @param {string} written
 */
function argument(name, value, written = "") {
  const plan = written && el("small.run-inspector-written", {}, "planned as ", el("code", {}, written));
  return el("div.run-inspector-argument", {}, el("span.run-inspector-key", {}, name), el("pre.run-inspector-value", {}, readable(value)), plan);
}

/** @param {Pick<StepDetail, "visible">} detail */
function accessParts(detail) {
  if (!detail.visible.length) return [el("p.run-inspector-about", {}, "Nothing but its own instruction.")];
  return detail.visible.map((seen) => {
    const box = el("details.run-inspector-seen", { "data-block": `seen-${seen.step}` });
    box.open = detail.visible.length <= 3;
    const status = el("span.podium-status", { "data-status": seen.status }, el("b", {}, seen.status));
    const summary = el("summary", {}, el("span", {}, `Step ${seen.step} · ${seen.worker}`), status);
    box.append(summary, block(seen.error || readable(seen.value), `see-${seen.step}`));
    return box;
  });
}

/**
 * Of a pool that is too large to show whole: the workers that fit the query best, with their scores.
 * @param {import("../types").ShownWorkersDetail} shown
 */
function workersInPrompt({ count: shown, of, by, workers }) {
  const list = el("dl.run-inspector-scores", { tabindex: "0" }); // scrolls, so it must take the focus
  for (const { worker, score } of workers) list.append(el("dt", {}, worker), el("dd", {}, score.toFixed(4)));
  return el(
    "details.run-inspector-folded", { "data-block": "shown", "data-testid": "shown-workers" },
    el("summary", {}, `${count(shown)} of ${count(of)} workers shown`),
    el("p.run-inspector-about", {}, `Those that fit the query best by ${by}; a plan may call the others, too.`), list,
  );
}

/** How likely the answer is right, and what else agents said.
 * @param {import("../types").ConfidenceView} confidence */
function confidenceParts({ sentence, answers }) {
  /** @type {HTMLElement[]} */
  const parts = [el("p.run-inspector-verdict", {}, sentence)];
  const rows = answers.map(({ answer, chance }) => ({ answer, share: chance, figure: chance.toFixed(2) }));
  if (rows.length) parts.push(answerBars("Chance of each answer", rows));
  return parts;
}

/** How the turn was chosen among several plans: who agreed, who had no vote, and what all of it cost.
 * @param {import("../types").VoteDetail} vote
 * @param {import("../types").TurnDetail} turn */
function voteParts(vote, turn) {
  /** @type {HTMLElement[]} */
  const parts = [el("p.run-inspector-verdict", { "data-testid": "vote" }, describeVote(vote))];
  if (vote.answers.length) parts.push(voteBars("Votes by answer", vote.answers, vote.plans));
  const losses = listLosses(vote);
  if (losses) parts.push(el("p.run-inspector-about", {}, losses));
  if (vote.unvoted.length) parts.push(voteBars("Answers of plans without a vote", vote.unvoted, vote.plans));
  parts.push(el("p.run-inspector-about", { "data-testid": "vote-cost" }, describeVoteCost(vote, turn)));
  return parts;
}

/** What code changed in what the model wrote. @param {string[]} repairs */
function repairList(repairs) {
  const items = repairs.map((label) => el("li", {}, label[0].toUpperCase() + label.slice(1)));
  return el("ul.run-inspector-repairs", { "data-testid": "repairs" }, ...items);
}

/** @param {import("../types").VoteDetail} vote */
function describeVote({ plans, agreed, answer, unreadable, incomplete, sentence }) {
  if (unreadable === plans) return sentence;
  if (!agreed) return `${sentence} The first that could be read was taken.`;
  const taken = incomplete ? "the first that works, holds every figure and has no idle step" : "the first that works";
  if (agreed === 1) return `${sentence} Taken was ${taken}.`;
  return answer ? sentence.replace(/\.$/, ` on ${answer}.`) : sentence;
}

/**
 * Answers with their numbers of plans, as bars of all that were drawn.
 * @param {string} label
 * @param {import("../types").AnswerVotes[]} answers
 * @param {number} plans
 */
function voteBars(label, answers, plans) {
  return answerBars(label, answers.map(({ answer, votes }) => ({ answer, share: votes / plans, figure: count(votes) })));
}

/** @param {string} label
 * @param {{ answer: string, share: number, figure: string }[]} answers */
function answerBars(label, answers) {
  const list = el("ul.run-inspector-votes", { "aria-label": label });
  for (const { answer, share, figure } of answers) {
    const bar = el("span.run-inspector-votes-bar", { "aria-hidden": "true" }, el("i", { style: `width:${100 * share}%` }));
    list.append(el("li", {}, el("span", { title: answer }, answer), bar, el("b", {}, figure)));
  }
  return list;
}

/** @param {import("../types").VoteDetail} vote */
function listLosses({ unreadable, failed, untried, incomplete }) {
  const parts = [];
  if (failed) parts.push(`${count(failed)} failed when tried.`);
  if (unreadable) parts.push(`${count(unreadable)} could not be read.`);
  if (incomplete) parts.push(`${count(incomplete)} had no vote: the calls leave out a figure or a name of the question, or one of them does nothing for the answer.`);
  if (untried) parts.push(`${count(untried)} ${untried === 1 ? "was" : "were"} not tried, because a step may have effects; a plan like that votes as it is written.`);
  return parts.join(" ");
}

/** @param {import("../types").VoteDetail} vote
 * @param {import("../types").TurnDetail} turn */
function describeVoteCost({ plans, chosen_tokens: chosen }, turn) {
  const all = turn.tokens_in + turn.tokens_out;
  const share = chosen === null ? "" : `; the chosen plan alone took ${count(chosen)}`;
  return `All ${count(plans)} plans and their trials took ${count(all)} tokens${share}.`;
}

/**
 * Lessons from the pool's failure memory, as they stood in its prompt.
 * @param {import("../types").RecalledLessons} recalled
 */
function lessonParts({ lessons, of, by }) {
  if (!lessons.length)
    return [el("p.run-inspector-about", {}, `None of ${count(of)} ${of === 1 ? "lesson" : "lessons"} was about a similar query.`)];
  const parts = lessons.map((lesson) => {
    const foot = el(
      "p.pool-memory-foot", {}, `${lesson.similarity.toFixed(2)} alike by ${by} · by ${lesson.written_by} · `,
      el("a.podium-link", { href: `/?episode=${encodeURIComponent(lesson.episode)}` }, "the run"),
    );
    return el(
      "div.pool-memory-text", { "data-testid": "lesson" }, el("p.pool-memory-sentence", {}, lesson.sentence),
      el("p.pool-memory-query", {}, lesson.query), foot,
    );
  });
  return parts;
}

/**
 * @param {string} code
 * @param {string} text
 */
function problem(code, text) {
  return el("div.run-inspector-problem", {}, el("code", {}, code || "error"), el("p", {}, text));
}

/** @param {string} id */
function childLink(id) {
  return el("a.run-inspector-child", { href: `/?episode=${encodeURIComponent(id)}` }, "Open the episode it ran");
}

/**
 * @param {string} title
 * @param {HTMLElement[]} parts
 */
function section(title, parts) {
  return el("section.run-inspector-section", {}, el("h3", {}, title), ...parts);
}

/**
 * Preformatted text with a copy button, folded when long.
 * @param {string} text
 * @param {string} name
 * @param {boolean} folded
 */
function block(text, name, folded = false) {
  const box = el("div.run-inspector-block", {}, copyButton(text ?? ""), el("pre", { tabindex: "0" }, text ?? "")); // scrolls, so it must take the focus
  if (!folded) return box;
  return el("details.run-inspector-folded", { "data-block": name }, el("summary", {}, `${count(text.length)} characters`), box);
}

/** @param {string} text */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** @param {HTMLElement} root */
function openBlocks(root) {
  return new Map([...root.querySelectorAll("details")].map((node) => [node.dataset.block, node.open]));
}

/**
 * @param {HTMLElement} root
 * @param {Map<string, boolean>} open
 */
function restoreBlocks(root, open) {
  for (const node of root.querySelectorAll("details")) {
    if (open.has(node.dataset.block)) node.open = open.get(node.dataset.block);
  }
}
