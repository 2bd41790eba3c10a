"""Credit: what each step, each worker and each access-list entry of a graded run is worth to its score.

    credit(x) = score(run) - score(run without x)

The score is 1 where the verifier accepts the answer, else 0. "Without x" runs the same turns once more: a step that is
left out fails at once, is taken out of the access lists that only show it, and what quotes it fails with it; of a
worker all steps are left out; an access-list entry is taken out of its list. Only steps that may see what changed are
called again, every other observation is kept. So 1 says that the answer is lost without x, 0 that it is not needed, and
-1 that a wrong answer becomes right without it.

The orchestrator's turns are held fixed. An answer that is written in words after outputs were read does not say what it
was made of, so that its credit cannot be measured. A step whose call may have effects is not called again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

import networkx as nx

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Step, Turn
from orchestrator.quotes import references
from orchestrator.what_if import EditedTurns
from pool_registry.actions import NO_USAGE, Observation, Status
from pool_registry.calls.effect_free_pool import list_refused_workers
from pool_registry.calls.live_pool import LivePool
from trainer.evaluation.grading import grade_answer
from trainer.results.statistics import mean
from trainer.tasks.task import Task

LEFT_OUT = Observation.failure(Status.EXEC_ERR, "left_out", "this step was left out to measure what it is worth")
Kind = Literal["step", "worker", "access"]


@dataclass(frozen=True, slots=True)
class Removal:
    """What a run goes without: steps, or what `reader` sees of `source`."""

    kind: Kind
    worker: str
    steps: frozenset[int] = frozenset()
    reader: int = 0
    source: int = 0


@dataclass(frozen=True, slots=True)
class Credit:
    """The worth of what was removed; None where it cannot be measured, with the reason. `rerun` are the steps that were
    called again, at `cost` US dollars."""

    removal: Removal
    value: float | None
    rerun: tuple[int, ...] = ()
    reason: str = ""
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class CreditReport:
    """The credits of a run with its score, and what measuring them cost. `reason`: why nothing of it can be
    measured."""

    score: float
    credits: tuple[Credit, ...] = ()
    reason: str = ""
    cost: float = 0.0

    def of(self, kind: Kind) -> list[Credit]:
        """The credits of steps, of workers or of access-list entries."""
        return [credit for credit in self.credits if credit.removal.kind == kind]

    @property
    def needed_share(self) -> float | None:
        """The share of steps and access-list entries without which the answer is lost; None where none is measured."""
        values = [credit.value for kind in ("step", "access") for credit in self.of(kind)]
        measured = [value for value in values if value is not None]
        return sum(value > 0 for value in measured) / len(measured) if measured else None


async def measure_credit(
    episode: Episode, task: Task, pool: LivePool, allowed: Collection[str] = (), repeats: int = 1
) -> CreditReport:
    """Measure a finished run on an open pool, best one that caches calls: many of the calls are equal. `repeats` is how
    often each rerun is made; its score is the mean, for workers that do not always answer the same."""
    pool = pool.limit(episode.run_limits)
    grade = await grade_answer(task, episode.answer, pool)
    score = float(grade.correct)
    if reason := explain_unmeasurable(episode):
        return CreditReport(score, reason=reason)
    refused = _list_refused_with_fallbacks(pool, allowed)
    scores: dict[tuple[frozenset[int], int, int], Credit] = {}
    credits = []
    for removal in list_removals(episode):
        key = (removal.steps, removal.reader, removal.source)
        if key not in scores:  # a worker with one step is worth what its step is
            scores[key] = await _measure(removal, episode, task, pool, refused, score, repeats)
        credits.append(replace(scores[key], removal=removal))
    return CreditReport(score, tuple(credits), cost=sum(credit.cost for credit in scores.values()))


def explain_unmeasurable(episode: Episode) -> str:
    """Why no credit of a run can be measured; "" where it can."""
    if episode.ended is None:
        return "the run has not ended"
    if not episode.steps:
        return "the run has no steps"
    last = next((done.turn for done in reversed(episode.rounds) if done.turn is not None), None)
    if last is None or not last.has_answer:
        return "the run has no answer"
    if not references(last.answer):
        return "its answer is written in words and quotes no step, so that it does not say what it was made of"
    return ""


def list_removals(episode: Episode) -> list[Removal]:
    """List what a run can go without: its steps, its workers, the entries of its access lists."""
    steps = [run.step for run in episode.steps.values()]
    workers = dict.fromkeys(step.worker for step in steps)
    return [
        *(Removal("step", step.worker, frozenset({step.id})) for step in steps),
        *(Removal("worker", name, frozenset(step.id for step in steps if step.worker == name)) for name in workers),
        *(Removal("access", step.worker, reader=step.id, source=source) for step in steps for source in step.access),
    ]


async def _measure(
    removal: Removal,
    episode: Episode,
    task: Task,
    pool: LivePool,
    refused: Collection[str],
    score: float,
    repeats: int,
) -> Credit:
    rerun = find_rerun(episode, removal)
    effects = {episode.steps[k].step.worker for k in rerun} & set(refused)
    if effects:
        listed = ", ".join(sorted(effects))
        return Credit(removal, None, reason=f"{listed} would be called again, which may have effects")
    trials = [await _try_without(removal, episode, task, pool, rerun) for _ in range(repeats if rerun else 1)]
    without = mean([trial_score for trial_score, _ in trials])
    return Credit(removal, score - without, tuple(sorted(rerun)), cost=sum(cost for _, cost in trials))


def find_rerun(episode: Episode, removal: Removal) -> set[int]:
    """The steps to call again: those that may see what is removed, directly or not."""
    graph = nx.DiGraph()
    graph.add_nodes_from(episode.steps)
    graph.add_edges_from((source, run.step.id) for run in episode.steps.values() for source in run.step.access)
    roots = [removal.reader] if removal.reader else sorted(removal.steps)
    called: set[int] = {removal.reader} if removal.reader else set()
    for root in roots:
        called.update(nx.descendants(graph, root))
    unended = {k for k, run in episode.steps.items() if run.observation is None}
    return (called | unended) - removal.steps


async def _try_without(
    removal: Removal, episode: Episode, task: Task, pool: LivePool, rerun: set[int]
) -> tuple[float, float]:
    """The score of the run without what is removed, and what its calls cost."""
    kept = {
        k: replace(run.observation, latency_s=0.0, usage=NO_USAGE)
        for k, run in episode.steps.items()
        if run.observation is not None and k not in rerun and k not in removal.steps
    }
    kept |= dict.fromkeys(removal.steps, LEFT_OUT)
    turns = [_edit_turn(done.turn, removal, rerun) for done in episode.rounds if done.turn is not None]
    limits = pool.pool.limits.model_copy(update={"max_rounds": min(64, len(turns) + 1)})
    spec = EpisodeSpec(episode.query, kept=kept)
    varied = await run_episode(spec, EditedTurns(turns), pool, limits=limits)
    return float((await grade_answer(task, varied.answer, pool)).correct), varied.usage.cost


def _edit_turn(turn: Turn, removal: Removal, rerun: Collection[int]) -> Turn:
    steps = tuple(_edit_step(step, removal) if step.id in rerun else step for step in turn.steps)
    return replace(turn, steps=steps, usage=NO_USAGE)


def _edit_step(step: Step, removal: Removal) -> Step:
    """The step without what is removed from its access list. A step that quotes a step that is left out keeps it there,
    and fails because of it; one that quotes what it may not see is malformed."""
    if removal.reader:
        gone = {removal.source} if step.id == removal.reader else set()
    else:
        gone = set(removal.steps) - step.references
    return replace(step, access=tuple(k for k in step.access if k not in gone))


def _list_refused_with_fallbacks(pool: LivePool, allowed: Collection[str]) -> set[str]:
    """The workers whose call may have effects, or hand over to one whose call may."""
    refused = set(list_refused_workers(pool, allowed))
    while more := {name for name, live in pool.workers.items() if live.spec.fallback in refused} - refused:
        refused |= more
    return refused
