"""Which questions become tasks: those whose answers agree, and few that every agent gets right.

Where every agent is right there is nothing to route, so such tasks are at most a third of all. The reference plan
of a task calls an agent that was right: that of the field, or else the cheapest, of equal ones who is right most often.
It is the call that was really made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from orchestrator.plan import Step, Turn
from orchestrator.policies.base import write_turn
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import LivePool
from trainer.tasks.practice.agents.agree import Agreement, find_agreement, is_same_reply, join_judged
from trainer.tasks.practice.agents.journal import Journal
from trainer.tasks.practice.agents.panel import Panel
from trainer.tasks.practice.agents.propose import Question, names_worker, states_answer
from trainer.tasks.practice.compose import escape_dollars
from trainer.tasks.sources.jsonl import TaskLine

MIXED_PER_EASY = 2  # so that at most a third of the tasks is easy
# The splits of a subject's questions in the order in which they were written: a later call moves none.
SPLITS = ("train", "test", "train", "train", "validation", "train", "test", "train", "train", "train")

STATED, NAMED, REPEATED = "state their answer", "name a worker", "were asked before"
UNREADABLE = "could not be read as questions"
UNSETTLED, EASY = "found no agreement", "every agent gets right, so that there is nothing to route"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question that was written about a worker's field, or from a passage that it finds."""

    question: Question
    worker: str
    is_passage: bool
    split: str


@dataclass(frozen=True, slots=True)
class Selection:
    """The tasks, and how many questions were left out by reason."""

    lines: tuple[TaskLine, ...]
    left_out: Counter[str]


def list_candidates(journal: Journal, pool: LivePool) -> tuple[list[Candidate], Counter[str]]:
    """The questions that are worth asking, in the order in which they were written; and the others by reason."""
    candidates: dict[str, Candidate] = {}
    left_out: Counter[str] = Counter()
    places: dict[str, int] = {}
    for request in journal.requests:
        # Each worker's questions start at another split, in the order in which the workers came: nothing moves later.
        places.setdefault(request.worker, 3 * len(places))
        if request.worker not in pool.workers:
            continue
        left_out[UNREADABLE] += request.problems
        for question in request.questions:
            place = places[request.worker]
            places[request.worker] += 1
            reason = _find_flaw(question, candidates, pool)
            if reason:
                left_out[reason] += 1
                continue
            split = SPLITS[place % len(SPLITS)]
            candidates[question.key] = Candidate(question, request.worker, request.is_passage, split)
    return list(candidates.values()), +left_out


def _find_flaw(question: Question, earlier: Mapping[str, Candidate], pool: LivePool) -> str:
    if question.key in earlier:
        return REPEATED
    if states_answer(question.question, as_text(question.answer)):
        return STATED
    return NAMED if names_worker(question.question, pool.workers) else ""


def list_voters(candidate: Candidate, journal: Journal, panel: Panel) -> dict[str, str]:
    """The answers to a question by voter, the author's first."""
    written = {panel.author: as_text(candidate.question.answer)} if panel.author_votes else {}
    replies = journal.replies.get(candidate.question.key, {})
    return written | {name: replies[name] for name in panel.answerers if name in replies}


def settle(candidate: Candidate, journal: Journal, panel: Panel) -> tuple[Agreement, str] | None:
    """The agreement on a question and what checked it; None where there is none."""
    replies, answer = list_voters(candidate, journal, panel), as_text(candidate.question.answer)
    agreement = find_agreement(answer, replies, panel.agree)
    if agreement is not None:
        return agreement, f"agreement of {agreement.votes}"
    verdicts = journal.verdicts.get(candidate.question.key, {})
    same = [name for name, reply in replies.items() if verdicts.get(name) or is_same_reply(answer, reply)]
    agreement = join_judged(answer, replies, same, panel.agree) if any(verdicts.values()) else None
    return None if agreement is None else (agreement, f"the judge {panel.judge}")


