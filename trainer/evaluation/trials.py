"""Runs an orchestrator on tasks and says how good it is. Every episode is recorded as an ordinary trace.

What is reproducible: tasks, conditions and their pools depend on the recipe's seed alone, and each sample of a
task has a seed of its own for how turns are drawn. Fixed policies and local models therefore do the same again
(a model up to rounding: who shares its batch can tip a token), as long as the workers they call do. Endpoints of
others, and times, never repeat exactly.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, NoSink, Orchestrator, Sink, run_episode
from orchestrator.engine.events import Graded
from orchestrator.plan import Turn
from orchestrator.policies.model import with_memory
from orchestrator.policies.registry import make_orchestrator, orchestrator_factory
from orchestrator.traces.episode_totals import compute_totals
from pool_registry.actions import as_text
from pool_registry.calls.live_pool import LivePool
from pool_registry.language_models.completion import Draw
from pool_registry.pool import Limits
from trainer.evaluation.access_score import WorkKey, identify_work, score_access
from trainer.evaluation.grading import grade_answer
from trainer.results.rows import GENERATED, ResultRow, Slot, TaskKey
from trainer.results.summary import Evaluation, summarize
from trainer.tasks import SUITES, recognize
from trainer.tasks.pool_conditions import memory
from trainer.tasks.suite import seeded
from trainer.tasks.task import Task

__all__ = [
    "Evaluation",
    "MakeForTrial",
    "Trial",
    "evaluate_orchestrator",
    "grade_episode",
    "make_inner_orchestrator",
    "plan_trials",
    "run_task",
    "run_trials",
]

if TYPE_CHECKING:
    from orchestrator.failure_memory.lessons import FailureMemory
    from orchestrator.traces.agent_track_record import TrackRecord
    from trainer.evaluation.frozen_past import FrozenPast

SAMPLING_TEMPERATURE = 1.0  # the temperature of several samples (ParaManager, arXiv 2604.17009); one sample is greedy


@dataclass(frozen=True, slots=True)
class Trial:
    """One episode to run: its slot, its task, and how a model is to draw its turns."""

    slot: Slot
    task: Task
    draw: Draw


MakeForTrial = Callable[[Trial], Orchestrator]


async def evaluate_orchestrator(
    orchestrator: str,
    tasks: Sequence[Task],
    pool: LivePool,
    *,
    sink: Sink | None = None,
    concurrency: int = 8,
    make: MakeForTrial | None = None,
    limits: Limits | None = None,
    samples: int = 1,
    seed: int = 0,
    condition: str = "seen",
) -> Evaluation:
    """Run and grade every task `samples` times, at most `concurrency` episodes at a time, within the pool's
    limits or these.

    `make` gives the orchestrator of a trial; without it `orchestrator` is looked up by name.
    Raises UnknownOrchestrator, before anything runs, when the name does not resolve on this pool.
    """
    trials = plan_trials(orchestrator, tasks, condition=condition, samples=samples, seed=seed)
    make = make or make_by_name(pool)
    check_orchestrators(trials, make)
    rows: list[ResultRow] = []
    await run_trials(trials, pool, make, rows.append, sink=sink, concurrency=concurrency, limits=limits)
    order = {trial.slot: place for place, trial in enumerate(trials)}
    return summarize(orchestrator, sorted(rows, key=lambda row: order[row.slot]), condition)


def plan_trials(
    orchestrator: str,
    tasks: Sequence[Task],
    *,
    source: str = GENERATED,
    condition: str = "seen",
    samples: int = 1,
    temperature: float | None = None,
    seed: int = 0,
) -> list[Trial]:
    """Every sample of every task, first all tasks once: what was done before a stop then covers all of them.

    Without a temperature one sample is greedy and several are drawn at 1.0. The seed of a sample depends on
    `seed`, the task and the number of the sample, and not on who orchestrates.
    """
    heat = temperature if temperature is not None else SAMPLING_TEMPERATURE if samples > 1 else 0.0
    keys = [make_task_key(task, source) for task in tasks]
    return [
        Trial(Slot(orchestrator, condition, key, sample), task, Draw(heat, _sample_seed(seed, key, sample)))
        for sample in range(samples)
        for key, task in zip(keys, tasks, strict=True)
    ]


def make_task_key(task: Task, source: str = GENERATED) -> TaskKey:
    """What names a task in results. A generated one is the same whatever selection it was drawn with, a file's
    is known by the file's name."""
    ref = task.ref
    if ref.level > 0 and ref.family in SUITES:
        source = GENERATED
    elif source.startswith("file:"):
        source = "file:" + source.replace("\\", "/").rpartition("/")[2].removeprefix("file:")
    return TaskKey(source, ref.family, ref.level, ref.split, ref.index)


def make_by_name(pool: LivePool, called: Callable[[str], str] = str, known: FrozenPast | None = None) -> MakeForTrial:
    """Orchestrators by the name in the trial's slot, made anew for each (the oracle needs the task's plan).
    `called` is what that name is in this pool, where workers go by other names. What a policy reads in the traces it
    reads once: the episodes of an evaluation do not change its own choices. So are the lessons of the pool's failures,
    which trials in the condition `memory` are shown. Both are `known`, where that is given."""
    record = _open_record(known) if known is not None else None
    make = cache(lambda name: orchestrator_factory(name, pool, record))
    lessons = cache(lambda: _load_lessons(pool.pool.name, known))

    def made(trial: Trial) -> Orchestrator:
        orchestrator = make(called(trial.slot.orchestrator))(trial.task.oracle_turn, trial.draw)
        return with_memory(orchestrator, lessons()) if trial.slot.condition == memory.__name__ else orchestrator

    return made


