"""Runs recorded episodes: recognizes the task behind a query, makes the orchestrator with the pool's failure memory,
runs the episode, grades its answer and learns from its failure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from orchestrator.approval.plan_gate import PlanGate
from orchestrator.binding.bind_workers import BindingSettings
from orchestrator.engine.budget import Budget
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import (
    EpisodeSpec,
    Orchestrator,
    Sink,
    check_query,
    new_episode_id,
    resume_episode,
    run_episode,
)
from orchestrator.engine.events import FollowUp, ServedAs
from orchestrator.engine.release import Approver, Decision, PlanRelease, leave_waiting
from orchestrator.errors import InvalidEdits
from orchestrator.failure_memory.decay import note_use
from orchestrator.failure_memory.lessons import find_memory
from orchestrator.failure_memory.write_lesson import keep_lesson
from orchestrator.policies.finalizer import find_finalizer
from orchestrator.policies.model import with_memory
from orchestrator.policies.registry import make_orchestrator
from orchestrator.traces.store import Store
from orchestrator.what_if import Variation, run_variation
from pool_registry.calls.live_pool import LivePool, list_sources
from pool_registry.calls.run_limits import NO_RUN_LIMITS, RunLimits
from pool_registry.calls.spending import charge_calls_to
from pool_registry.deployment_mode import DeploymentMode
from pool_registry.errors import PoolNotFound
from pool_registry.forks.fork import Fork
from pool_registry.pool import NO_FINALIZER, Limits, Pool
from pool_registry.worker import Visible
from studio.forks import open_fork, run_on_copies
from trainer.evaluation.lesson_trial import retry_with_lesson
from trainer.evaluation.trials import grade_episode, make_inner_orchestrator
from trainer.tasks import recognize_task
from trainer.tasks.practice.stored import find_own_task
from trainer.tasks.task import Task

MINE = "mine"  # what an episode ran for (EpisodeStarted.source)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """An episode that is ready to run: its id, its budget, and the task that grades its answer, if there is one."""

    id: str
    budget: Budget
    _store: Store
    _pool: LivePool
    _task: Task | None
    _start: Callable[[], Awaitable[Episode]]

    @property
    def pool(self) -> Pool:
        """The pool that it runs on."""
        return self._pool.pool

    async def run(self) -> Episode:
        """Run the episode to its end and grade its answer, or until its plan waits for a person."""
        episode = await self._start()
        if self._task is not None and episode.ended is not None:
            with charge_calls_to(self.budget.spending):  # a judge is paid like any other call
                await grade_episode(episode, self._task, self._store.traces, find_judges(episode, self._pool))
        return episode

    async def learn(self, episode: Episode) -> None:
        """Count what the lessons that it was shown were good for, and add the lesson of a failed episode to the pool's
        failure memory, where that is on; where the pool wants it and a task says what is right, the question is tried
        once more with the lesson. What a run may show to few workers alone is not learnt from: a lesson may quote it,
        and is shown in other runs."""
        if episode.ended is None or episode.run_limits.seen_by:
            return
        await note_use(episode, self._pool.pool.name, self._store.engine)
        with charge_calls_to(self.budget.spending):
            lesson = await keep_lesson(episode, self._pool, self._store.lessons)
        if lesson is not None and self._task is not None and self._pool.pool.limits.memory_retry:
            await retry_with_lesson(lesson, episode, self._task, self._pool, self.budget, self._store)


def find_judges(episode: Episode, pool: LivePool) -> LivePool:
    """The workers that may judge an answer: those that may see all that it can be made of."""
    outputs = [Visible(k, episode.steps[k].step.worker, seen) for k, seen in episode.observations().items()]
    readers = episode.run_limits.find_readers(list_sources(outputs))
    return pool if readers is None else pool.narrow(readers)


def prepare_run(
    store: Store,
    pool: LivePool,
    orchestrator: str,
    query: str,
    *,
    user: str = "",
    source: str = MINE,
    limits: Limits | None = None,
    sink: Sink | None = None,
    graded: bool = True,
    mode: DeploymentMode | None = None,
    run_limits: RunLimits = NO_RUN_LIMITS,
    for_person: bool = True,
    served_as: ServedAs | None = None,
    follow_up: FollowUp | None = None,
    approve: Approver = leave_waiting,
    wrap: Callable[[Orchestrator], Orchestrator] = lambda orchestrator: orchestrator,
) -> RecordedRun:
    """Prepare a run of `query` on an open pool. `sink` replaces the store's traces, `limits` and `mode` the pool's.
    `run_limits` are what the caller limits this run to. `approve` is asked about plans that may not run by themselves;
    `wrap` puts something around the orchestrator. `for_person`: the answer is put into words, unless the orchestrator's
    name switches that off. `follow_up` says which run it goes on with; what was used to understand it is charged here.

    Raises InvalidQuery, InvalidRunLimits and UnknownOrchestrator; the run itself raises none.
    """
    check_query(query)
    pool.check_limits(run_limits)
    pool = pool.limit(run_limits)
    task = find_known_task(pool.pool.name, query) if graded else None
    policy = wrap(make_orchestrator_with_memory(store, pool, orchestrator, task))
    spec = EpisodeSpec(query, task=task.ref if task else None, id=new_episode_id(), user=user, source=source,
                       served_as=served_as, follow_up=follow_up)  # fmt: skip
    budget = Budget(limits or pool.pool.limits, pool.run_limits.max_cost)
    if follow_up is not None:
        budget.spending.charge(follow_up.usage)
    release = make_release(store, pool, mode or pool.pool.mode, task, approve)
    start = partial(
        run_episode, spec, policy, pool, limits=limits, sink=sink or store.traces, budget=budget, release=release,
        resolve=make_inner_orchestrator, finalizer=find_finalizer(orchestrator, pool, for_person=for_person),
    )  # fmt: skip
    return RecordedRun(spec.id, budget, store, pool, task, start)


def prepare_resumed(
    store: Store,
    pool: LivePool,
    episode: Episode,
    decision: Decision,
    sink: Sink | None = None,
    wrap: Callable[[Orchestrator], Orchestrator] = lambda orchestrator: orchestrator,
) -> RecordedRun:
    """Prepare the rest of an episode whose plan waited. Raises UnknownOrchestrator."""
    started = episode.started
    assert started is not None and started.mode is not None, "an episode that waits has a mode"
    pool = pool.limit(episode.run_limits)
    task = find_known_task(pool.pool.name, started.query)
    policy = wrap(make_orchestrator_with_memory(store, pool, started.orchestrator, task))
    release = make_release(store, pool, started.mode, task)
    budget = Budget(Limits.model_validate(dict(started.limits)), pool.run_limits.max_cost)
    start = partial(
        resume_episode, episode, decision, policy, pool, release, sink=sink or store.traces, budget=budget,
        resolve=make_inner_orchestrator,
        finalizer=find_finalizer(started.orchestrator, pool, for_person=started.source == MINE),
    )  # fmt: skip
    return RecordedRun(episode.id, budget, store, pool, task if started.task else None, start)


def make_release(
    store: Store, pool: LivePool, mode: DeploymentMode, task: Task | None = None, approve: Approver = leave_waiting
) -> PlanRelease:
    """What lets the plans of a run go, by its deployment mode."""
    name = mode.escalate_to if mode.name == "escalate" else ""
    make_stronger = (lambda: make_orchestrator_with_memory(store, pool, name, task)) if name else None
    gate = PlanGate(mode, lambda workers: store.traces.read_call_averages(workers, pool.pool.name))
    return PlanRelease(gate, approve, make_stronger)


def make_orchestrator_with_memory(store: Store, pool: LivePool, name: str, task: Task | None = None) -> Orchestrator:
    """Make the orchestrator called `name`, with the pool's failure memory and with the binding that is stored for it.

    Raises UnknownOrchestrator.
    """
    orchestrator = make_orchestrator(
        name, pool, task.oracle_turn if task else None, binding=BindingSettings(read_edits=store.bindings.read)
    )
    return with_memory(orchestrator, find_memory(pool.pool, store.lessons))


def find_known_task(pool: str, query: str) -> Task | None:
    """The task that a query is: one of the pool's own, or of a suite."""
    return find_own_task(pool, query) or recognize_task(query)


