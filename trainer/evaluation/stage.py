"""The evaluate stage of a job: every orchestrator, in every condition of the pool, on every task and sample.

Each finished episode is one line of results.jsonl, written once its trace is on disk. An episode with a line is
never run again: a job that was killed, was stopped or reached its spend cap continues with the missing samples.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Protocol

from orchestrator.binding.bind_workers import BY_DESCRIPTION, BindingSettings
from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.policies.registry import POLICIES, goes_by_traces
from orchestrator.traces.store import Store
from pool_registry.actions import Usage
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.calls.patience import RATE_LIMITED, Patience
from pool_registry.calls.spending import ROUNDING, Spending
from pool_registry.pool import Limits, Pool
from trainer.errors import SpendCapReached, TrainingFailed
from trainer.evaluation.charged_trials import ChargedTrials
from trainer.evaluation.frozen_past import FrozenPast, freeze_past
from trainer.evaluation.trials import (
    LocalTrials,
    MakeForTrial,
    Trial,
    TrialRunner,
    check_orchestrators,
    make_by_name,
    plan_trials,
    run_trials,
)
from trainer.jobs.job_folder import JobFolder, read_lines
from trainer.recipe_sections import EVERY_AGENT, EvaluateSettings
from trainer.results.rows import ResultRow, Slot, append_result, read_results, repair_last_line
from trainer.results.summary import summarize
from trainer.results.tables import find_reference
from trainer.tasks.pool_conditions import DISTRACTORS, MEMORY
from trainer.tasks.pool_settings import PoolSettings
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task
from trainer.tasks.task_conditions import apply_condition_to_tasks

log = logging.getLogger(__name__)
METRICS_S = 1.0  # between two lines of metrics.jsonl about the progress
LOG_S = 30.0  # between two lines of the log about it


class EvaluationProgress:
    """How many of the planned episodes are done, those of earlier processes of the job included.

    `spent` is in US dollars and counts every episode of the job, also those that its recipe no longer plans and those
    that a cap cut off.
    """

    def __init__(self, planned: set[Slot], rows: Sequence[ResultRow], spent: float = 0.0) -> None:
        self.planned = planned
        self.rows: dict[Slot, ResultRow] = {}
        self.done, self.spent = 0, spent
        self._costs: dict[str, tuple[float, int]] = {}
        for row in rows:
            self.add(row)

    def add(self, row: ResultRow) -> None:
        self.rows[row.slot] = row
        self.done += row.slot in self.planned
        self.spent += row.cost
        cost, count = self._costs.get(row.orchestrator, (0.0, 0))
        self._costs[row.orchestrator] = (cost + row.cost, count + 1)

    def mean_cost(self, orchestrator: str) -> float:
        """Return the mean cost of an episode of this orchestrator, in US dollars; 0 before its first."""
        cost, count = self._costs.get(orchestrator, (0.0, 0))
        return cost / count if count else 0.0


@dataclass(slots=True)
class Pace:
    """The speed of one orchestrator's episodes in this process, for an estimate of the time that is left."""

    count: int
    done: int = 0
    began: float = field(default_factory=time.monotonic)

    def text(self) -> str:
        """Describe how many are done and about how many seconds the others need."""
        left = (self.count - self.done) * (time.monotonic() - self.began) / max(1, self.done)
        return f"{self.done} of {self.count} done, about {left:,.0f} s to go"


@dataclass(frozen=True, slots=True)
class EvaluationCell:
    """One orchestrator in one condition, on an open pool. `past` is given where it reads the past."""

    orchestrator: str
    condition: str
    pool: LivePool
    trials: Sequence[Trial]
    renaming: Mapping[str, str]
    past: FrozenPast | None = None
    binding: BindingSettings = BY_DESCRIPTION

    @property
    def title(self) -> str:
        return self.orchestrator if self.condition == "seen" else f"{self.orchestrator}, {self.condition}"

    @property
    def reads_the_past(self) -> bool:
        """Whether it decides by recorded episodes or is shown lessons."""
        return goes_by_traces(self.orchestrator) or self.condition == MEMORY

    def maker(self) -> MakeForTrial:
        """Return the function that makes its orchestrator, a new one for every trial."""
        return make_by_name(self.pool, self.rename_orchestrator, self.past, self.binding)

    def rename_orchestrator(self, name: str) -> str:
        """Rename the worker in an orchestrator's name as in this pool: direct:solver where solver has a new name."""
        parsed = OrchestratorName.parse(name)
        if parsed.policy not in POLICIES:
            return name
        return str(replace(parsed, worker=self.renaming.get(parsed.worker, parsed.worker)))


