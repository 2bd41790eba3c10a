"""The second try that a person's verdict starts (after Reflexion, arXiv 2303.11366).

A person says that a run's answer is wrong. Where its pool tries failed runs again, a lesson is written from the run,
and its question is run once more with that lesson alone before it: in what the run has left of its budget, and without
a call that may have effects. The lesson is shown to other runs only once the second try is right: by the answer that
the person typed, else by their verdict on the second try. Every verdict is taken in here, those on second tries too,
and those that are taken back.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestrator.engine.budget import Budget
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, new_episode_id, run_episode
from orchestrator.engine.events import EVALUATION, Graded, Retried, RetryState
from orchestrator.engine.process_identity import is_alive, this_process
from orchestrator.errors import EpisodeNotFound
from orchestrator.failure_memory.lessons import OFF, LessonAlone, LessonRow, build_row
from orchestrator.failure_memory.write_lesson import RULE, has_failed, write_by_rule, write_lesson
from orchestrator.plan import Lesson
from orchestrator.policies.finalizer import find_finalizer
from orchestrator.policies.model import with_memory
from orchestrator.traces.store import EpisodeRow, Store
from pool_registry.calls.effect_free_pool import refuse_effects
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.spending import charge_calls_to
from pool_registry.errors import PoolNotFound
from pool_registry.pool import Limits, Pool
from trainer.demonstrations.episode_task import accepts_answer
from trainer.errors import UnusableTasks
from trainer.evaluation.lesson_trial import make_reader
from trainer.evaluation.trials import make_inner_orchestrator
from trainer.tasks.practice.traffic_record import check_consent

NOT_LEARNT_FROM = (EVALUATION, "training")  # sources of runs
NOT_MADE = ("interrupted", "taken back")  # another verdict may start such a try anew
AUTONOMOUS = "autonomous"


@dataclass(frozen=True, slots=True)
class SecondTry:
    """A second try that waits to be made: the id of its run, the failed run, the pool as it is now, and the lesson of
    that run which was in use before."""

    id: str
    failed: Episode
    pool: Pool
    in_use: LessonRow | None


def take_verdict(store: Store, episode_id: str) -> SecondTry | None:
    """Draw the consequences of a verdict that has just been recorded for the lesson of a run; returns the second try
    that is to be made now, if one is. Call it in a thread without an event loop.

    Raises EpisodeNotFound.
    """
    mark_interrupted_tries(store)
    episode = store.traces.episode(episode_id)
    graded, started = episode.graded, episode.started
    if graded is None or started is None:
        return None
    if started.retry_of:
        settle(store, started.retry_of, episode_id, graded.correct)
        return None
    if graded.correct:
        _take_back(store, episode)
        return None
    if episode.retried is None or episode.retried.state in NOT_MADE:
        return _claim(store, episode)
    if graded.expected and episode.retried.state in ("waiting", "judged"):
        _regrade(store, episode, episode.retried.episode)
    return None


def _claim(store: Store, failed: Episode) -> SecondTry | None:
    """Take the second try of a failed run for this process; None where none is to be made, or somebody was faster."""
    row = store.traces.row(failed.id)
    pool = _find_pool(store, row)
    sentence = write_by_rule(failed) if pool is not None and _may_be_tried(failed, pool) else None
    if pool is None or sentence is None:
        return None
    second = SecondTry(new_episode_id(), failed, pool, store.lessons.of_episode(failed.id))
    lesson = build_row(pool.name, Lesson(failed.query, sentence, RULE, failed.id, 0.0))
    lesson.awaits, lesson.owner = second.id, this_process()
    if not store.lessons.claim(lesson):
        return None
    _note(store, failed, second.id, "preparing")
    return second


def _find_pool(store: Store, row: EpisodeRow) -> Pool | None:
    """The newest version of a run's pool, where it tries failed runs again and may learn from that run."""
    try:
        pool = store.pools.latest(row.pool).pool
        check_consent(row.pool, row.source)
    except (PoolNotFound, UnusableTasks):  # the pool was deleted; its owner keeps nothing of what clients send
        return None
    return pool if pool.limits.memory != OFF and pool.limits.memory_retry else None


