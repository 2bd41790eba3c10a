"""A task: a query with a verifier and perhaps a reference plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

from orchestrator.engine.events import TaskRef
from orchestrator.plan import Turn
from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from trainer.tasks.verifier import AnyVerifier, JudgeCheck

# Who wrote a task's words: `tasks make`, or a person; "" where they are generated, or come from elsewhere.
Origin: TypeAlias = Literal["made", "own", ""]
CUSTOM = "custom"  # the split of tasks that were recognised from a query and have no index
HELD_BACK = ("validation", "test")  # splits whose tasks measure what was trained, so that nothing is learnt of them


@dataclass(frozen=True, slots=True)
class Task:
    """`oracle_turn` is one turn that solves the query with the workers of a pool; None where nobody gave one. `pool`
    is the pool that the task is run on, where that is not the one of the recipe: every generated task may have one of
    its own. `checked`: what says that the answer is right where nothing computed it, such as "agreement of 3".
    `since`: when a person made it a task of the pool's own, in UTC; None for every other task, and for older ones.
    `offered`: the workers of its pool that it is run with; none for all of them."""

    ref: TaskRef
    query: str
    verifier: AnyVerifier
    oracle_turn: Turn | None = None
    pool: Pool | None = None
    origin: Origin = ""
    checked: str = ""
    since: datetime | None = None
    offered: tuple[str, ...] = ()

    @property
    def expected(self) -> JsonValue:
        return self.verifier.expected

    @property
    def judge(self) -> str:
        """The worker that grades the answer; "" where no worker does."""
        return self.verifier.worker if isinstance(self.verifier, JudgeCheck) else ""

    @property
    def workers(self) -> tuple[str, ...]:
        """The workers that the reference plan calls, each once."""
        steps = self.oracle_turn.steps if self.oracle_turn else ()
        return tuple(dict.fromkeys(step.worker for step in steps))

    def list_missing_workers(self, pool: Pool) -> list[str]:
        """The workers of the reference plan that the task's own pool lacks, or `pool` where it brings none."""
        there = {spec.name for spec in (self.pool or pool).enabled}
        return [name for name in self.workers if name not in there]


def offer_workers(task: Task, pool: Pool) -> Task:
    """The task with those workers of `pool` alone that it is run with; as it is where these are all."""
    if not task.offered:
        return task
    workers = tuple(spec for spec in pool.workers if spec.name in task.offered)
    return replace(task, pool=pool.model_copy(update={"workers": workers}))


def normalize_query(query: str) -> str:
    """A query without the differences that do not matter: white space and the mark at its end."""
    return " ".join(query.split()).rstrip(".?! ")