def _open_record(known: FrozenPast) -> Callable[[], TrackRecord]:
    from orchestrator.traces.agent_track_record import TrackRecord  # brings the database along

    return lambda: TrackRecord(known.record)


def _load_lessons(pool: str, known: FrozenPast | None) -> FailureMemory:
    from orchestrator.failure_memory.lessons import FrozenMemory, freeze_memory  # brings the database along

    return freeze_memory(pool) if known is None else FrozenMemory(known.lessons)


def check_orchestrators(trials: Sequence[Trial], make: MakeForTrial) -> None:
    """Raise UnknownOrchestrator if their orchestrator cannot be made for the first of them, or for the first whose
    task has no reference plan."""
    without_plan = (trial for trial in trials if trial.task.oracle_turn is None)
    for trial in (*trials[:1], *islice(without_plan, 1)):
        make(trial)


async def run_trials(
    trials: Iterable[Trial],
    pool: LivePool,
    make: MakeForTrial,
    keep: Callable[[ResultRow], None],
    *,
    sink: Sink | None = None,
    settle: Callable[[], None] | None = None,
    limits: Limits | None = None,
    concurrency: int = 8,
    proceed: Callable[[int], bool] = lambda _: True,
) -> bool:
    """Run and grade trials, at most `concurrency` at a time; `keep` gets each row as its episode has ended, after
    `settle` has returned (in a thread: it waits until the trace is on disk). `proceed` is asked before each, told how
    many run; when it says no, what runs is finished and may be followed by more if it then says yes. Returns
    whether every trial was run."""
    waiting = deque(trials)
    same_work = identify_work(pool.pool)
    running = 0

    async def lane() -> None:
        nonlocal running
        while waiting and proceed(running):
            trial, running = waiting.popleft(), running + 1
            episode = await run_task(trial.task, make(trial), pool, sink or NoSink(), limits)
            if settle is not None:
                await asyncio.to_thread(settle)
            running -= 1
            keep(build_result_row(trial, episode, same_work))

    lanes = [asyncio.create_task(lane()) for _ in range(concurrency)]
    try:
        await asyncio.gather(*lanes)
        return not waiting
    finally:
        for each in lanes:
            each.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)


async def run_task(
    task: Task, orchestrator: Orchestrator, pool: LivePool, sink: Sink, limits: Limits | None = None
) -> Episode:
    """One episode on one task, graded into its trace."""
    spec = EpisodeSpec(task.query, task=task.ref)
    episode = await run_episode(spec, orchestrator, pool, limits=limits, sink=sink, resolve=make_inner_orchestrator)
    await grade_episode(episode, task, sink, pool)
    return episode


async def grade_episode(episode: Episode, task: Task, sink: Sink, pool: LivePool) -> bool:
    """Append the verdict to the trace and return it; `pool` holds the judge where a task has one."""
    assert episode.ended is not None, "only finished episodes are graded"
    found = await grade_answer(task, episode.answer, pool)
    graded = Graded(found.correct, as_text(task.expected), episode.ended.at)
    episode.apply(graded)
    sink.append(episode.id, graded)
    return found.correct


def make_inner_orchestrator(name: str, query: str, pool: LivePool) -> Orchestrator:
    """How a recursive worker gets the orchestrator of its inner episode."""
    return make_orchestrator(name, pool, find_reference_plan(query))


def find_reference_plan(query: str) -> Turn | None:
    """The oracle's plan, when the query is one that a suite can write."""
    task = recognize(query)
    return task.oracle_turn if task else None


def build_result_row(trial: Trial, episode: Episode, same_work: WorkKey) -> ResultRow:
    """A finished, graded episode in figures."""
    assert episode.ended is not None and episode.graded is not None, "attempt ends and grades episodes"
    measured = compute_totals(episode)
    access = score_access(episode, trial.task.oracle_turn, same_work)
    slot = trial.slot
    return ResultRow(
        orchestrator=slot.orchestrator,
        condition=slot.condition,
        **slot.task._asdict(),
        sample=slot.sample,
        query=trial.task.query,
        episode=episode.id,
        correct=episode.graded.correct,
        outcome=episode.ended.outcome,
        turns=measured.rounds,
        turn_errors=sum(done.turn is not None and done.turn.error is not None for done in episode.rounds),
        steps=measured.steps,
        depth=measured.depth,
        width=measured.width,
        statuses=measured.statuses,
        failed_calls=measured.steps - measured.statuses.get("OK", 0),
        wall_s=measured.wall_s,
        serial_s=measured.serial_s,
        tokens_in=measured.tokens_in,
        tokens_out=measured.tokens_out,
        cost=measured.cost,
        workers=dict(Counter(run.step.worker for run in episode.steps.values())),
        at=time.time(),
        **(asdict(access) if access else {}),
    )


def _sample_seed(seed: int, key: TaskKey, sample: int) -> int:
    return seeded(f"draw/{seed}/{'/'.join(map(str, key))}/{sample}").getrandbits(63)
