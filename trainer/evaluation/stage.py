"""The evaluate stage of a job: every orchestrator, in every condition of the pool, on every task, some times.

Each finished episode is one line of results.jsonl, written once its trace is on disk. What has a line is never
run again: a job that was killed, stopped or has met its spend cap goes on with the samples that are missing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.policies.registry import POLICIES, find_policy
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.kinds import kind_of
from pool_registry.pool import Limits, Pool
from trainer.errors import SpendCapReached, TrainingFailed
from trainer.evaluation.frozen_past import FrozenPast, freeze_past
from trainer.evaluation.trials import MakeForTrial, Trial, check_orchestrators, make_by_name, plan_trials, run_trials
from trainer.jobs.job_folder import JobFolder, read_lines
from trainer.recipe import Recipe
from trainer.results.rows import ResultRow, Slot, append_result, read_results, repair_last_line
from trainer.results.summary import summarize
from trainer.results.tables import find_reference
from trainer.tasks.pool_conditions import changed_pool, in_words_of, memory
from trainer.tasks.sources.source import source_named
from trainer.tasks.task import Task

log = logging.getLogger(__name__)
EVERY_AGENT = "direct:each"
NOTE_S = 1.0  # between two notes of how far it is
TELL_S = 30.0  # between two lines in the log that say so


class EvaluationProgress:
    """What of the wanted episodes is done, by earlier processes of the job too. `spent` is in US dollars and
    counts every episode of the job, also those that its recipe no longer asks for."""

    def __init__(self, wanted: set[Slot], rows: Sequence[ResultRow]) -> None:
        self.wanted = wanted
        self.rows: dict[Slot, ResultRow] = {}
        self.done, self.spent = 0, 0.0
        self._costs: dict[str, tuple[float, int]] = {}
        for row in rows:
            self.take(row)

    def take(self, row: ResultRow) -> None:
        self.rows[row.slot] = row
        self.done += row.slot in self.wanted
        self.spent += row.cost
        cost, count = self._costs.get(row.orchestrator, (0.0, 0))
        self._costs[row.orchestrator] = (cost + row.cost, count + 1)

    def typical_cost(self, orchestrator: str) -> float:
        """What an episode of this orchestrator has cost, on average."""
        cost, count = self._costs.get(orchestrator, (0.0, 0))
        return cost / count if count else 0.0


@dataclass(slots=True)
class Pace:
    """How one orchestrator's episodes come along in this process. Others take longer or shorter: it is asked for no
    more than its own."""

    count: int
    done: int = 0
    began: float = field(default_factory=time.monotonic)

    def text(self) -> str:
        """How many are done, and in about how many seconds the rest is, at this pace."""
        left = (self.count - self.done) * (time.monotonic() - self.began) / max(1, self.done)
        return f"{self.done} of {self.count} done, about {left:,.0f} s to go"


@dataclass(frozen=True, slots=True)
class EvaluationCell:
    """One orchestrator in one condition, on a pool that is open."""

    orchestrator: str
    condition: str
    pool: LivePool
    trials: Sequence[Trial]
    renaming: Mapping[str, str]
    known: FrozenPast | None = None

    @property
    def title(self) -> str:
        return self.orchestrator if self.condition == "seen" else f"{self.orchestrator}, {self.condition}"

    @property
    def reads_the_past(self) -> bool:
        """Whether it goes by recorded episodes or lessons."""
        policy = find_policy(self.orchestrator)
        return (policy is not None and policy.reads_traces) or self.condition == memory.__name__

    def make(self) -> MakeForTrial:
        """Its orchestrator, for every trial anew."""
        return make_by_name(self.pool, self.called, self.known)

    def called(self, name: str) -> str:
        """What an orchestrator's name is in this pool: direct:solver is another one where solver has a new name."""
        parsed = OrchestratorName.parse(name)
        if parsed.policy not in POLICIES:
            return name
        return str(replace(parsed, worker=self.renaming.get(parsed.worker, parsed.worker)))


