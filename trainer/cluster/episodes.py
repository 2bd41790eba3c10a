"""Hands episodes out to the nodes of a cluster and keeps what comes back.

Ray places one actor on each node, or on each GPU where models are loaded, and carries work and outcomes. When a node is
lost Ray starts its actor on another one and runs again there what it had not finished; what an actor on a GPU had in
hand runs on the others. An episode is finished once its outcome is here: its events go to this data folder's traces,
and only then is its row written.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from orchestrator.binding.bind_workers import BindingSettings
from orchestrator.engine.episode import Episode, replay
from orchestrator.traces.store import Store
from pool_registry.actions import Usage
from pool_registry.calls.spending import current_spending
from pool_registry.pool import Limits, Pool
from trainer.cluster.connection import CODE, connect, import_ray, list_nodes
from trainer.cluster.placement import Placement, place_actors
from trainer.cluster.preflight import check_nodes
from trainer.cluster.work import CellSetup, TeacherSetup, WorkOutcome, WorkplaceSetup
from trainer.demonstrations.collect import Trajectory
from trainer.errors import TrainingFailed
from trainer.evaluation.stage import EvaluationCell
from trainer.evaluation.trials import Trial
from trainer.job_place import JobPlace
from trainer.results.rows import ResultRow

log = logging.getLogger(__name__)
SLICE = 0.01  # of a CPU: an actor whose node is lost must find room on another one
RETRIES = 3  # of an episode whose node is lost
START_S = 120.0
CLOSE_S = 10.0
LOOK_S = 5.0  # between two looks at which nodes are left
LOST_S = 60.0  # without any node
RESUME = "What is finished counts; resume goes on with the rest"


@dataclass(slots=True)
class _NodeActor:
    """The actor of a node, or of one of its GPUs. `running` counts its episodes, `spent` is in US dollars."""

    placement: Placement
    handle: Any
    running: int = 0
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class SharedSetup:
    """What nodes open, in the cluster's object store. `key` is its name on each node."""

    key: str
    reference: Any


@contextmanager
def open_cluster(
    place: JobPlace,
    pools: Sequence[Pool],
    orchestrators: Sequence[str],
    concurrency: int,
    max_cost: float | None = None,
    packages: Sequence[str] = (),
) -> Iterator[ClusterEpisodes]:
    """Connect to a cluster, let its nodes check what these pools, orchestrators and installed `packages` need, and
    start an actor on each, or on each GPU, for the body of the `with`. The others are those of `start_episodes`.

    Raises TrainingFailed, also with what nodes lack.
    """
    with connect(place) as nodes:
        check_nodes(nodes, pools, orchestrators, packages)
        placements = place_actors(nodes, pools, orchestrators)
        log.info("%s: %d places, each runs %d episodes at a time", place, len(placements), concurrency)
        with start_episodes(placements, concurrency, max_cost) as episodes:
            yield episodes


@contextmanager
def start_episodes(
    placements: Sequence[Placement], concurrency: int, max_cost: float | None = None
) -> Iterator[ClusterEpisodes]:
    """Start actors on the cluster that this process is connected to, for the body of the `with`.

    Each runs about `concurrency` episodes at a time and has an equal part of `max_cost`, in US dollars, and of what
    limits the workers. Raises TrainingFailed when they do not start.
    """
    ray, count = import_ray(), len(placements)
    share = None if max_cost is None else max_cost / count
    actor_class = ray.remote(_define_actor())
    actors = [
        _NodeActor(place, actor_class.options(**_choose_options(place, concurrency * count)).remote(share, count))
        for place in placements
    ]
    try:
        _await_start(ray, actors)
        yield ClusterEpisodes(actors)
    finally:
        _end_actors(ray, actors)


def _define_actor() -> type:
    """The class of the actors. It is made here, and not imported, so that the head need not have Podium."""

    class NodeActor:
        def __init__(self, max_cost: float | None, actors: int) -> None:
            from trainer.cluster.node import NodeEpisodes

            self._episodes = NodeEpisodes(max_cost, actors)

        async def start(self) -> None:
            """Return once the actor runs."""

        async def run(self, key: str, setup: bytes, work: bytes, spent: float) -> bytes:
            return await self._episodes.run(key, setup, work, spent)

        async def close(self, key: str) -> None:
            await self._episodes.close(key)

        async def close_all(self) -> None:
            await self._episodes.close_all()

    return NodeActor


