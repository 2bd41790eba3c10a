"""A recorded run, or a what-if of one, as a task: its query, the right answer, and the plan where that led to it.

Nothing becomes a task because it was answered. Either the verifier of the run's own task found the answer right, or a
person says that it is, or types the right one; the plan of a wrong answer is left out.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.engine.episode import Episode
from orchestrator.engine.events import Graded, VerdictPlace
from orchestrator.errors import EpisodeNotFound
from orchestrator.plan import Turn
from orchestrator.traces.store import EpisodeRow, Store, TraceStore
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from trainer.demonstrations.transcripts import find_plan
from trainer.errors import UnusableTasks
from trainer.evaluation.grading import grade_answer
from trainer.tasks.practice.stored import change_tasks
from trainer.tasks.practice.traffic_record import check_consent
from trainer.tasks.sources.files.cells import read_answer
from trainer.tasks.sources.jsonl import SourceRun, TaskLine, TextRule, make_task

MAX_SHOWN_CHARS = 80  # of an answer in a sentence


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a person says of a run's answer: that it is right, or, as they typed it, which one is; with who says so, ""
    where nobody logs in, and where."""

    is_right: bool = False
    answer: str = ""
    by: str = ""
    place: VerdictPlace = ""


NOTHING_SAID = Judgement()


@dataclass(frozen=True, slots=True)
class KeptRun:
    """The task that a run became; `is_right` where its own answer is the task's."""

    line: TaskLine
    is_right: bool


def keep_run(store: Store, episode_id: str, pool: str, judgement: Judgement = NOTHING_SAID) -> KeptRun:
    """Add a run to its pool's own tasks. What a person said of an answer that nothing had judged becomes its verdict,
    and a wrong run loses its star.

    Raises EpisodeNotFound, and UnusableTasks where nobody vouches for the answer, a client has sent it whose requests
    may not become tasks, or the task is there already.
    """
    episode = store.traces.episode(episode_id)
    row = store.traces.row(episode_id)
    check_consent(pool, find_first_run(store.traces, row).source)
    kept = make_task_of_run(episode, store.pools.latest(pool).pool, judgement)
    if is_open_to_verdicts(episode):
        _record_verdict(store, episode, judgement, kept.is_right, as_text(kept.line.answer))
    elif not kept.is_right:
        store.traces.star(episode_id, False)  # a starred run is imitated
    with change_tasks(store.pools, pool) as book:
        book.add([kept.line.model_copy(update={"run": name_run(store.traces, row)})])
    return kept


def name_run(traces: TraceStore, row: EpisodeRow, vouched: str = "") -> SourceRun:
    """Where a task comes from: the run that it is made of, with who sent the question, of a what-if the first one."""
    first = find_first_run(traces, row)
    return SourceRun(id=row.id, user=first.user_name, source=first.source, started_at=first.started_at, vouched=vouched)


def find_first_run(traces: TraceStore, row: EpisodeRow) -> EpisodeRow:
    """The run that a what-if goes back to, as far as it is still there; a run that is none itself."""
    while row.what_if_of is not None:
        try:
            row = traces.row(row.what_if_of)
        except EpisodeNotFound:
            break
    return row


def judge_run(store: Store, episode_id: str, judgement: Judgement) -> Graded:
    """Record what a person says of a run's answer, in place of what they said before. Without `is_right` and an answer
    it is wrong, and nobody says which one is right. A wrong run loses its star, so that nothing imitates it.

    Raises EpisodeNotFound, and UnusableTasks where the run has no answer yet, or its task's verifier judges it.
    """
    episode = store.traces.episode(episode_id)
    if not is_open_to_verdicts(episode):
        raise UnusableTasks(
            f"the run {episode_id} is one of a task, whose verifier judges it"
            if episode.ended is not None
            else f"the run {episode_id} has not ended; judge it once it has"
        )
    if episode.answer is None:
        raise UnusableTasks(f"the run {episode_id} has no answer to judge; keep it as a task with the right one")
    typed = judgement.answer.strip()
    if not typed:
        expected = as_text(episode.answer) if judgement.is_right else ""
        return _record_verdict(store, episode, judgement, judgement.is_right, expected)
    row = store.traces.row(episode_id)
    line = _write_line(episode.query, read_typed_answer(typed))
    is_right = asyncio.run(_accepts(line, episode.answer, store.pools.latest(row.pool).pool))
    return _record_verdict(store, episode, judgement, is_right, as_text(line.answer))


