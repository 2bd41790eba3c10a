"""The conditions of a pool, and how tasks are put into them. The one list of their names is CONDITIONS.

Most change a pool whatever its tasks are (pool_conditions.py). Some must know what a task needs, and give each task a
pool of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pool_registry.pool import Pool
from trainer.errors import UnknownTask
from trainer.tasks import pool_conditions
from trainer.tasks.pool_conditions import Renaming, apply_condition, rename_in_turn
from trainer.tasks.pool_settings import PoolSettings
from trainer.tasks.shared_pools import make_vary
from trainer.tasks.task import Task
from trainer.tasks.vary_pool import VARIED, add_late_worker, shuffle_subset

TaskCondition = Callable[[Task, Pool, int], Task]
TASK_CONDITIONS: dict[str, TaskCondition] = {"shuffled": shuffle_subset, "added": add_late_worker}
CONDITIONS = (*pool_conditions.CONDITIONS, *TASK_CONDITIONS, VARIED)
WITHOUT = "without:WORKER[,WORKER]"
CONDITIONS_TEXT = f"{', '.join(CONDITIONS)}, or {WITHOUT}"


def apply_condition_to_tasks(
    condition: str,
    pool: Pool,
    tasks: Sequence[Task],
    seed: int = 0,
    settings: PoolSettings | None = None,
    others: Sequence[Pool] = (),
) -> tuple[Pool, list[Task], Renaming]:
    """A pool in this condition, under a name of its own; the tasks with their reference plans to match; and the new
    names of the pool's workers.

    A task that brings its own pool is given that one in this condition. `varied` draws the pool of each task as
    `settings` say (default: a recipe's defaults). Distractors may come from `others`. Raises UnknownTask when there is
    no such condition.
    """
    if condition == VARIED:
        vary = make_vary(pool, settings or PoolSettings(), seed, others, tasks)
        return pool, [vary(task) for task in tasks], {}
    if condition in TASK_CONDITIONS:
        return pool, [TASK_CONDITIONS[condition](task, pool, seed) for task in tasks], {}
    if condition.partition(":")[0] not in (*pool_conditions.CONDITIONS, "without"):
        raise UnknownTask(f"there is no condition {condition!r}; use one of: {CONDITIONS_TEXT}")
    changed, renaming = apply_condition(condition, pool, seed, others)
    return changed, [_change_task(condition, task, renaming, seed, others) for task in tasks], renaming


def rename_in_task(renaming: Renaming, task: Task) -> Task:
    """The task with a reference plan that calls workers by their new names."""
    plan = task.oracle_turn
    return task if plan is None else replace(task, oracle_turn=rename_in_turn(plan, renaming))


def _change_task(condition: str, task: Task, renaming: Renaming, seed: int, others: Sequence[Pool]) -> Task:
    if task.pool is None:
        return rename_in_task(renaming, task)
    own, own_renaming = apply_condition(condition, task.pool, seed, others)
    return replace(rename_in_task(own_renaming, task), pool=own)