def _choose_options(place: Placement, concurrency: int) -> dict[str, Any]:
    """Where an actor runs and what becomes of it when its node is lost, in Ray's words.

    It starts again on another node. One that had a GPU would wait there for one that is free: the others take over.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return {
        "num_cpus": SLICE,
        "num_gpus": place.gpus,
        "max_concurrency": concurrency,
        "max_restarts": 0 if place.gpus else -1,
        "max_task_retries": 0 if place.gpus else RETRIES,
        "scheduling_strategy": NodeAffinitySchedulingStrategy(place.node.id, soft=not place.gpus),
    }


def _await_start(ray: Any, actors: Sequence[_NodeActor]) -> None:
    try:
        ray.get([actor.handle.start.remote() for actor in actors], timeout=START_S)
    except ray.exceptions.GetTimeoutError as error:
        raise TrainingFailed(
            CODE, f"the nodes did not start within {START_S:g} s: other work holds them, or they are starting. "
            "`ray status` on the cluster says which; resume tries again"
        ) from error  # fmt: skip
    except ray.exceptions.RayError as error:
        raise TrainingFailed(CODE, f"the nodes cannot run episodes: {_shorten(error)}") from error


def _end_actors(ray: Any, actors: Sequence[_NodeActor]) -> None:
    """Let workers end what they have started, then end the actors."""
    if not ray.is_initialized():  # the cluster is gone
        return
    with suppress(ray.exceptions.RayError, ConnectionError):
        ray.get([actor.handle.close_all.remote() for actor in actors], timeout=CLOSE_S)
    with suppress(ray.exceptions.RayError, ConnectionError):
        for actor in actors:
            ray.kill(actor.handle)


@dataclass(slots=True)
class ClusterEpisodes:
    """Runs episodes on the actors of a cluster: the place of an evaluation's trials and of a teacher's trajectories."""

    _actors: list[_NodeActor]
    _keys: count[int] = field(default_factory=count)
    _looked_at: float = 0.0
    _seen_at: float = field(default_factory=time.monotonic)

    @property
    def nodes(self) -> int:
        return len(self._actors)

    def open_cell(self, cell: EvaluationCell, limits: Limits, store: Store) -> ClusterTrials:
        """The trials of a cell, run on the nodes; their traces go to `store`."""
        binding = BindingSettings(cell.binding.enabled, store.bindings.freeze().read)
        pool = cell.pool.pool
        setup = CellSetup(cell.orchestrator, cell.condition, pool, dict(cell.renaming), cell.past, binding, limits)
        return ClusterTrials(self, self._share(setup), store)

    def open_teacher(self, pool: Pool, store: Store) -> ClusterTeacher:
        """The trajectories on a pool, sampled on the nodes; their traces go to `store`."""
        return ClusterTeacher(self, self._share(TeacherSetup(pool)), store)

    def _share(self, setup: WorkplaceSetup) -> SharedSetup:
        """Put what nodes need into the cluster's object store, once for all of them."""
        return SharedSetup(f"workplace-{next(self._keys)}", import_ray().put(pickle.dumps(setup)))

    async def run(self, setup: SharedSetup, work: object) -> WorkOutcome:
        """Run an episode on the node that has least to do. Raises TrainingFailed with what kept it from running."""
        actor = min(self._actors, key=lambda actor: actor.running / actor.placement.node.cpus)
        name = actor.placement.node.name
        actor.running += 1
        try:
            reply = await self._fetch(actor.handle.run, setup.key, setup.reference, pickle.dumps(work), actor.spent)
        except import_ray().exceptions.RayError as error:
            if self._leave_to_others(actor):
                return await self.run(setup, work)
            raise TrainingFailed(
                CODE, f"an episode failed {RETRIES + 1} times, last on {name}: {_shorten(error)}. {RESUME}"
            ) from error  # fmt: skip
        except ConnectionError as error:
            raise TrainingFailed(
                CODE, f"the connection to the cluster was lost. {RESUME} once the cluster answers"
            ) from error  # fmt: skip
        finally:
            actor.running -= 1
        outcome: WorkOutcome = pickle.loads(reply)  # noqa: S301  from our own actor
        _charge(actor, outcome)
        if outcome.problem is not None:
            code, sentence = outcome.problem
            raise TrainingFailed(code, f"on {name}: {sentence}")
        return outcome

    def _leave_to_others(self, actor: _NodeActor) -> bool:
        """Give an actor up that has lost its GPU. Returns whether others are left."""
        if actor.placement.gpus and actor in self._actors:
            log.warning("%s is lost; the other places go on", actor.placement.node.name)
            self._actors.remove(actor)
        return bool(actor.placement.gpus and self._actors)

    async def _fetch(self, method: Any, *arguments: object) -> bytes:
        """Call an actor and wait for its reply, for as long as there are nodes. Raises RayError, ConnectionError and
        TrainingFailed."""

        reply = await _call(method, *arguments)
        while not reply.done():
            await asyncio.wait([reply], timeout=LOOK_S)
            if not reply.done():
                await self._look()
        fetched: bytes = reply.result()
        return fetched

    async def _look(self) -> None:
        """Raise TrainingFailed when no node has been left for a while that could take over."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        _check_connection()
        nodes = await asyncio.to_thread(list_nodes, import_ray())
        if nodes:
            self._seen_at = time.monotonic()
        elif now - self._seen_at > LOST_S:
            raise TrainingFailed(CODE, f"no node of the cluster is left: start some. {RESUME}")

    async def close(self, setup: SharedSetup) -> None:
        """Close what a setup has opened on the nodes."""
        with suppress(ConnectionError):
            replies = [await _call(actor.handle.close, setup.key) for actor in self._actors]
            await asyncio.wait(replies, timeout=CLOSE_S)


async def _call(method: Any, *arguments: object) -> asyncio.Future[Any]:
    """Call an actor; the future is its reply. Raises ConnectionError. Nobody may cancel the future: Ray's thread, which
    resolves it, would end."""

    def send() -> Any:
        _check_connection()
        try:
            return method.remote(*arguments).future()  # waits until the cluster has the call
        except ValueError as error:  # gRPC's word for a channel that is closed
            raise ConnectionError(str(error)) from error

    reply = asyncio.wrap_future(await asyncio.to_thread(send))
    reply.add_done_callback(lambda reply: reply.cancelled() or reply.exception())  # nobody may wait for it any more
    return reply


def _check_connection() -> None:
    """Raise ConnectionError where Ray has given the connection up."""
    if not import_ray().is_initialized():
        raise ConnectionError("not connected")


def _charge(actor: _NodeActor, outcome: WorkOutcome) -> None:
    """Count in the job's spending what a node has spent since it was last heard of."""
    spending = current_spending()
    if spending is None:
        return
    spending.charge(Usage(cost=max(0.0, outcome.spent - actor.spent)))
    actor.spent = max(actor.spent, outcome.spent)
    for level in spending.levels:
        level.refused = level.refused or outcome.refused