def _may_be_tried(failed: Episode, pool: Pool) -> bool:
    """Whether a failed run may be run again without asking anybody: no plan of it waits for a person, and nothing of
    it was meant for few workers alone."""
    started = failed.started
    assert started is not None, "a run with a verdict has begun"
    waits = started.mode is not None and started.mode.name != AUTONOMOUS
    is_private = bool(failed.run_limits.seen_by) or started.source in NOT_LEARNT_FROM
    return has_failed(failed) and not waits and pool.mode.name == AUTONOMOUS and not is_private


def open_budget(second: SecondTry) -> Budget:
    """What the failed run has left of its budget. Call it on the event loop that makes the second try."""
    failed = second.failed
    assert failed.started is not None, "_claim looked"
    budget = Budget(Limits.model_validate(dict(failed.started.limits)), failed.run_limits.max_cost)
    calls = sum(run.started_at is not None for run in failed.steps.values())
    budget.resume(failed.usage, calls, failed.last_at)
    return budget


async def make_second_try(
    second: SecondTry, opened: AbstractAsyncContextManager[LivePool], budget: Budget, store: Store
) -> None:
    """Write the lesson, run the question once more with it, and settle what the lesson is worth. `opened` opens
    `second.pool`. However it ends, the trace of the failed run says so. Raises InvalidPool where the pool does not
    open."""
    try:
        async with opened as pool:
            with charge_calls_to(budget.spending):
                retry = await _run_again(second, pool.limit(second.failed.run_limits), budget, store)
        if retry is not None:
            await asyncio.to_thread(_conclude, store, second.failed.id, retry)
    except BaseException:
        _abandon(store, second.failed, second.id, "interrupted")
        raise


async def _run_again(second: SecondTry, pool: LivePool, budget: Budget, store: Store) -> Episode | None:
    """The run of the second try; None where it cannot be made, which the trace of the failed run says then."""
    failed, started = second.failed, second.failed.started
    assert started is not None, "_claim looked"
    reader = make_reader(started.orchestrator, pool)
    lesson = await write_lesson(failed, pool) if reader is not None and budget.check_limits() is None else None
    if reader is None or lesson is None or budget.check_limits() is not None:
        _abandon(store, failed, second.id, _name_hindrance(reader is None, budget), second.in_use)
        return None
    store.lessons.change(
        failed.id,
        sentence=lesson.sentence,
        written_by=lesson.written_by,
        instead_of=lesson.instead_of,
        tokens=lesson.tokens,
        cost=lesson.cost,
    )
    _note(store, failed, second.id, "running")
    memory = LessonAlone(Lesson(failed.query, lesson.sentence, lesson.written_by, failed.id, 0.0))
    spec = EpisodeSpec(failed.query, id=second.id, user=started.user, source=started.source, retry_of=failed.id)
    return await run_episode(
        spec, with_memory(reader, memory), refuse_effects(pool), limits=budget.limits, sink=store.traces, budget=budget,
        resolve=make_inner_orchestrator,
        finalizer=find_finalizer(started.orchestrator, pool, for_person=started.source == "mine"),
    )  # fmt: skip


def _name_hindrance(has_no_reader: bool, budget: Budget) -> RetryState:
    """Why a second try was not made: nobody reads its lesson, somebody stopped it or switched the memory off, or a
    limit is reached."""
    reached = budget.check_limits()
    if has_no_reader:
        return "no reader"
    return "interrupted" if reached in (None, "stopped") else "no budget"


def _conclude(store: Store, failed_id: str, retry: Episode) -> None:
    """Say what a second try that has ended is worth, by the verdict on the failed run as it stands now."""
    store.traces.flush()
    failed = store.traces.episode(failed_id)
    graded = failed.graded
    if graded is None or graded.correct:
        _abandon(store, failed, retry.id, "taken back")
    elif retry.ended is None or retry.ended.outcome == "stopped":
        _abandon(store, failed, retry.id, "interrupted")
    elif retry.answer is None:
        settle(store, failed_id, retry.id, correct=False)
    elif graded.expected:
        _grade(store, failed, retry)
    else:
        store.lessons.change(failed_id, owner="")
        _note(store, failed, retry.id, "waiting")


