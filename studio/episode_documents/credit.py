"""The credit of a recorded run, as the Run page and `podium credit` show it."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import Field

from orchestrator.traces.store import Store
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.effect_free_pool import refuse_effects
from pool_registry.calls.live_pool import live_pool
from studio.episodes import load_recorded
from studio.frame.document import PageDocument
from trainer.evaluation.credit import Credit, CreditReport, measure_credit
from trainer.evaluation.replayable_tasks import find_task_of_run

NOT_GRADED = (
    "nothing grades this run: its query is no task of a suite or of the pool's practice tasks, and its answer was not "
    "judged right"
)


class CreditLine(PageDocument):
    """The credit of a step, a worker or an access-list entry; `value` is null where it cannot be measured."""

    step: int = Field(description="The step; the reader of an access-list entry; 0 for a worker.")
    source: int = Field(description="The step that the entry lets it see; 0 elsewhere.")
    worker: str
    value: float | None
    rerun: list[int]
    reason: str


class CreditDocument(PageDocument):
    """What each part of a run is worth to its score. `reason` says why nothing of it could be measured."""

    episode: str
    score: float
    reason: str
    steps: list[CreditLine]
    workers: list[CreditLine]
    access: list[CreditLine]
    needed_share: float | None = Field(description="What the reward `credit` pays a right answer.")


async def measure_recorded_credit(
    store: Store, episode_id: str, allowed: Collection[str] = (), repeats: int = 1
) -> CreditDocument:
    """Measure a recorded run on the version of the pool that it ran on.

    Raises EpisodeNotFound, DamagedTrace, PoolNotFound, or InvalidEdits while it still runs.
    """
    episode, pool = load_recorded(store, episode_id)
    task = find_task_of_run(store.traces, store.traces.row(episode_id))
    if task is None:
        return _build_document(episode_id, CreditReport(0.0, reason=NOT_GRADED))
    async with live_pool(pool) as live:
        cached = CachingPool(refuse_effects(live, allowed))
        report = await measure_credit(episode, task, cached, allowed, repeats)
    return _build_document(episode_id, report)


def _build_document(episode_id: str, report: CreditReport) -> CreditDocument:
    return CreditDocument(
        episode=episode_id,
        score=report.score,
        reason=report.reason,
        steps=list(map(_describe, report.of("step"))),
        workers=list(map(_describe, report.of("worker"))),
        access=list(map(_describe, report.of("access"))),
        needed_share=report.needed_share,
    )


def _describe(credit: Credit) -> CreditLine:
    removal = credit.removal
    step = removal.reader or (next(iter(removal.steps)) if removal.kind == "step" else 0)
    return CreditLine(
        step=step,
        source=removal.source,
        worker=removal.worker,
        value=credit.value,
        rerun=list(credit.rerun),
        reason=credit.reason,
    )
