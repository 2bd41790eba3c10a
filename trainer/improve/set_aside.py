"""Tasks that no improvement takes, because candidates that learnt from them were refused, until a person has looked."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from trainer.errors import UnusableTasks
from trainer.improve.choose_tasks import choose_tasks, digest_line
from trainer.improve.record import MOST_HELD_OUT, hold_pool, list_improvements
from trainer.tasks.practice.stored import open_task_book
from trainer.tasks.task import normalize_query

if TYPE_CHECKING:
    from pool_registry.storage.data_folder import Home
    from trainer.tasks.sources.jsonl import TaskLine

REASON = "A candidate that learnt from it answered worse, or two that did were no better: see whether it is right."


def list_set_aside(home: Home, pool: str) -> tuple[TaskLine, ...]:
    """The tasks of a pool that are set aside. Raises UnusableTasks and DamagedReport."""
    return choose_tasks(open_task_book(pool).read(), list_improvements(home, pool), MOST_HELD_OUT, 0).set_aside


def put_back(home: Home, pool: str, queries: Collection[str]) -> int:
    """Let the next improvement take tasks that were set aside: no earlier one counts against them. Returns how many.
    Raises UnusableTasks where one of them is not set aside, and AlreadyImproving."""
    aside = {normalize_query(line.query): digest_line(line) for line in list_set_aside(home, pool)}
    keys = {normalize_query(query): query for query in queries}
    if unknown := [query for key, query in keys.items() if key not in aside]:
        raise UnusableTasks(f"{unknown[0][:200]!r} is not set aside; look again at what is")
    digests = {aside[key] for key in keys}
    with hold_pool(home, pool):
        for improvement in list_improvements(home, pool):
            if not digests.isdisjoint(improvement.plan.taken):
                improvement.update(taken=tuple(name for name in improvement.plan.taken if name not in digests))
    return len(digests)