class EvaluationStage:
    """Runs the stage. `names` are the orchestrators, `step` is where training ended (0 without)."""

    def __init__(
        self, recipe: Recipe, names: Sequence[str], pool: Pool, store: Store, job_folder: JobFolder, step: int = 0
    ) -> None:
        assert recipe.evaluate is not None, "the recipe has this stage"
        self._settings = recipe.evaluate
        self._names, self._pool = expand_agents(names, pool), pool
        self._store, self._job_folder, self._step = store, job_folder, step
        self._limits = choose_limits(recipe, pool)
        self._source = self._settings.source or recipe.tasks.source
        self._tasks = load_evaluation_tasks(recipe, self._source)
        self._progress = EvaluationProgress(set(), [])
        self._noted_at = 0.0
        self._told_at = time.monotonic()

    async def run(self, tell: Callable[[int], None]) -> bool:
        """Measure what is not measured yet; `tell` hears how many episodes there are in all. False when stopped
        on request.

        Raises SpendCapReached, and what an orchestrator, a source or a pool raises when it cannot be used.
        """
        repair_last_line(self._job_folder.results)
        async with AsyncExitStack() as opened:
            cells = [cell for name in self._settings.conditions for cell in await self._cells(name, opened)]
            cells = await self._informed(_select_runnable(cells))
            self._check_reference()
            wanted = {trial.slot for cell in cells for trial in cell.trials}
            self._progress = EvaluationProgress(wanted, read_results(self._job_folder.results))
            tell(len(wanted))
            self._note()
            for cell in cells:
                if not await self._measure(cell):
                    return False
        return True

    def _check_reference(self) -> None:
        """Raise UnknownReference before anything is spent, not when the table is drawn."""
        if self._settings.reference and self._settings.reference not in self._names:
            find_reference(self._job_folder.path.parent, [], self._settings.reference)

    async def _cells(self, condition: str, opened: AsyncExitStack) -> list[EvaluationCell]:
        """One cell per orchestrator. The changed pool is saved as a version, for traces name it."""
        settings = self._settings
        pool, renaming = changed_pool(condition, self._pool, settings.seed)
        if pool != self._pool:
            self._store.pools.save(pool)
        live = await opened.enter_async_context(live_pool(pool))
        tasks = in_words_of(renaming, self._tasks)
        how: dict[str, Any] = {"source": self._source, "condition": condition, "seed": settings.seed}
        how |= {"samples": settings.samples, "temperature": settings.temperature}
        return [
            EvaluationCell(name, condition, live, plan_trials(name, tasks, **how), renaming) for name in self._names
        ]

    async def _informed(self, cells: list[EvaluationCell]) -> list[EvaluationCell]:
        """The cells with what their pools' traces and lessons told when the job began, where that is needed."""
        pools = dict.fromkeys(cell.pool.pool.name for cell in cells if cell.reads_the_past)
        if not pools:
            return cells
        asked = {task.query for task in self._tasks}
        file, store = self._job_folder.frozen_past, self._store
        known = await asyncio.to_thread(freeze_past, file, store, list(pools), asked)
        return [replace(cell, known=known.get(cell.pool.pool.name)) for cell in cells]

    async def _measure(self, cell: EvaluationCell) -> bool:
        """Run what is missing of a cell and, when nothing is any more, write its summary."""
        missing = [trial for trial in cell.trials if trial.slot not in self._progress.rows]
        if missing:
            log.info("%s: %d of %d episodes to run", cell.title, len(missing), len(cell.trials))
        pace = Pace(len(missing))
        whole = await run_trials(
            missing,
            cell.pool,
            cell.make(),
            lambda row: self._keep(row, cell, pace),
            sink=self._store.traces,
            settle=self._store.traces.flush,
            limits=self._limits,
            concurrency=self._settings.concurrency,
            proceed=lambda running: not self._job_folder.stop_requested and self._affords(cell, running + 1),
        )
        self._note()
        if whole:
            self._summarize(cell)
        elif not self._job_folder.stop_requested:
            raise SpendCapReached(self._spent(cell))
        return whole

    def _affords(self, cell: EvaluationCell, episodes: int) -> bool:
        """Whether the spend cap has room for so many more episodes that cost what this orchestrator's have cost.
        The first ones start without that knowledge."""
        cap, done = self._settings.max_cost, self._progress
        if cap is None:
            return True
        return done.spent < cap and done.spent + episodes * done.typical_cost(cell.orchestrator) <= cap

    def _spent(self, cell: EvaluationCell) -> str:
        done = self._progress
        return (
            f"${done.spent:.4f} spent on {done.done:,} of {len(done.wanted):,} episodes; evaluate.max_cost is "
            f"${self._settings.max_cost:g} and an episode of {cell.orchestrator} costs about "
            f"${done.typical_cost(cell.orchestrator):.4f}. What is finished counts. To go on, raise "
            f"evaluate.max_cost in the job's recipe.yaml and resume"
        )

    def _keep(self, row: ResultRow, cell: EvaluationCell, pace: Pace) -> None:
        append_result(self._job_folder.results, row)
        self._progress.take(row)
        pace.done += 1
        if time.monotonic() - self._told_at >= TELL_S:
            self._told_at = time.monotonic()
            done, total = self._progress.done, len(self._progress.wanted)
            log.info("%s: %s; %d of %d episodes of the job", cell.title, pace.text(), done, total)
        if time.monotonic() - self._noted_at >= NOTE_S:
            self._note()

    def _note(self) -> None:
        """How far it is, for whoever watches. Without training before it, episodes are the job's steps."""
        self._noted_at = time.monotonic()
        done, total = self._progress.done, len(self._progress.wanted)
        figures = {"evaluate/done": done, "evaluate/total": total, "evaluate/cost": self._progress.spent}
        self._job_folder.append_metrics("evaluate", self._step or done, figures)

    def _summarize(self, cell: EvaluationCell) -> None:
        known = [(row.get("orchestrator"), row.get("condition")) for row in read_lines(self._job_folder.evaluations)]
        if (cell.orchestrator, cell.condition) in known:
            return
        rows = [self._progress.rows[trial.slot] for trial in cell.trials]
        found = summarize(cell.orchestrator, rows, cell.condition)
        self._job_folder.append_evaluation(found.model_dump(mode="json"))
        log.info("%s: %.3f [%.3f, %.3f]", cell.title, found.mean, *found.interval)