class TrialPlace(Protocol):
    """Where the episodes of an evaluation run. `nodes` machines share them."""

    @property
    def nodes(self) -> int: ...

    def open_cell(self, cell: EvaluationCell, limits: Limits, store: Store) -> TrialRunner:
        """What runs the trials of a cell. Their traces go to `store`."""


class ThisProcess:
    """Runs episodes in this process."""

    nodes = 1

    def open_cell(self, cell: EvaluationCell, limits: Limits, store: Store) -> TrialRunner:
        return LocalTrials(cell.pool, cell.maker(), store.traces, store.traces.flush, limits)


class EvaluationStage:
    """Runs the stage. `names` are the orchestrators, `step` is the last step of training before it; where there is
    none, episodes count as the job's steps.

    `variation` says how the condition `varied` draws pools, with distractors from `others`. `place` says where the
    episodes run; without it, in this process. `stage` is the section of the recipe that it runs.
    """

    def __init__(
        self,
        settings: EvaluateSettings,
        names: Sequence[str],
        pool: Pool,
        store: Store,
        job_folder: JobFolder,
        step: int | None = None,
        variation: PoolSettings | None = None,
        others: Sequence[Pool] = (),
        place: TrialPlace | None = None,
        stage: str = "evaluate",
    ) -> None:
        self._place = place or ThisProcess()
        self._stage = stage
        self._variation, self._others = variation, others
        self._settings = settings
        self._names, self._pool = expand_agents(names, pool), pool
        self._store, self._job_folder, self._step = store, job_folder, step
        self._limits = pool.limits
        if settings.max_rounds is not None:
            self._limits = pool.limits.model_copy(update={"max_rounds": settings.max_rounds})
        self._tasks = load_evaluation_tasks(settings)
        self._progress = EvaluationProgress(set(), [])
        self._patience = Patience(lambda: job_folder.stop_requested)
        self._spending = Spending(max_cost=settings.max_cost, exact=True, patience=self._patience)
        self._wrote_metrics_at = 0.0
        self._logged_at = time.monotonic()

    async def run(self, on_start: Callable[[int], None]) -> bool:
        """Run the missing episodes; `on_start` is given the number of all. Returns False when stopped on request.

        Raises SpendCapReached, and what an orchestrator, a source or a pool raises when it cannot be used.
        """
        repair_last_line(self._job_folder.results)
        async with AsyncExitStack() as pools:
            cells = [cell for name in self._settings.conditions for cell in await self._open_cells(name, pools)]
            cells = await self._add_past(await _select_runnable(cells))
            self._check_reference()
            planned = {trial.slot for cell in cells for trial in cell.trials}
            spent = self._job_folder.sum_costs(self._stage)
            self._progress = EvaluationProgress(planned, read_results(self._job_folder.results), spent)
            self._spending.charge(Usage(cost=self._progress.spent))
            on_start(len(planned))
            self._write_metrics()
            for cell in cells:
                if not await self._measure(cell):
                    return False
        return True

    def _check_reference(self) -> None:
        """Raise UnknownReference now, before anything is spent, and not when the tables are drawn."""
        if self._settings.reference and self._settings.reference not in self._names:
            find_reference(self._job_folder.path.parent, [], self._settings.reference)

    def _list_others(self, condition: str) -> Sequence[Pool]:
        """The pools that distractors may come from: the recipe's, else every other pool of the data folder."""
        if self._others or condition != DISTRACTORS:
            return self._others
        names = sorted(name for name in self._store.pools.names() if name != self._pool.name)
        return [self._store.pools.latest(name).pool for name in names]

    async def _open_cells(self, condition: str, pools: AsyncExitStack) -> list[EvaluationCell]:
        """Open one cell per orchestrator. A changed pool is kept for the traces that refer to it, and not listed."""
        settings = self._settings
        pool, tasks, renaming = apply_condition_to_tasks(
            condition, self._pool, self._tasks, settings.seed, self._variation, self._list_others(condition)
        )
        live = await pools.enter_async_context(live_pool(pool))
        if pool != self._pool:
            self._store.traces.keep_pool(pool, live.hash)

        binding = BindingSettings(settings.binding, self._store.bindings.read)

        def cell(name: str) -> EvaluationCell:
            trials = plan_trials(
                name,
                tasks,
                source=settings.source,
                condition=condition,
                samples=settings.samples,
                temperature=settings.temperature,
                seed=settings.seed,
            )
            return EvaluationCell(name, condition, live, trials, renaming, binding=binding)

        return [cell(name) for name in self._names]

    async def _add_past(self, cells: list[EvaluationCell]) -> list[EvaluationCell]:
        """Give the cells that need it the traces and lessons of their pools as they were when the job began."""
        pools = dict.fromkeys(cell.pool.pool.name for cell in cells if cell.reads_the_past)
        if not pools:
            return cells
        queries = {task.query for task in self._tasks}
        past = await asyncio.to_thread(freeze_past, self._job_folder.frozen_past, self._store, list(pools), queries)
        return [replace(cell, past=past.get(cell.pool.pool.name)) for cell in cells]

    async def _measure(self, cell: EvaluationCell) -> bool:
        """Run the missing episodes of a cell, then write its summary. Returns whether every one was run."""
        missing = [trial for trial in cell.trials if trial.slot not in self._progress.rows]
        if missing:
            log.info("%s: %d of %d episodes to run", cell.title, len(missing), len(cell.trials))
        pace = Pace(len(missing))
        try:
            complete = await run_trials(
                missing,
                ChargedTrials(self._place.open_cell(cell, self._limits, self._store), self._spending),
                lambda row: self._keep(row, cell, pace),
                concurrency=self._settings.concurrency * self._place.nodes,
                proceed=lambda running: self._may_go_on() and self._can_afford(cell, running + 1),
            )
        finally:
            self._keep_rest()
        complete = complete and not self._spending.refused and not self._spending.lost
        self._write_metrics()
        if complete:
            self._check_graded(cell)
            self._summarize(cell)
        elif not self._job_folder.stop_requested:
            if self._spending.lost:
                raise TrainingFailed(RATE_LIMITED, self._patience.explain_loss())
            raise SpendCapReached(self._describe_spending(cell))
        return complete

    def _may_go_on(self) -> bool:
        """Whether nobody has asked the job to stop, and no peer has refused calls for too long."""
        return not self._job_folder.stop_requested and not self._spending.lost

    def _can_afford(self, cell: EvaluationCell, episodes: int) -> bool:
        """Whether the spend cap has room for so many episodes more, at this orchestrator's mean cost so far.

        The first episodes start without knowing it.
        """
        cap, done = self._settings.max_cost, self._progress
        if cap is None:
            return True
        if self._spending.refused:
            return False
        return done.spent < cap and done.spent + episodes * done.mean_cost(cell.orchestrator) <= cap

    def _describe_spending(self, cell: EvaluationCell) -> str:
        done = self._progress
        return (
            f"its cap of ${self._settings.max_cost:g} allows no more: ${done.spent:.4f} spent on {done.done:,} of "
            f"{len(done.planned):,} episodes, and an episode of {cell.orchestrator} costs about "
            f"${done.mean_cost(cell.orchestrator):.4f}. What is finished counts. To go on, raise "
            f"{self._stage}.max_cost: jobs resume JOB --max-cost DOLLARS"
        )

    def _keep(self, row: ResultRow, cell: EvaluationCell, pace: Pace) -> None:
        append_result(self._job_folder.results, row)
        self._progress.add(row)
        pace.done += 1
        if time.monotonic() - self._logged_at >= LOG_S:
            self._logged_at = time.monotonic()
            done, total = self._progress.done, len(self._progress.planned)
            log.info("%s: %s; %d of %d episodes of the job", cell.title, pace.text(), done, total)
        if time.monotonic() - self._wrote_metrics_at >= METRICS_S:
            self._write_metrics()

    def _keep_rest(self) -> None:
        """Write down what calls have cost that is in no row: of episodes that the cap cut off, and of judges."""
        rest = self._spending.used.cost - self._progress.spent
        if rest > ROUNDING:
            self._job_folder.append_cost(self._stage, rest)
            self._progress.spent += rest

    def _write_metrics(self) -> None:
        """Write the progress to metrics.jsonl."""
        self._wrote_metrics_at = time.monotonic()
        done, total = self._progress.done, len(self._progress.planned)
        figures = {"done": done, "total": total, "cost": self._progress.spent}
        named = {f"{self._stage}/{key}": value for key, value in figures.items()}
        self._job_folder.append_metrics(self._stage, done if self._step is None else self._step, named)

    def _check_graded(self, cell: EvaluationCell) -> None:
        """Raise TrainingFailed where a verifier failed: a mean without those answers would be another one."""
        missing = sum(trial.slot not in self._progress.rows for trial in cell.trials)
        if missing:
            raise TrainingFailed(
                "not_graded",
                f"{missing} of the {len(cell.trials)} answers of {cell.title} have no verdict; the newest runs of "
                f"{cell.orchestrator} say why. The others count. Mend that, then: python -m trainer jobs resume JOB",
            )

    def _summarize(self, cell: EvaluationCell) -> None:
        lines = read_lines(self._job_folder.evaluations)
        if (cell.orchestrator, cell.condition) in [(line.get("orchestrator"), line.get("condition")) for line in lines]:
            return
        rows = [self._progress.rows[trial.slot] for trial in cell.trials]
        summary = summarize(cell.orchestrator, rows, cell.condition)
        self._job_folder.append_evaluation(summary.model_dump(mode="json"))
        log.info("%s: %.3f [%.3f, %.3f]", cell.title, summary.mean, *summary.interval)


