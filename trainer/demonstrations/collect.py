"""Trajectories of a teacher on the real pool, and the ones that become demonstrations, as in ParaManager.

Several per task; those with the right answer stay, one that recovered from an error is preferred, then one whose
workers were used least so far, then the shortest; one per task is kept. Every trajectory is an ordinary trace.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import Orchestrator, Sink
from orchestrator.policies.registry import make_orchestrator
from orchestrator.prompt_styles import PROMPTS
from orchestrator.reader.states import TriedPlan
from pool_registry.actions import Status
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.spending import Spending, charge_calls_to
from pool_registry.language_models.completion import Draw
from trainer.demonstrations.fault_injection import Fault, FaultyPool, RecoveringTeacher
from trainer.demonstrations.slips import draw_second_turn, make_slipping_reader
from trainer.demonstrations.taught import TaskPlace, TaughtTask, TaughtTasks, place_tasks
from trainer.demonstrations.transcripts import (
    Demonstration,
    ReaderLesson,
    can_demonstrate,
    ends_with_needs,
    make_demonstration,
)
from trainer.evaluation.trials import SAMPLING_TEMPERATURE, run_task
from trainer.recipe_sections import DemonstrationSettings, ModelSettings
from trainer.tasks.suite import make_random
from trainer.tasks.task import Task
from trainer.tasks.task_pools import TaskPools, VaryTask, keep_task
from trainer.tasks.teachers import ORACLE

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One trajectory to sample. `draw` says how a model writes it; None is as the model is configured. It may have so
    many turns (`max_rounds`); None is the limit of its pool."""

    task: Task
    teacher: str
    fault: Fault | None = None
    draw: Draw | None = None
    max_rounds: int | None = None


class TrajectoryPlace(Protocol):
    """Where trajectories are sampled. `nodes` machines share them."""

    @property
    def nodes(self) -> int: ...

    async def sample(self, trajectory: Trajectory) -> Episode:
        """Sample a trajectory and return its graded episode. Its trace is recorded."""

    async def close(self) -> None:
        """Release what sampling needed."""


@dataclass(frozen=True, slots=True)
class LocalTeacher:
    """Samples trajectories in this process."""

    pools: TaskPools
    sink: Sink
    nodes: int = 1

    async def sample(self, trajectory: Trajectory) -> Episode:
        return await run_trajectory(trajectory, self.pools, self.sink)

    async def close(self) -> None:
        await self.pools.close()


async def run_trajectory(trajectory: Trajectory, pools: TaskPools, sink: Sink) -> Episode:
    """Sample a trajectory on its task's pool and grade it. Raises InvalidPool and UnknownOrchestrator."""
    async with pools.open(trajectory.task) as pool:
        fault = trajectory.fault
        teacher = _make_teacher(trajectory, pool)
        failing = FaultyPool(pool, fault) if fault is not None else pool
        limits = pool.pool.limits
        if trajectory.max_rounds is not None:
            limits = limits.model_copy(update={"max_rounds": trajectory.max_rounds})
        return await run_task(trajectory.task, teacher, failing, sink, limits, grader=pools.home)


def _make_teacher(trajectory: Trajectory, pool: LivePool) -> Orchestrator:
    task = trajectory.task
    if trajectory.teacher == ORACLE and task.oracle_turn is not None:
        return RecoveringTeacher(task.oracle_turn, trajectory.fault, list(task.workers))
    return make_orchestrator(trajectory.teacher, pool, task.oracle_turn, trajectory.draw)