def _regrade(store: Store, failed: Episode, retry_id: str) -> None:
    """Compare a second try with the answer that a person has typed since; their own verdict on it stays."""
    try:
        retry = store.traces.episode(retry_id)
    except EpisodeNotFound:
        return  # it was deleted
    by_hand = retry.graded is not None and retry.graded.place != "verifier"
    if retry.answer is not None and not by_hand:
        _grade(store, failed, retry)


def _grade(store: Store, failed: Episode, retry: Episode) -> None:
    """Give a second try its verdict by the answer that a person typed for the failed run."""
    assert failed.graded is not None and retry.ended is not None, "the callers looked"
    expected = failed.graded.expected
    pool = store.pools.latest(store.traces.row(failed.id).pool).pool
    correct = accepts_answer(failed.query, expected, retry.answer, pool)
    judged_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    verdict = Graded(correct, expected, retry.ended.at, failed.graded.by, "verifier", judged_at)
    store.traces.append(retry.id, verdict)
    settle(store, failed.id, retry.id, correct)


def settle(store: Store, failed_id: str, retry_id: str, correct: bool) -> None:
    """Keep the lesson whose second try is right, and forget the one whose is wrong. The last verdict counts: a lesson
    that was forgotten for an earlier one comes back as the second try was shown it."""
    try:
        failed = store.traces.episode(failed_id)
    except EpisodeNotFound:
        return  # it was deleted, and its lesson with it
    retried = failed.retried
    is_stale = retried is None or retried.episode != retry_id or failed.graded is None or failed.graded.correct
    if is_stale or retried is None:
        return
    if not correct:
        store.lessons.drop(failed_id)
    else:
        if retried.correct is False:
            _restore(store, failed, retry_id)
        store.lessons.change(failed_id, retry=retry_id, awaits="", owner="", used_at=datetime.now(UTC))
    _note(store, failed, retry_id, "judged", correct)


def _restore(store: Store, failed: Episode, retry_id: str) -> None:
    recalled = store.traces.episode(retry_id).recalled
    for lesson in recalled.lessons if recalled else ():
        store.lessons.add(build_row(store.traces.row(failed.id).pool, lesson))


def _take_back(store: Store, episode: Episode) -> None:
    """An answer that was called wrong is right: its lesson says what is not so. A second try that still runs finds
    that out when it ends."""
    retried = episode.retried
    if retried is not None and (retried.correct or retried.state == "waiting"):
        _abandon(store, episode, retried.episode, "taken back")
    elif retried is None or retried.state not in ("preparing", "running"):
        store.lessons.drop(episode.id)


def mark_interrupted_tries(store: Store) -> None:
    """Settle the second tries whose process has ended: one that had an answer by then is concluded, any other is
    marked as interrupted, and its lesson forgotten."""
    for row in store.lessons.list_awaiting():
        if row.owner and is_alive(row.owner, store.home.root):
            continue
        try:
            failed = store.traces.episode(row.episode)
        except EpisodeNotFound:
            store.lessons.drop(row.episode)
            continue
        ended = _find_ended(store, row.awaits)
        if ended is None:
            _abandon(store, failed, row.awaits, "interrupted")
        elif row.owner:
            _conclude(store, row.episode, ended)


def _find_ended(store: Store, episode_id: str) -> Episode | None:
    try:
        episode = store.traces.episode(episode_id)
    except EpisodeNotFound:
        return None
    return episode if episode.ended is not None else None


def _abandon(store: Store, failed: Episode, retry_id: str, state: RetryState, in_use: LessonRow | None = None) -> None:
    """Forget the lesson of a second try that shows nothing; one that was `in_use` before is used again."""
    store.lessons.drop(failed.id)
    if in_use is not None:
        store.lessons.add(LessonRow(**in_use.model_dump(exclude={"id"})))
    _note(store, failed, retry_id, state)


def _note(store: Store, failed: Episode, retry_id: str, state: RetryState, correct: bool | None = None) -> None:
    """Say in the trace of the failed run what has become of its second try."""
    assert failed.ended is not None, "it has failed"
    store.traces.append(failed.id, Retried(retry_id, correct, failed.ended.at, state))
    store.traces.flush()