@dataclass(frozen=True, slots=True)
class ClusterTrials:
    """The trials of one cell on the nodes of a cluster. It is a `TrialRunner`."""

    episodes: ClusterEpisodes
    setup: SharedSetup
    store: Store

    async def run(self, trial: Trial) -> ResultRow | None:
        outcome = await self.episodes.run(self.setup, trial)
        _record(outcome, trial.task.pool, self.store)
        await asyncio.to_thread(self.store.traces.flush)
        row: ResultRow | None = outcome.result
        return row

    async def close(self) -> None:
        await self.episodes.close(self.setup)


@dataclass(frozen=True, slots=True)
class ClusterTeacher:
    """A teacher on the nodes of a cluster. It is a `TrajectoryPlace`."""

    episodes: ClusterEpisodes
    setup: SharedSetup
    store: Store

    @property
    def nodes(self) -> int:
        return self.episodes.nodes

    async def sample(self, trajectory: Trajectory) -> Episode:
        outcome = await self.episodes.run(self.setup, trajectory)
        _record(outcome, trajectory.task.pool, self.store)
        return replay(outcome.result, (event for key, event in outcome.events if key == outcome.result))

    async def close(self) -> None:
        await self.episodes.close(self.setup)


def _record(outcome: WorkOutcome, pool: Pool | None, store: Store) -> None:
    """Put an episode's events, and those of episodes inside it, among the traces of this data folder."""
    if pool is not None:
        store.traces.keep_pool(pool, pool.hash)
    for episode, event in outcome.events:
        store.traces.append(episode, event)


def _shorten(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300]
