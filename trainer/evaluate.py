"""Runs an orchestrator on tasks and says how good it is. Every episode is recorded as an ordinary trace."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

from orchestrator.episode import Episode
from orchestrator.events import Graded, TaskRef
from orchestrator.metrics import Totals, totals
from orchestrator.plan import Turn
from orchestrator.policies import make_orchestrator
from orchestrator.run import EpisodeSpec, NoSink, Orchestrator, Sink, run_episode
from pool_registry.actions import as_text
from pool_registry.live import LivePool
from pool_registry.pool import Limits
from trainer.grading import verdict
from trainer.statistics import bootstrap_mean, quantile
from trainer.tasks import recognize
from trainer.tasks.task import Task

Make = Callable[[Task], Orchestrator]


class Evaluation(BaseModel):
    """What an evaluation measured. Times in seconds, cost in US dollars; `interval` is 95 %, over tasks.

    `family` and `split` are "all" and `level` is 0 where the tasks differ in them; `cells` then holds the
    figures by family, level and split. `turns` counts turns, `turn_errors` those that were none; `steps` and
    `width` (how many steps could run at once) are means over episodes.
    """

    orchestrator: str
    family: str
    level: int
    split: str
    tasks: int
    mean: float
    interval: tuple[float, float]
    statuses: dict[str, int]
    turns: int
    turn_errors: int
    steps: float
    width: float
    outcomes: dict[str, int]
    wall_s: float
    p50_s: float
    p95_s: float
    speedup: float | None
    tokens: int
    cost: float
    episodes: list[str]
    cells: list[Evaluation] = []


@dataclass(frozen=True, slots=True)
class Result:
    """A finished, graded episode in figures. `ended_s` counts from the start of the evaluation."""

    ref: TaskRef
    episode: str
    correct: bool
    totals: Totals
    outcome: str
    turn_errors: int
    ended_s: float = field(compare=False, default=0.0)


async def evaluate(
    orchestrator: str,
    tasks: Sequence[Task],
    pool: LivePool,
    *,
    sink: Sink | None = None,
    concurrency: int = 8,
    make: Make | None = None,
    limits: Limits | None = None,
) -> Evaluation:
    """Run and grade every task, at most `concurrency` at a time, within the pool's limits or these.

    `make` gives the orchestrator of a task; without it `orchestrator` is looked up by name.
    Raises UnknownOrchestrator, before anything runs, when the name does not resolve on this pool.
    """
    make = make or by_name(orchestrator, pool)
    policies = [make(task) for task in tasks]
    slots = asyncio.Semaphore(concurrency)
    started = time.perf_counter()

    async def one(task: Task, policy: Orchestrator) -> Result:
        async with slots:
            episode = await attempt(task, policy, pool, sink or NoSink(), limits)
        return _result(task, episode, time.perf_counter() - started)

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(one(task, policy)) for task, policy in zip(tasks, policies, strict=True)]
    return summarize(orchestrator, [done.result() for done in running])


def by_name(orchestrator: str, pool: LivePool) -> Make:
    """The orchestrator called so, made anew for each task (the oracle needs the task's plan)."""
    return lambda task: make_orchestrator(orchestrator, pool, task.oracle_turn)


async def attempt(
    task: Task, orchestrator: Orchestrator, pool: LivePool, sink: Sink, limits: Limits | None = None
) -> Episode:
    """One episode on one task, graded into its trace."""
    spec = EpisodeSpec(task.query, task=task.ref)
    episode = await run_episode(spec, orchestrator, pool, limits=limits, sink=sink, resolve=resolve)
    await grade(episode, task, sink, pool)
    return episode


async def grade(episode: Episode, task: Task, sink: Sink, pool: LivePool) -> bool:
    """Append the verdict to the trace and return it; `pool` holds the judge where a task has one."""
    assert episode.ended is not None, "only finished episodes are graded"
    found = await verdict(task, episode.answer, pool)
    graded = Graded(found.correct, as_text(task.expected), episode.ended.at)
    episode.apply(graded)
    sink.append(episode.id, graded)
    return found.correct


def resolve(name: str, query: str, pool: LivePool) -> Orchestrator:
    """How a recursive worker gets the orchestrator of its inner episode."""
    return make_orchestrator(name, pool, reference_turn(query))


def reference_turn(query: str) -> Turn | None:
    """The oracle's plan, when the query is one that a suite can write."""
    task = recognize(query)
    return task.oracle_turn if task else None


def _result(task: Task, episode: Episode, ended_s: float) -> Result:
    assert episode.ended is not None and episode.graded is not None, "attempt ends and grades episodes"
    errors = sum(done.turn is not None and done.turn.error is not None for done in episode.rounds)
    correct = episode.graded.correct
    return Result(task.ref, episode.id, correct, totals(episode), episode.ended.outcome, errors, ended_s)


def summarize(orchestrator: str, results: Sequence[Result]) -> Evaluation:
    """The figures of all results, and of each cell when there are several."""
    cells: dict[tuple[str, int, str], list[Result]] = {}
    for result in results:
        cells.setdefault((result.ref.family, result.ref.level, result.ref.split), []).append(result)
    whole = _figures(orchestrator, results)
    if len(cells) < 2:
        return whole
    return whole.model_copy(update={"cells": [_figures(orchestrator, each) for each in cells.values()]})


def _figures(orchestrator: str, results: Sequence[Result]) -> Evaluation:
    estimate = bootstrap_mean([float(result.correct) for result in results])
    measured = [result.totals for result in results]
    walls = [each.wall_s for each in measured]
    speedups = [each.speedup for each in measured if each.speedup is not None]
    return Evaluation(
        orchestrator=orchestrator,
        family=_common([result.ref.family for result in results]),
        level=int(_common([str(result.ref.level) for result in results], "0")),
        split=_common([result.ref.split for result in results]),
        tasks=len(results),
        mean=estimate.mean,
        interval=(estimate.low, estimate.high),
        statuses=dict(sum((Counter(each.statuses) for each in measured), Counter[str]())),
        turns=sum(each.rounds for each in measured),
        turn_errors=sum(result.turn_errors for result in results),
        steps=_mean([each.steps for each in measured]),
        width=_mean([each.width for each in measured]),
        outcomes=dict(Counter(result.outcome for result in results)),
        wall_s=_span(results),
        p50_s=quantile(walls, 0.50),
        p95_s=quantile(walls, 0.95),
        speedup=sum(speedups) / len(speedups) if speedups else None,
        tokens=sum(each.tokens_in + each.tokens_out for each in measured),
        cost=sum(each.cost for each in measured),
        episodes=[result.episode for result in results],
    )


def _span(results: Sequence[Result]) -> float:
    """From the first episode's start to the last one's end."""
    starts = [result.ended_s - result.totals.wall_s for result in results]
    return max(result.ended_s for result in results) - max(0.0, min(starts)) if results else 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _common(values: Sequence[str], otherwise: str = "all") -> str:
    return values[0] if len(set(values)) == 1 else otherwise