def select_tasks(journal: Journal, panel: Panel, pool: LivePool, count: int, others: int = 0) -> Selection:
    """At most `count` tasks, of every worker about as many. `others` tasks of the same file have something to route."""
    candidates, left_out = list_candidates(journal, pool)
    answered = [candidate for candidate in candidates if _is_answered(candidate, journal, panel)]
    agreements = [settle(candidate, journal, panel) for candidate in answered]
    successes = Counter(name for agreed in agreements if agreed for name in agreed[0].right)
    mixed: list[tuple[str, TaskLine]] = []
    easy: list[tuple[str, TaskLine]] = []
    for candidate, settled in zip(answered, agreements, strict=True):
        line = None if settled is None else _make_line(candidate, *settled, panel, pool, successes)
        if settled is None or line is None:
            left_out[UNSETTLED] += 1
            continue
        answerers = set(list_voters(candidate, journal, panel)).intersection(panel.answerers)
        is_easy = not candidate.is_passage and answerers <= settled[0].right
        (easy if is_easy else mixed).append((candidate.worker, line))
    mixed = _take_turns(mixed)[:count]
    allowed = min((len(mixed) + others) // MIXED_PER_EASY, count - len(mixed))
    left_out[EASY] += max(0, len(easy) - allowed)
    rows = _take_turns([*mixed, *_take_turns(easy)[:allowed]])
    return Selection(tuple(line for _, line in rows), +left_out)


def _is_answered(candidate: Candidate, journal: Journal, panel: Panel) -> bool:
    """Whether enough have answered for an agreement to be possible."""
    return len(list_voters(candidate, journal, panel)) >= panel.agree


def _take_turns(rows: Sequence[tuple[str, TaskLine]]) -> list[tuple[str, TaskLine]]:
    """The rows, one of each worker in turn."""
    by_worker: dict[str, list[tuple[str, TaskLine]]] = {}
    for row in rows:
        by_worker.setdefault(row[0], []).append(row)
    return [row for turn in zip_longest(*by_worker.values()) for row in turn if row is not None]


def make_plan(candidate: Candidate, agent: str, pool: LivePool) -> Turn:
    """The plan that asks an agent: alone, or with what a look-up finds for the question."""
    query = escape_dollars({"": candidate.question.query})[""]
    steps: list[Step] = []
    if candidate.is_passage:
        parameter = pool.workers[candidate.worker].instruction_parameter or ""
        search = escape_dollars({parameter: candidate.question.question})
        steps.append(Step(1, candidate.worker, search))
    parameter = pool.workers[agent].instruction_parameter or ""
    access = tuple(step.id for step in steps)
    steps.append(Step(len(steps) + 1, agent, {parameter: query}, access))
    return Turn(tuple(steps), f"${len(steps)}")


def _make_line(
    candidate: Candidate,
    agreement: Agreement,
    checked: str,
    panel: Panel,
    pool: LivePool,
    successes: Counter[str],
) -> TaskLine | None:
    """The line of a kept question; None where no agent that can be called for it was right, or it states its answer."""
    right = [name for name in panel.answerers if name in agreement.right]
    answers = agreement.answer if isinstance(agreement.answer, list) else [agreement.answer]
    if not right or any(states_answer(candidate.question.question, as_text(answer)) for answer in answers):
        return None
    cheapest = min(right, key=lambda name: (_read_price(pool, name), -successes[name]))
    agent = candidate.worker if candidate.worker in right else cheapest
    turn = make_plan(candidate, agent, pool)
    plan: JsonValue = json.loads(write_turn(turn.steps, as_text(turn.answer)).text)
    return TaskLine.model_validate(
        {
            "query": candidate.question.query,
            "answer": agreement.answer,
            "verifier": agreement.kind,
            "split": candidate.split,
            "plan": plan,
            "checked": checked,
        }
    )


def _read_price(pool: LivePool, agent: str) -> float:
    spec = pool.workers[agent].spec
    return spec.price_in + spec.price_out + spec.price_call
