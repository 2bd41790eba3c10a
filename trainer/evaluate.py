"""Runs an orchestrator on tasks and says how good it is. Every episode is recorded as an ordinary trace."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from orchestrator.episode import Episode
from orchestrator.events import Graded
from orchestrator.metrics import totals
from orchestrator.plan import Turn
from orchestrator.policies import make_orchestrator
from orchestrator.run import EpisodeSpec, NoSink, Orchestrator, Sink, run_episode
from pool_registry.actions import as_text
from pool_registry.live import LivePool
from trainer.statistics import bootstrap_mean
from trainer.tasks import recognize
from trainer.tasks.task import Task


class Evaluation(BaseModel):
    """What an evaluation measured. Times in seconds, cost in US dollars; `interval` is 95 %, over tasks."""

    orchestrator: str
    family: str
    level: int
    split: str
    tasks: int
    mean: float
    interval: tuple[float, float]
    statuses: dict[str, int]
    outcomes: dict[str, int]
    wall_s: float
    p50_s: float
    p95_s: float
    speedup: float | None
    tokens: int
    cost: float
    episodes: list[str]


@dataclass(frozen=True, slots=True)
class Graduate:
    """A finished episode with its verdict."""

    episode: Episode
    correct: bool


async def evaluate(
    orchestrator: str,
    tasks: Sequence[Task],
    pool: LivePool,
    *,
    sink: Sink | None = None,
    concurrency: int = 8,
) -> Evaluation:
    """Run and grade every task, at most `concurrency` at a time.

    Raises UnknownOrchestrator when the name does not resolve on this pool.
    """
    started = time.perf_counter()
    slots = asyncio.Semaphore(concurrency)

    async def one(task: Task) -> Graduate:
        async with slots:
            return await attempt(orchestrator, task, pool, sink or NoSink())

    graduates = await asyncio.gather(*map(one, tasks))
    return summarize(orchestrator, tasks, graduates, time.perf_counter() - started)


async def attempt(orchestrator: str, task: Task, pool: LivePool, sink: Sink) -> Graduate:
    """One episode on one task, graded into its trace."""
    policy = make_orchestrator(orchestrator, pool, task.oracle_turn)
    episode = await run_episode(EpisodeSpec(task.query, task=task.ref), policy, pool, sink=sink, resolve=resolve)
    return Graduate(episode, grade(episode, task, sink))


def grade(episode: Episode, task: Task, sink: Sink) -> bool:
    """Append the verifier's verdict to the trace and return it."""
    assert episode.ended is not None, "only finished episodes are graded"
    correct = task.grade(episode.answer)
    verdict = Graded(correct, as_text(task.expected), episode.ended.at)
    episode.apply(verdict)
    sink.append(episode.id, verdict)
    return correct


def resolve(name: str, query: str, pool: LivePool) -> Orchestrator:
    """How a recursive worker gets the orchestrator of its inner episode."""
    return make_orchestrator(name, pool, reference_turn(query))


def reference_turn(query: str) -> Turn | None:
    """The oracle's plan, when the query is one that a suite can write."""
    task = recognize(query)
    return task.oracle_turn if task else None


def summarize(orchestrator: str, tasks: Sequence[Task], graduates: Sequence[Graduate], wall_s: float) -> Evaluation:
    """The figures of an evaluation."""
    estimate = bootstrap_mean([float(graduate.correct) for graduate in graduates])
    measured = [totals(graduate.episode) for graduate in graduates]
    walls = sorted(each.wall_s for each in measured) or [0.0]
    speedups = [each.speedup for each in measured if each.speedup is not None]
    statuses = sum((Counter(each.statuses) for each in measured), Counter[str]())
    ended = [graduate.episode.ended for graduate in graduates]
    return Evaluation(
        orchestrator=orchestrator,
        family=_common([task.ref.family for task in tasks]),
        level=int(_common([str(task.ref.level) for task in tasks], "0")),
        split=_common([task.ref.split for task in tasks]),
        tasks=len(tasks),
        mean=estimate.mean,
        interval=(estimate.low, estimate.high),
        statuses=dict(statuses),
        outcomes=dict(Counter(end.outcome for end in ended if end)),
        wall_s=wall_s,
        p50_s=walls[len(walls) // 2],
        p95_s=walls[int(len(walls) * 0.95)] if len(walls) > 1 else walls[0],
        speedup=sum(speedups) / len(speedups) if speedups else None,
        tokens=sum(each.tokens_in + each.tokens_out for each in measured),
        cost=sum(each.cost for each in measured),
        episodes=[graduate.episode.id for graduate in graduates],
    )


def _common(values: Sequence[str], otherwise: str = "all") -> str:
    return values[0] if len(set(values)) == 1 else otherwise
