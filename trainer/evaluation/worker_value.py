"""What a worker is worth to a pool: the same tasks are done with it and without it, and their differences are measured.

Both halves of a pair run one after the other, in an order that changes from pair to pair. Tools whose calls may have
effects are not called unless a person allows it. Nothing of this is kept among the traces.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import NoSink
from orchestrator.errors import UnknownOrchestrator
from orchestrator.policies.registry import make_orchestrator, needs_reference
from orchestrator.traces.episode_totals import compute_totals
from pool_registry.calls.effect_free_pool import list_refused_workers, refuse_effects
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.pool import Pool
from trainer.evaluation.trials import run_task
from trainer.results.statistics import Estimate, bootstrap_amount, bootstrap_difference, mean
from trainer.tasks.pool_conditions import mend_fallbacks, remove_workers
from trainer.tasks.task import Task

REFERENCE_PLANS = "oracle"
TOO_FEW = 8  # pairs, below which no interval says anything
PAIRS_AT_A_TIME = 2


@dataclass(frozen=True, slots=True)
class ValueOptions:
    """`orchestrator` does the tasks; `seconds` is the time for all of them. `allowed`: tools that may be called
    although a call may have effects."""

    orchestrator: str
    seconds: float = 60.0
    max_tasks: int = 60
    allowed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TrialFigures:
    """One half of a pair."""

    correct: bool
    wall_s: float
    cost: float
    tokens: int
    calls: int  # of the worker in question


@dataclass(frozen=True, slots=True)
class TaskPair:
    """A task done with the worker and without it."""

    query: str
    with_it: TrialFigures
    without_it: TrialFigures


@dataclass(frozen=True, slots=True)
class Change:
    """A figure's mean with the worker and without it, and the mean difference over tasks with its 95 % interval."""

    with_it: float
    without_it: float
    difference: Estimate


@dataclass(frozen=True, slots=True)
class WorkerValue:
    """What a worker changes. `tasks` were to be done; `needing` of the pairs have a reference plan that calls it;
    `refused` are tools that were not called because a call may have effects."""

    worker: str
    orchestrator: str
    pairs: tuple[TaskPair, ...]
    tasks: int
    needing: int
    refused: tuple[str, ...]
    score: Change
    wall_s: Change
    cost: Change
    tokens: Change

    @property
    def enough(self) -> bool:
        """Whether there are so many pairs that the intervals mean something."""
        return len(self.pairs) >= TOO_FEW

    @property
    def verdict(self) -> str:
        """What can be said of the score, in a sentence."""
        count = len(self.pairs)
        done = f"{count} task" if count == 1 else f"{count} tasks"
        if not self.enough:
            return f"{done} done with and without {self.worker}: too few to tell ({TOO_FEW} are needed)."
        calls = sum(pair.with_it.calls for pair in self.pairs)
        if not calls:
            return f"In {done} {self.worker} was never called, so it changed nothing."
        change = self.score.difference
        if change.low <= 0 <= change.high:
            return f"In {done} no difference of the score can be told from chance."
        words = "higher" if change.mean > 0 else "lower"
        low, high = (round(100 * bound) for bound in sorted((abs(change.low), abs(change.high))))
        return (
            f"With {self.worker} the share of right answers is {abs(100 * change.mean):.0f} points {words} "
            f"(95 %: {low} to {high}; {done})."
        )


def with_worker_on(pool: Pool, worker: str) -> Pool:
    """The pool with a worker switched on. Raises PoolNotFound when it has none of this name."""
    spec = pool.worker(worker)
    return pool if spec.enabled else pool.with_worker(spec.model_copy(update={"enabled": True}), worker)


def without_worker(pool: Pool, worker: str) -> Pool:
    """The pool without a worker, and without fallbacks on it. Raises UnknownTask when nothing would be left."""
    return mend_fallbacks(remove_workers(pool, [worker]), {})


async def measure_worker_value(pool: Pool, worker: str, tasks: Sequence[Task], options: ValueOptions) -> WorkerValue:
    """Do tasks with and without a worker until the time is up. Raises PoolNotFound, UnknownTask for a pool of one
    worker, and UnknownOrchestrator when the tasks cannot be done without the worker."""
    present, absent = with_worker_on(pool, worker), without_worker(with_worker_on(pool, worker), worker)
    if needs_reference(options.orchestrator):
        tasks = [task for task in tasks if task.oracle_turn is not None]
    chosen = [task for task in tasks if task.pool is None][: options.max_tasks]
    async with live_pool(present) as open_present, live_pool(absent) as open_absent:
        refused = list_refused_workers(open_present, options.allowed)
        pools = [refuse_effects(opened, options.allowed) for opened in (open_present, open_absent)]
        if chosen:
            make_orchestrator(options.orchestrator, pools[1], chosen[0].oracle_turn)
        run = _PairRun(worker, options.orchestrator, pools[0], pools[1])
        pairs = await run.run_until(chosen, time.monotonic() + options.seconds)
    return summarize_pairs(worker, options.orchestrator, chosen, pairs, refused)


