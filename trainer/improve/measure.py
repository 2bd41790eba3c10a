"""The candidate beside the serving orchestrator: the same held-out tasks, samples, limits and seed for both.

Right answers are compared task by task, without those that reached the deadline. What a query costs and how long it
takes are guarded figures, so that nobody buys right answers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import fmean, median
from typing import Literal, get_args

from orchestrator.orchestrator_name import drop_kept_choice
from orchestrator.traces.store import Store
from trainer.improve.gate import COST, LEAST_COST, UNANSWERED, guard
from trainer.improve.record import Improvement
from trainer.improve.site import Site
from trainer.recipe import Recipe
from trainer.recipe_sections import EvaluateSettings
from trainer.results.by_task import Samples, group_by_task
from trainer.results.improvement import GuardedFigure, SuiteChange
from trainer.results.paired import compute_difference
from trainer.results.rows import ResultRow, read_results
from trainer.results.statistics import mean
from trainer.tasks.practice.stored import SOURCE, find_practice_file
from trainer.tasks.practice.traffic_record import digest_query
from trainer.tasks.registry import PROVIDERS

DEADLINE = "deadline"  # the outcome of an episode
AT_ONCE = 4  # episodes: on two cores more wait for the model until their deadline
MOST_NAMED = 20  # queries that got worse
GENERAL = "worlds"  # tasks with pools of their own, where the lessons are installed
Suite = Literal["own", "old", "general"]
SUITES: tuple[Suite, ...] = get_args(Suite)


def write_recipe(improvement: Improvement) -> Recipe:
    """The job that measures both on the pool's own held-out tasks."""
    plan = improvement.plan
    names = (plan.measured, plan.candidate)
    return _evaluate(improvement, names, plan.pool, improvement.held_out_source, plan.held_out)


def write_general_recipe(improvement: Improvement, store: Store) -> Recipe | None:
    """The job that measures both on tasks of other pools: generated ones, else those of another pool of the data
    folder. None where there are neither."""
    plan = improvement.plan
    if not plan.general_tasks:
        return None
    names = drop_kept_choice(plan.measured), drop_kept_choice(plan.candidate)  # nothing is kept for other pools
    if GENERAL in PROVIDERS:
        return _evaluate(improvement, names, plan.pool, GENERAL, plan.general_tasks)
    others = (name for name in store.pools.names() if name != plan.pool and find_practice_file(name).is_file())
    pool = next(others, None)
    return None if pool is None else _evaluate(improvement, names, pool, f"{SOURCE}{pool}", plan.general_tasks)


def _evaluate(improvement: Improvement, names: tuple[str, str], pool: str, source: str, count: int) -> Recipe:
    plan = improvement.plan
    settings = EvaluateSettings(
        orchestrators=names,
        reference=names[0],
        source=source,
        count=count,
        samples=plan.samples,
        seed=plan.seed,
        concurrency=AT_ONCE,
        max_cost=plan.max_cost,
    )
    return Recipe(name=f"{plan.pool[:24]}-measured", pool=pool, evaluate=settings)


class Measurements:
    """The rows of both orchestrators."""

    def __init__(self, improvement: Improvement, site: Site, jobs: Sequence[str]) -> None:
        self._plan = improvement.plan
        self._rows = [row for job in jobs for row in read_results(site.jobs.folder(job).results)]

    def compare(self, general: bool) -> tuple[SuiteChange, ...]:
        """The changes on new tasks, on old ones, and on general ones where these were measured."""
        changes = (self._compare_suite(suite) for suite in SUITES if general or suite != "general")
        return tuple(change for change in changes if change.tasks)

    def _compare_suite(self, suite: Suite) -> SuiteChange:
        before, after = (group_by_task(self._list(name, suite)) for name in (self._plan.measured, self._plan.candidate))
        whole = {key for key in before.keys() & after.keys() if not _is_cut_off(before[key]) | _is_cut_off(after[key])}
        before, after = ({key: tasks[key] for key in tasks if key in whole} for tasks in (before, after))
        paired = compute_difference(after, before)
        common = after.keys()
        return SuiteChange(
            suite=suite,
            tasks=paired.tasks,
            before=mean([before[key].score for key in common]),
            after=mean([after[key].score for key in common]),
            better_by=paired.difference.mean,
            low=paired.difference.low,
            high=paired.difference.high,
        )

    def guard(self) -> tuple[GuardedFigure, ...]:
        """The figures of a query that must not get worse, on the pool's own tasks."""
        before, after = (self._list(name, "own", "old") for name in (self._plan.measured, self._plan.candidate))
        unanswered = (_share_unanswered(before), _share_unanswered(after))
        late = (_share_late(before), _share_late(after))
        cost = (fmean([row.cost for row in before] or [0.0]), fmean([row.cost for row in after] or [0.0]))
        seconds = (median([row.wall_s for row in before] or [0.0]), median([row.wall_s for row in after] or [0.0]))
        return (
            guard("The share of queries that no worker answers", "of 1", unanswered, unanswered[0] + UNANSWERED),
            guard("The share of queries that reach the deadline", "of 1", late, late[0] + UNANSWERED),
            guard("The cost of a query", "US dollars", cost, max(COST * cost[0], cost[0] + LEAST_COST)),
            guard("The time of a query", "s", seconds, seconds[0] + self._plan.seconds_on_top),
        )

    def list_worse(self) -> tuple[str, ...]:
        """Queries that the serving orchestrator gets right more often than the candidate."""
        after = group_by_task(self._list(self._plan.candidate, *SUITES))
        before = group_by_task(self._list(self._plan.measured, *SUITES))
        worse = [key.query for key in before if key in after and after[key].score < before[key].score]
        return tuple(worse[:MOST_NAMED])

    def _list(self, name: str, *suites: Suite) -> list[ResultRow]:
        """The rows of an orchestrator, also as it is called on other pools, on tasks of these suites."""
        names = (name, drop_kept_choice(name))
        return [row for row in self._rows if row.orchestrator in names and self._find_suite(row) in suites]

    def _find_suite(self, row: ResultRow) -> Suite:
        if not row.source.startswith("file:"):
            return "general"
        return "own" if digest_query(row.query) in self._plan.own else "old"


def _is_cut_off(samples: Samples) -> bool:
    """Whether a run of the task reached the deadline: on a busy machine that says nothing of its answer."""
    return any(row.outcome == DEADLINE for row in samples.rows)


def _share_late(rows: Collection[ResultRow]) -> float:
    return fmean([row.outcome == DEADLINE for row in rows] or [0.0])


def _share_unanswered(rows: Collection[ResultRow]) -> float:
    """The share without an answer, or with one that no worker was called for: a refusal. Without those that reached the
    deadline, which count by themselves."""
    return fmean([row.outcome != "answered" or not row.steps for row in rows if row.outcome != DEADLINE] or [0.0])
