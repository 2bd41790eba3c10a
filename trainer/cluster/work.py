"""What travels between this machine and the nodes of a cluster: what a node opens, and what comes back of an episode.

All of it is pickled here and travels as bytes: the head of the cluster need not know the classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.binding.bind_workers import BindingSettings
from orchestrator.engine.episode_loop import Sink
from orchestrator.engine.events import Event
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.pool import Limits, Pool
from pool_registry.strict_model import StrictModel
from trainer.demonstrations.collect import Trajectory, run_trajectory
from trainer.evaluation.frozen_past import FrozenPast
from trainer.evaluation.stage import EvaluationCell
from trainer.evaluation.trials import LocalTrials, Trial
from trainer.results.rows import ResultRow
from trainer.tasks.task_pools import TaskPools


class Workplace(Protocol):
    """An open pool on a node, and what is run on it."""

    async def run(self, work: Any) -> object:
        """Run one episode. Its events have gone to the sink when this returns."""

    async def close(self) -> None:
        """Close the pool."""


class WorkplaceSetup(Protocol):
    """What a node needs to know to open a workplace."""

    def open(self, sink: Sink) -> Workplace:
        """Open it on the running event loop. Raises InvalidPool."""


@dataclass(frozen=True, slots=True)
class CellSetup:
    """An orchestrator in one condition, as in `EvaluationCell`. It runs trials and returns their rows."""

    orchestrator: str
    condition: str
    pool: Pool
    renaming: Mapping[str, str]
    past: FrozenPast | None
    binding: BindingSettings
    limits: Limits

    def open(self, sink: Sink) -> Workplace:
        live = open_live_pool(self.pool)
        cell = EvaluationCell(self.orchestrator, self.condition, live, (), self.renaming, self.past, self.binding)
        return _TrialWorkplace(live, LocalTrials(live, cell.maker(), sink, limits=self.limits))


@dataclass(frozen=True, slots=True)
class _TrialWorkplace:
    pool: LivePool
    trials: LocalTrials

    async def run(self, work: Trial) -> ResultRow | None:
        return await self.trials.run(work)

    async def close(self) -> None:
        await self.trials.close()
        await self.pool.close()


@dataclass(frozen=True, slots=True)
class TeacherSetup:
    """A pool on which trajectories are sampled. It returns the id of the episode."""

    pool: Pool

    def open(self, sink: Sink) -> Workplace:
        live = open_live_pool(self.pool)
        return _TeacherWorkplace(TaskPools(live), sink)


@dataclass(frozen=True, slots=True)
class _TeacherWorkplace:
    pools: TaskPools
    sink: Sink

    async def run(self, work: Trajectory) -> str:
        return (await run_trajectory(work, self.pools, self.sink)).id

    async def close(self) -> None:
        await self.pools.close()
        await self.pools.home.close()


@dataclass(frozen=True, slots=True)
class WorkOutcome:
    """What came of one episode on a node: its result and its events with the ids of their episodes, or the problem that
    kept it from running, as (code, sentence). `spent` is what the node has spent so far, in US dollars; `refused` says
    that its share of the spend cap is used up."""

    result: Any = None
    events: tuple[tuple[str, Event], ...] = ()
    problem: tuple[str, str] | None = None
    spent: float = 0.0
    refused: bool = False


class NodeRequest(StrictModel):
    """What a node is asked about itself before it gets work: whether these workers and orchestrators work there, and
    whether it has these packages, each with its version: name==version."""

    pools: tuple[Pool, ...]
    orchestrators: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


class NodeReport(StrictModel):
    """A node's answer: the digest of its Podium's code, and a sentence about each thing that it lacks."""

    code: str
    problems: tuple[str, ...] = ()