async def measure_in_time(
    pool: Pool, worker: str, tasks: Sequence[Task], options: ValueOptions
) -> tuple[WorkerValue, str]:
    """Like `measure_worker_value`, but an orchestrator that does too few pairs in half of the time gives way to the
    tasks' reference plans, where there are enough. Returns a sentence that says so, too; "" where it did not."""
    planned = sum(task.oracle_turn is not None and task.pool is None for task in tasks)
    if needs_reference(options.orchestrator) or planned < TOO_FEW:
        return await measure_worker_value(pool, worker, tasks, options), ""
    began = time.monotonic()
    first = replace(options, seconds=options.seconds / 2)
    value = await measure_worker_value(pool, worker, tasks, first)
    left = options.seconds - (time.monotonic() - began)
    if value.enough:
        return value, ""
    replayed = await measure_worker_value(
        pool, worker, tasks, replace(options, orchestrator=REFERENCE_PLANS, seconds=max(left, options.seconds / 4))
    )
    return replayed, (
        f"{options.orchestrator} did {len(value.pairs)} of {value.tasks} tasks in {first.seconds:.0f} s, too few to "
        "tell. So the tasks' reference plans were replayed, which do not look for another way. To measure with the "
        "orchestrator, name it and give it more time."
    )


@dataclass(frozen=True, slots=True)
class _PairRun:
    """Does tasks on two pools."""

    worker: str
    orchestrator: str
    present: LivePool
    absent: LivePool

    async def run_until(self, tasks: Sequence[Task], end: float) -> dict[int, TaskPair]:
        """The pairs that were done before `end` on the monotonic clock, by the place of their task."""
        pairs: dict[int, TaskPair] = {}
        places = iter(range(len(tasks)))

        async def lane() -> None:
            for place in places:
                pairs[place] = await self._do(tasks[place], reverse=bool(place % 2))

        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, end - time.monotonic())):
                await asyncio.gather(*(lane() for _ in range(PAIRS_AT_A_TIME)))
        return pairs

    async def _do(self, task: Task, reverse: bool) -> TaskPair:
        figures = {}
        for pool in [self.absent, self.present] if reverse else [self.present, self.absent]:
            orchestrator = make_orchestrator(self.orchestrator, pool, task.oracle_turn)
            figures[pool is self.present] = self._measure(await run_task(task, orchestrator, pool, NoSink()))
        return TaskPair(task.query, figures[True], figures[False])

    def _measure(self, episode: Episode) -> TrialFigures:
        totals = compute_totals(episode)
        calls = sum(run.step.worker == self.worker for run in episode.steps.values())
        correct = episode.graded is not None and episode.graded.correct
        return TrialFigures(correct, totals.wall_s, totals.cost, totals.tokens_in + totals.tokens_out, calls)


def summarize_pairs(
    worker: str, orchestrator: str, tasks: Sequence[Task], pairs: dict[int, TaskPair], refused: Collection[str]
) -> WorkerValue:
    """The figures of the pairs that were done."""
    done = tuple(pairs[place] for place in sorted(pairs))
    score = _compare([(float(pair.with_it.correct), float(pair.without_it.correct)) for pair in done])
    bounded = bootstrap_difference([pair.with_it.correct - pair.without_it.correct for pair in done])
    return WorkerValue(
        worker=worker,
        orchestrator=orchestrator,
        pairs=done,
        tasks=len(tasks),
        needing=sum(worker in tasks[place].workers for place in pairs),
        refused=tuple(refused),
        score=Change(score.with_it, score.without_it, bounded),
        wall_s=_compare([(pair.with_it.wall_s, pair.without_it.wall_s) for pair in done]),
        cost=_compare([(pair.with_it.cost, pair.without_it.cost) for pair in done]),
        tokens=_compare([(float(pair.with_it.tokens), float(pair.without_it.tokens)) for pair in done]),
    )


def _compare(values: Sequence[tuple[float, float]]) -> Change:
    differences = [with_it - without_it for with_it, without_it in values]
    return Change(
        mean([with_it for with_it, _ in values]),
        mean([without_it for _, without_it in values]),
        bootstrap_amount(differences),
    )


def choose_replayer(candidates: Sequence[str], pool: LivePool, tasks: Sequence[Task]) -> str:
    """The first orchestrator that can be made on a pool; the reference plans of the tasks where none can."""
    reference = next((task.oracle_turn for task in tasks if task.oracle_turn is not None), None)
    for name in candidates:
        with suppress(UnknownOrchestrator):
            make_orchestrator(name, pool, reference)
            return name
    return REFERENCE_PLANS
