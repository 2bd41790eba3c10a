"""Tasks that share a drawn pool: consecutive ones of the same pool, as many as the recipe says.

Rows of one batch that begin with the same listing share its keys and values (learner/shared_openings.py), and only
tasks of one pool have the same listing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pool_registry.pool import Pool
from trainer.tasks.pool_settings import PoolSettings
from trainer.tasks.task import Task
from trainer.tasks.task_pools import VaryTask, keep_task
from trainer.tasks.vary_pool import vary_pool


def group_tasks(tasks: Sequence[Task], size: int) -> list[tuple[Task, ...]]:
    """Part the tasks into groups of at most `size`, in their order. Tasks of a group have the same pool at first."""
    groups: list[tuple[Task, ...]] = []
    for _, run in groupby(tasks, key=lambda task: task.pool):
        members = tuple(run)
        groups += [members[start : start + size] for start in range(0, len(members), size)]
    return groups


MAX_TASK_POOLS = 64  # of those that tasks bring, as a source of distractors


def list_brought_pools(tasks: Sequence[Task]) -> list[Pool]:
    """The pools of these tasks whose workers may be distractors in others."""
    brought = {task.pool.name: task.pool for task in tasks if task.pool is not None}
    return list(brought.values())[:MAX_TASK_POOLS]


def make_vary(
    pool: Pool, settings: PoolSettings | None, seed: int, others: Sequence[Pool] = (), tasks: Sequence[Task] = ()
) -> VaryTask:
    """The function that gives each task its pool; without settings the one that leaves tasks as they are.

    `tasks` are all those of the stage, in order: `settings.tasks_per_pool` neighbours share a pool. A task that is not
    among them has one of its own. The function raises InvalidPool.
    """
    if settings is None:
        return keep_task
    groups = {(task.ref, task.query): group for group in group_tasks(tasks, settings.tasks_per_pool) for task in group}
    return lambda task: vary_pool(task, pool, settings, seed, others, groups.get((task.ref, task.query), ()))