class DemonstrationCollector:
    """Samples trajectories of a teacher and keeps one per task. `place` says where they are sampled; without it, in
    this process. `taught` is the account of what was shown before and of what it costs."""

    def __init__(
        self,
        settings: DemonstrationSettings,
        model: ModelSettings,
        pool: LivePool,
        sink: Sink,
        seed: int,
        rounds: int | None = None,
        vary: VaryTask = keep_task,
        place: TrajectoryPlace | None = None,
        taught: TaughtTasks | None = None,
    ) -> None:
        self.taught = taught or TaughtTasks()
        self._settings = settings
        self._model = model
        self._lesson = ReaderLesson(model.choose_listing(), settings.listed_needs)
        self._pools = TaskPools(pool, sink, vary)
        self._place = place or LocalTeacher(self._pools, sink)
        self._seed = seed
        self._random = Random(seed)  # noqa: S311
        self._rounds = rounds or pool.pool.limits.max_rounds
        self._used: Counter[str] = Counter()
        self.tried = 0
        self.ended = 0
        self.correct = 0
        self.recovered = 0
        self.failures: Counter[str] = Counter()  # tasks by why the teacher could not be asked

    async def collect(
        self, tasks: Sequence[Task], progress: Progress = lambda _done, _total: None
    ) -> list[Demonstration]:
        """One demonstration for every task that the teacher solved at least once, in the tasks' order.

        Every task runs on its own pool, where it has one.
        """
        slots = asyncio.Semaphore(self._settings.concurrency * self._place.nodes)
        plans = [[self._draw_fault(task) for _ in range(self._settings.samples)] for task in tasks]
        places = place_tasks(tasks)
        kept = [self.taught.find(place) for place in places]
        for row in filter(None, kept):
            self._count(row)
        done = self.ended

        async def collect_one(index: int) -> None:
            nonlocal done
            async with slots:
                if not self.taught.may_go_on:
                    return
                row = kept[index] = await self._show(tasks[index], places[index], plans[index])
            if row.ended:
                done += 1
                progress(done, len(tasks))

        try:
            async with asyncio.TaskGroup() as group:
                for index in [index for index, row in enumerate(kept) if row is None]:
                    group.create_task(collect_one(index))
        finally:
            await self._place.close()
            await self._pools.close()
        return [row.demonstration for row in kept if row is not None and row.demonstration is not None]

    async def _show(self, task: Task, place: TaskPlace, plan: Sequence[Fault | None]) -> TaughtTask:
        """Have the teacher show a task, on an account of its own within that of the job."""
        varied = self._pools.vary(task)
        faults = [_move_fault(fault, task, varied) for fault in plan]
        own = Spending(parent=self.taught.spending, exact=True)
        episodes: list[Episode] = []
        with charge_calls_to(own):
            async with self._pools.open(varied) as pool:
                for drawn in enumerate(faults):
                    if self.taught.may_go_on:
                        episodes.append(await self._sample(varied, *drawn))
                tried = await self._draw_second_turn(varied, pool)
        row = TaughtTask(query=place[0], place=place[1], cost=own.used.cost)
        if len(episodes) == len(faults) and not (own.refused or own.lost):
            row = self._keep(row, episodes, pool, tried)
            self._count(row)
        await self.taught.add(row)
        return row

    async def _draw_second_turn(self, task: Task, pool: LivePool) -> TriedPlan | None:
        reader = make_slipping_reader(self._settings, pool)
        return await draw_second_turn(task, pool, self._settings.second_turns, self._seed, reader)

    def _count(self, row: TaughtTask) -> None:
        self.ended += row.ended
        self.correct += row.solved
        self.recovered += row.recovered
        self.failures.update([row.failure] if row.failure else [])
        self._used.update(row.workers)

    def _draw_fault(self, task: Task) -> Fault | None:
        if self._random.random() >= self._settings.faults:
            return None
        pool = task.pool or self._pools.home.pool
        named = task.workers if task.oracle_turn is not None else tuple(spec.name for spec in pool.enabled)
        if not named:
            return None  # the right answer is a refusal: no step that could fail
        worker = self._random.choice(named)
        kinds = [Fault(worker, Status.TIMEOUT), Fault(worker, Status.EXEC_ERR)]
        if self._settings.teacher == ORACLE:
            kinds += [Fault(worker, slip="bad_arguments"), Fault(worker, slip="wrong_worker")]
        return self._random.choice(kinds)

    async def _sample(self, task: Task, number: int, fault: Fault | None) -> Episode:
        self.tried += 1
        settings = self._settings
        trajectory = Trajectory(task, settings.teacher, fault, self._draw_of(task, number), settings.max_rounds)
        return await self._place.sample(trajectory)

    def _draw_of(self, task: Task, number: int) -> Draw | None:
        """How a model writes one of several trajectories; a single one is written as the model is configured."""
        if self._settings.samples == 1:
            return None
        return Draw(SAMPLING_TEMPERATURE, make_random(f"teacher/{self._seed}/{task.query}/{number}").randrange(2**31))

    def _keep(
        self, row: TaughtTask, episodes: Sequence[Episode], pool: LivePool, tried: TriedPlan | None
    ) -> TaughtTask:
        """ParaManager's filter: correct, then recovered, then seldom-used workers, then short. A reader learns the plan
        that was right in the end, perhaps behind one that it has `tried`: for it a trajectory that needed none goes
        first."""
        style = self._model.prompt
        binds_needs = PROMPTS[style].binds_needs
        correct = [episode for episode in episodes if episode.graded is not None and episode.graded.correct]
        failure = next(filter(None, map(find_failure, episodes)), "")
        ended = row.model_copy(update={"ended": True, "solved": bool(correct), "failure": failure})
        usable = [episode for episode in correct if can_demonstrate(episode, pool, style)]
        if not usable:
            return ended
        best = min(
            usable,
            key=lambda one: (has_recovered(one) == binds_needs, self._familiarity(one), len(one.steps)),
        )
        lesson = make_demonstration(
            best, pool, self._model.dialect, style, self._rounds, "teacher", self._lesson, tried
        )
        is_alone = ends_with_needs(best.query, self._settings.needs_alone, self._seed)
        is_short = binds_needs and is_alone and tried is None
        workers = tuple(run.step.worker for run in best.steps.values())
        shown = {"demonstration": lesson.first_turn() if is_short else lesson, "workers": workers}
        return ended.model_copy(update={"recovered": has_recovered(best), **shown})

    def _familiarity(self, episode: Episode) -> float:
        """How often its workers were used so far, on average."""
        workers = {run.step.worker for run in episode.steps.values()}
        return sum(self._used[name] for name in workers) / max(1, len(workers))


def _move_fault(fault: Fault | None, task: Task, varied: Task) -> Fault | None:
    """The fault at the same step of the varied task's plan, where its worker may have another name."""
    if fault is None or varied.pool is task.pool:
        return fault
    if task.oracle_turn is None or varied.oracle_turn is None:
        return None  # without a plan nothing says which worker took the place of the one that was to fail
    steps = zip(task.oracle_turn.steps, varied.oracle_turn.steps, strict=True)
    return next((replace(fault, worker=new.worker) for old, new in steps if old.worker == fault.worker), None)


def has_recovered(episode: Episode) -> bool:
    """Whether a call failed and the episode still reached an answer."""
    failed = any(not observation.ok for observation in episode.observations().values())
    return failed and episode.ended is not None and episode.ended.outcome == "answered"


def find_failure(episode: Episode) -> str:
    """Why the orchestrator of an episode could not be asked; "" where it could."""
    if episode.ended is None or episode.ended.outcome != "orchestrator_failed":
        return ""
    return next((done.turn.error for done in reversed(episode.rounds) if done.turn and done.turn.error), "it failed")
