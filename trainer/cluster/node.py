"""Runs on each node of a cluster: it says what is missing there, and runs episodes on open pools of its own."""

from __future__ import annotations

import asyncio
import hashlib
import pickle
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from functools import cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path

from orchestrator.checkpoints import find_checkpoint
from orchestrator.engine.events import Event
from orchestrator.engine.gc_settings import expect_many_episodes
from orchestrator.errors import OrchestratorError, UnknownOrchestrator
from orchestrator.orchestrator_name import OrchestratorName, split_options
from orchestrator.policies.registry import POLICIES
from pool_registry.actions import Usage
from pool_registry.calls.limit_share import share_limits
from pool_registry.calls.live_pool import live_pool
from pool_registry.calls.live_worker import LiveWorker
from pool_registry.calls.patience import Patience
from pool_registry.calls.spending import Spending, charge_calls_to
from pool_registry.errors import PoolError, SecretNotFound
from pool_registry.extensions.installed_packages import pin_version
from pool_registry.pool import Pool
from pool_registry.secrets import list_references, resolve
from trainer.cluster.work import NodeReport, NodeRequest, WorkOutcome, Workplace, WorkplaceSetup
from trainer.errors import TrainerError, TrainingFailed

ROOMS = ("pool_registry", "orchestrator", "trainer")
CHECK_S = 60.0  # for all workers of a pool together

_events: ContextVar[list[tuple[str, Event]]] = ContextVar("events")


class _EventCollector:
    """Gathers the events of the episode that the running task belongs to."""

    def append(self, episode_id: str, event: Event) -> None:
        _events.get().append((episode_id, event))


class NodeEpisodes:
    """The open pools of an actor. `max_cost` is its share of the job's spend cap, in US dollars; None without one. It
    is one of so many `actors`, which share the limits of the workers."""

    def __init__(self, max_cost: float | None, actors: int = 1) -> None:
        expect_many_episodes()
        self._actors = actors
        self._spending = Spending(max_cost=max_cost, patience=Patience())
        self._workplaces: dict[str, Workplace] = {}

    async def run(self, key: str, setup: bytes, work: bytes, spent: float) -> bytes:
        """Run an episode and return its pickled WorkOutcome. `setup` is opened unless the workplace `key` is open;
        `spent` is what this share of the spend cap has paid for already, perhaps on a node that is gone."""
        if spent > self._spending.used.cost:
            self._spending.charge(Usage(cost=spent - self._spending.used.cost))
        events: list[tuple[str, Event]] = []
        _events.set(events)
        result, problem = None, None
        try:
            with charge_calls_to(self._spending), share_limits(self._actors):
                result = await self._open(key, setup).run(pickle.loads(work))  # noqa: S301  from our own driver
        except (PoolError, OrchestratorError, TrainerError) as error:
            problem = (error.code if isinstance(error, TrainingFailed) else type(error).__name__, str(error))
        spending = self._spending
        return pickle.dumps(WorkOutcome(result, tuple(events), problem, spending.used.cost, spending.refused))

    def _open(self, key: str, setup: bytes) -> Workplace:
        if key not in self._workplaces:
            opened: WorkplaceSetup = pickle.loads(setup)  # noqa: S301  from our own driver
            self._workplaces[key] = opened.open(_EventCollector())
        return self._workplaces[key]

    async def close(self, key: str) -> None:
        """Close a workplace, if it is open."""
        if key in self._workplaces:
            await self._workplaces.pop(key).close()

    async def close_all(self) -> None:
        for key in list(self._workplaces):
            await self.close(key)


@cache
def digest_code() -> str:
    """A digest of the Podium that this process runs: equal code gives equal digests, however it was installed."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for path in sorted(path for room in ROOMS for path in (root / room).rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def report_node(request: str) -> str:
    """Answer a NodeRequest with a NodeReport, both as JSON."""
    parsed = NodeRequest.model_validate_json(request)
    problems = asyncio.run(_find_problems(parsed))
    return NodeReport(code=digest_code(), problems=tuple(dict.fromkeys(problems))).model_dump_json()


async def _find_problems(request: NodeRequest) -> list[str]:
    problems = list(_find_missing_packages(request.packages))
    if problems:
        return problems  # pools and orchestrators may need them
    problems += _find_missing_orchestrators(request.orchestrators)
    for pool in request.pools:
        missing = list(_find_missing_secrets(pool))
        problems += missing or await _find_failing_workers(pool)
    return problems


def _find_missing_packages(pins: Sequence[str]) -> Iterator[str]:
    for pin in pins:
        name = pin.partition("==")[0]
        try:
            own = pin_version(name)
        except PackageNotFoundError:
            yield f"it does not have the package {name}, which adds what this job uses: install {pin} there"
            continue
        if own != pin:
            yield f"it has {own}, and this job uses {pin}: install the same there"


def _find_missing_orchestrators(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if OrchestratorName.parse(name).policy in POLICIES:
            continue
        try:
            find_checkpoint(split_options(name)[0])
        except UnknownOrchestrator as error:
            yield (
                f"it does not have {name} ({error}). Put the data folder on a disk that all nodes share and start Ray "
                "there with PODIUM_HOME set to it"
            )


def _find_missing_secrets(pool: Pool) -> Iterator[str]:
    for reference in list_references([spec.config for spec in pool.switched_on]):
        try:
            resolve(reference)
        except SecretNotFound:
            name = reference.partition(":")[2]
            how = f"export {name} before `ray start` there" if reference.startswith("env:") else f"use env:{name}"
            yield f"the secret {reference} is not set there, and secrets do not travel to a cluster: {how}"


async def _find_failing_workers(pool: Pool) -> list[str]:
    """What each worker's own check says is missing."""
    try:
        async with live_pool(pool) as live:
            sentences = await asyncio.gather(*map(_check_worker, live.workers.values()))
    except PoolError as error:
        return [str(error)]
    return [sentence for sentence in sentences if sentence]


async def _check_worker(worker: LiveWorker) -> str:
    try:
        async with asyncio.timeout(CHECK_S):
            await worker.worker.check()
    except (PoolError, OSError, TimeoutError) as error:
        return f"{worker.spec.name} does not work there: {str(error) or 'its check takes too long'}"
    return ""