def prepare_variation(
    store: Store, pool: LivePool, variation: Variation, *, user: str = "", fork: Fork | None = None
) -> RecordedRun:
    """Prepare a run of a recorded episode with one round edited (orchestrator/what_if.py). Its final answer is written
    as that one's was. With a `fork` its steps change copies; they are deleted when it has run."""
    if fork is not None:
        pool = open_fork(fork, pool)
    origin = variation.origin
    name = origin.started.orchestrator if origin.started else ""
    is_worded = origin.source == MINE and pool.pool.limits.finalizer == NO_FINALIZER
    pool = variation.limit(pool)
    task = find_known_task(pool.pool.name, origin.query)
    episode_id, budget = new_episode_id(), Budget(pool.pool.limits, pool.run_limits.max_cost)
    start = partial(
        run_variation, variation, pool, episode_id=episode_id, task=task.ref if task else None, sink=store.traces,
        budget=budget, user=user, resolve=make_inner_orchestrator,
        finalizer=find_finalizer(name, pool, for_person=True) if is_worded or origin.final else None,
        on_copies=fork.places if fork else (),
    )  # fmt: skip
    if fork is not None:
        return RecordedRun(
            episode_id, budget, store, pool, task, partial(run_on_copies, start, fork, pool, store.traces)
        )
    return RecordedRun(episode_id, budget, store, pool, task, start)


def load_recorded(store: Store, episode_id: str) -> tuple[Episode, Pool]:
    """Load a recorded episode that has ended, and the version of the pool that it ran on.

    Raises EpisodeNotFound, DamagedTrace, PoolNotFound, or InvalidEdits while the episode still runs.
    """
    row = store.traces.row(episode_id)
    if row.state == "waiting":
        raise InvalidEdits([("", "this run's plan waits for approval; decide on that first")])
    if row.state == "running":
        raise InvalidEdits([("", "this run is still under way; edit it when it has ended")])
    stored = store.pools.by_hash(row.pool, row.pool_hash)
    if stored is None:
        raise PoolNotFound(
            f"the version of pool {row.pool!r} that this run used is not kept in this data folder, "
            "so its workers cannot be called again"
        )
    return store.traces.episode(episode_id), stored.pool
