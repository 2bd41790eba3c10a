"""What the card *Improve* shows: the new tasks of a pool, and what its last improvement came to."""

from __future__ import annotations

from typing import Literal

from pool_registry.storage.data_folder import Home
from studio.frame.document import PageDocument
from trainer.improve.choose_tasks import LEAST_HELD_OUT, LEAST_LEARNT, choose_tasks
from trainer.improve.record import MOST_HELD_OUT, list_improvements
from trainer.tasks.practice.stored import open_task_book


class ImproveDocument(PageDocument):
    """`learnt` and `held_out` count new tasks, of which `least_learnt` and `least_held_out` are needed; `set_aside` are
    left out. `state` is that of the last improvement, "" before the first; `reasons` says why its `candidate` may be
    promoted or not. Time in hours, cost in US dollars."""

    pool: str
    serving: str
    learnt: int
    held_out: int
    least_learnt: int
    least_held_out: int
    set_aside: int
    has_enough: bool
    every: str
    state: Literal["", "running", "interrupted", "promotable", "refused"]
    candidate: str = ""
    reasons: list[str] = []
    jobs: list[str] = []
    hours: float = 0.0
    cost: float = 0.0


def build_improve_document(home: Home, pool: str, serving: str, every: str) -> ImproveDocument:
    """The document of a pool. Raises UnusableTasks and DamagedReport where a plan or a report of an improvement
    is damaged."""
    earlier = list_improvements(home, pool)
    tasks = choose_tasks(open_task_book(pool).read(), earlier, MOST_HELD_OUT, 0)
    document = ImproveDocument(
        pool=pool,
        serving=serving,
        learnt=len(tasks.learnt),
        held_out=len(tasks.held_out),
        least_learnt=LEAST_LEARNT,
        least_held_out=LEAST_HELD_OUT,
        set_aside=len(tasks.set_aside),
        has_enough=tasks.has_enough,
        every=every,
        state="",
    )
    if not earlier:
        return document
    last = earlier[-1]
    report, jobs = last.report, list(last.plan.jobs.values())
    if report is None:
        return document.model_copy(update={"state": "running" if last.is_running else "interrupted", "jobs": jobs})
    changes = {
        "state": "promotable" if report.promotable else "refused",
        "candidate": report.candidate,
        "reasons": list(report.reasons),
        "jobs": jobs,
        "hours": report.hours,
        "cost": report.cost,
    }
    return document.model_copy(update=changes)