async def _select_runnable(cells: Sequence[EvaluationCell]) -> list[EvaluationCell]:
    """Select the cells whose orchestrator can be made.

    Where a condition takes away what an orchestrator needs, that cell is left out and the log says so. Raises
    UnknownOrchestrator for one that cannot be made in any condition.
    """
    kept: list[EvaluationCell] = []
    refused: dict[str, UnknownOrchestrator] = {}
    for cell in cells:
        try:
            await check_orchestrators(cell.trials, cell.maker(), cell.pool)
        except UnknownOrchestrator as error:
            refused.setdefault(cell.orchestrator, error)
            log.warning("%s is not measured: %s", cell.title, error)
        else:
            kept.append(cell)
    runnable = {cell.orchestrator for cell in kept}
    for name, reason in refused.items():
        if name not in runnable:
            raise reason
    return kept


def load_evaluation_tasks(settings: EvaluateSettings) -> list[Task]:
    """Load the tasks to evaluate on. Raises TrainingFailed when there is none, UnknownTask or UnusableTasks."""
    source = open_source(settings.source)
    tasks = source.tasks(settings.split, settings.count, seed=settings.seed, levels=settings.levels)
    if not tasks:
        raise TrainingFailed("tasks", f"{settings.source} has no task in the {settings.split} split at these levels")
    return tasks


def expand_agents(names: Sequence[str], pool: Pool) -> list[str]:
    """Replace `direct:each` by one `direct:AGENT` for every agent of the pool; duplicates are dropped."""
    agents = [f"direct:{spec.name}" for spec in pool.agents()]
    return list(dict.fromkeys(item for name in names for item in (agents if name == EVERY_AGENT else [name])))