def is_open_to_verdicts(episode: Episode) -> bool:
    """Whether a person judges the answer of a run: it has ended, and is not one of a task with a verifier."""
    of_task = episode.started is not None and episode.started.task is not None
    return episode.ended is not None and (episode.graded is None or not of_task)


def _record_verdict(store: Store, episode: Episode, judgement: Judgement, is_right: bool, expected: str) -> Graded:
    assert episode.ended is not None, "is_open_to_verdicts looked"
    judged_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    verdict = Graded(is_right, expected, episode.ended.at, judgement.by, judgement.place, judged_at)
    store.traces.append(episode.id, verdict)
    store.traces.flush()
    if not is_right:
        store.traces.star(episode.id, False)  # a starred run is imitated
    return verdict


def make_task_of_run(episode: Episode, pool: Pool, judgement: Judgement = NOTHING_SAID) -> KeptRun:
    """The task that a run becomes. Raises UnusableTasks where nobody vouches for its answer, where the answer that a
    person typed cannot be one, and where no plan on this pool led to a right one."""
    typed = judgement.answer.strip()
    if typed:
        line = _write_line(episode.query, read_typed_answer(typed))
        is_right = asyncio.run(_accepts(line, episode.answer, pool))
    else:
        _check_vouched(episode, judgement)
        line, is_right = _write_line(episode.query, episode.answer), True
    if not is_right:
        return KeptRun(line, is_right)
    plan = asyncio.run(_find_plan(episode, pool))
    if plan is None and not typed:
        raise UnusableTasks(
            f"the run {episode.id} has no plan on the pool {pool.name} that led to its answer: correct a step of it "
            "(What if), or write the plan by hand"
        )
    written = json.loads(PlanDialect().format(Turn(plan.steps, plan.answer), ())) if plan else None
    return KeptRun(line.model_copy(update={"plan": written}), is_right)


def read_typed_answer(text: str) -> JsonValue:
    """An answer as a person types it: a list or an object as JSON, a number where it is one, else the text."""
    if text.startswith(("[", "{")):
        try:
            value: JsonValue = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UnusableTasks(f"answer: this begins like JSON and is none ({error}); correct it") from error
        return value
    return read_answer(text)


def _check_vouched(episode: Episode, judgement: Judgement) -> None:
    """Raise UnusableTasks unless a verifier or a person has found the answer right."""
    if episode.answer is None:
        raise UnusableTasks(f"the run {episode.id} has no answer: say which one is right, or it is no task")
    if judgement.is_right or (episode.graded is not None and episode.graded.correct):
        return
    answer = as_text(episode.answer)
    shown = answer if len(answer) <= MAX_SHOWN_CHARS else f"{answer[:MAX_SHOWN_CHARS]}..."
    wrong = _describe_verdict(episode.graded)
    raise UnusableTasks(f"is {shown} right? {wrong}; say that it is, or which answer is right")


def _describe_verdict(graded: Graded | None) -> str:
    if graded is None:
        return "nothing has verified it"
    return f"its task expects {graded.expected}" if graded.expected else "it was judged wrong"


def _write_line(query: str, answer: JsonValue) -> TaskLine:
    """A task to learn from. A list is right in any order; an object is compared as text."""
    rule = TextRule(kind="set") if isinstance(answer, list) else None
    line = TaskLine(
        query=query, answer=as_text(answer) if isinstance(answer, dict) else answer, verifier=rule, split="train"
    )
    try:
        make_task(line, "own", 0)
    except ValueError as error:
        raise UnusableTasks(str(error)) from error
    return line


def accepts_answer(query: str, expected: str, answer: JsonValue, pool: Pool) -> bool:
    """Whether an answer is the one that a person typed, compared as a task's. Raises UnusableTasks where what they
    typed can be no answer. Call it in a thread without an event loop."""
    return asyncio.run(_accepts(_write_line(query, read_typed_answer(expected)), answer, pool))


async def _accepts(line: TaskLine, answer: JsonValue, pool: Pool) -> bool:
    async with live_pool(pool) as live:
        return (await grade_answer(make_task(line, "own", 0), answer, live)).correct


async def _find_plan(episode: Episode, pool: Pool) -> Turn | None:
    async with live_pool(pool) as live:
        return find_plan(episode, live)