def _select_runnable(cells: Sequence[EvaluationCell]) -> list[EvaluationCell]:
    """The cells whose orchestrator can be made. Raises UnknownOrchestrator for one that can be in no condition;
    where only an ablation takes away what it needs, that cell is left out, and the log says so."""
    kept: list[EvaluationCell] = []
    refused: dict[str, UnknownOrchestrator] = {}
    for cell in cells:
        try:
            check_orchestrators(cell.trials, cell.make())
        except UnknownOrchestrator as error:
            refused.setdefault(cell.orchestrator, error)
            log.warning("%s is not measured: %s", cell.title, error)
        else:
            kept.append(cell)
    made = {cell.orchestrator for cell in kept}
    for name, why in refused.items():
        if name not in made:
            raise why
    return kept


def load_evaluation_tasks(recipe: Recipe, source: str) -> list[Task]:
    """What is asked. Raises TrainingFailed when there is nothing, UnknownTask or UnusableTasks."""
    settings = recipe.evaluate
    assert settings is not None
    levels = settings.levels or recipe.tasks.levels
    tasks = source_named(source).tasks(settings.split, settings.count, seed=settings.seed, levels=levels)
    if not tasks:
        raise TrainingFailed("tasks", f"{source} has no task in the {settings.split} split at these levels")
    return tasks


def expand_agents(names: Sequence[str], pool: Pool) -> list[str]:
    """The names with `direct:each` spelt out: every agent of the pool alone."""
    agents = [f"direct:{spec.name}" for spec in pool.enabled if kind_of(spec).role == "agent"]
    return list(dict.fromkeys(each for name in names for each in (agents if name == EVERY_AGENT else [name])))


def choose_limits(recipe: Recipe, pool: Pool) -> Limits:
    """The pool's limits with the recipe's rounds, those it was trained with where it says none."""
    assert recipe.evaluate is not None
    trained = recipe.grpo.rollouts.max_rounds if recipe.grpo else pool.limits.max_rounds
    return pool.limits.model_copy(update={"max_rounds": recipe.evaluate.max_rounds or trained})
