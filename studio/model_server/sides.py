"""What answers the requests of a server: one pool and orchestrator, or the sides of a deployment as its record is now.

The record is read at each request, so a promotion or a rollback holds from the next request on. A request that is being
answered keeps its side, and a pool version stays open until nobody uses it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.engine.events import ServedAs
from orchestrator.errors import OrchestratorError
from orchestrator.traces.store import Store
from pool_registry.calls.call_cache import CallCache
from pool_registry.calls.call_cache_table import DatabaseCacheStore
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.deployment_mode import DeploymentMode, ModeName, tighten_mode
from pool_registry.errors import PoolError
from pool_registry.storage.pool_store import StoredPool
from studio.deployments.states import Candidate, DeploymentChange, ServingSide
from studio.deployments.store import Deployments
from studio.episodes import make_orchestrator_with_memory
from studio.model_server.errors import ApiError
from studio.model_server.request import EpisodeRequest, RequestLimits

log = logging.getLogger(__name__)
ORCHESTRATOR_HEADER, DEPLOYMENT_HEADER = "x-podium-orchestrator", "x-podium-deployment"
DRAWS = 2**32


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A pool and an orchestrator under one model name, with the server's own limits. With a `deployment`, its record
    says what is served: see `read_deployed`."""

    pool: str
    orchestrator: str
    model: str = ""
    limits: RequestLimits = field(default_factory=RequestLimits)
    max_concurrency: int = 128
    mode: ModeName | None = None  # stricter than the pool's
    record: bool = True  # False: nothing of any request is stored
    version: int | None = None  # of the pool; None: the newest
    deployment: str = ""
    follow_ups: bool = True  # False: no message is read as a follow-up of those before it

    @property
    def name(self) -> str:
        """The model's name for clients."""
        return self.model or f"podium-{self.pool}"

    def read_pool(self, store: Store) -> StoredPool:
        """The version of the pool that is served. Raises PoolNotFound."""
        return store.pools.latest(self.pool) if self.version is None else store.pools.get(self.pool, self.version)


def build_served_model(name: str, serving: ServingSide, max_concurrency: int = 128) -> ServedModel:
    """A deployment as the model of its name."""
    options = serving.options
    limits = RequestLimits(
        max_total_tokens=options.max_total_tokens, max_cost=options.max_cost, deadline_s=options.deadline_s
    )
    return ServedModel(
        serving.pool, serving.orchestrator, name, limits, max_concurrency, options.mode, options.record,
        serving.pool_version, name, options.follow_ups,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Side:
    """What one request is answered with."""

    pool: LivePool
    model: ServedModel
    mode: DeploymentMode
    served_as: ServedAs | None = None

    @property
    def orchestrator(self) -> str:
        return self.model.orchestrator

    @property
    def headers(self) -> dict[str, str]:
        """What tells a client of a deployment which side answered."""
        if self.served_as is None:
            return {}
        named = {
            ORCHESTRATOR_HEADER: self.orchestrator,
            DEPLOYMENT_HEADER: f"{self.served_as.deployment}; side={self.served_as.side}",
        }
        return {name: value.encode("ascii", "replace").decode() for name, value in named.items()}


class Sides:
    """The sides of one server. Make and use it on the event loop that serves.

    Raises PoolNotFound, InvalidPool or UnknownOrchestrator when the model cannot be served.
    """

    def __init__(self, store: Store, model: ServedModel) -> None:
        self._store, self._deployments = store, Deployments(store.engine)
        self._name, self._model = model.deployment, model
        self._pools: dict[str, LivePool] = {}  # by their hashes
        self._number, self.since = 0, ""  # of the change that is served, and its time
        self.trial: Candidate | None = None
        self.candidate: Side | None = None
        if self._name:
            self._take(self._deployments.latest(self._name))
        else:
            self.serving = self._open(model)

    async def refresh(self) -> bool:
        """Take over what the record says now; whether that is something else. Where it cannot be opened, what served
        until now goes on. Raises ApiError where the record cannot be read."""
        if not self._name:
            return False
        try:
            change = await asyncio.to_thread(self._deployments.latest, self._name)
        except PoolError as error:
            raise ApiError(503, str(error), "no_deployment") from error
        if change.number <= self._number:
            return False
        try:
            self._take(change)
        except (PoolError, OrchestratorError) as error:
            self._number = change.number  # said once, not at every request
            log.error("change %d of %s cannot be served, %s goes on: %s", change.number, self._name,
                      self.serving.orchestrator, error)  # fmt: skip
            return False
        return True

    def choose(self, request: EpisodeRequest, user: str) -> Side:
        """The side that answers a request: the candidate for its share of the conversations."""
        if self.candidate is None or self.trial is None or self.trial.share is None:
            return self.serving
        key = _write_draw_key(self.candidate.orchestrator, request, user)
        drawn = int.from_bytes(hashlib.sha256(key.encode("utf-8", "replace")).digest()[:4]) / DRAWS
        return self.candidate if drawn < self.trial.share else self.serving

    def find_pool(self, pool_hash: str) -> LivePool | None:
        """A pool that is open here, by its hash."""
        return self._pools.get(pool_hash)

    async def close_unused(self, in_use: Collection[str]) -> None:
        """Close the pools that neither serve nor are in use, by their hashes."""
        for pool_hash in [key for key in self._pools if key not in in_use and key != self.serving.pool.hash]:
            await self._pools.pop(pool_hash).close()

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()

    def _take(self, change: DeploymentChange) -> None:
        """Serve what a change says, both sides or nothing of it."""
        state = change.state
        model = build_served_model(self._name, state.serving, self._model.max_concurrency)
        serving, candidate = self._open(model, ServedAs(self._name, "serving", change=change.number)), None
        if state.candidate is not None:
            tried = state.serving.model_copy(update={"orchestrator": state.candidate.orchestrator})
            side: Literal["candidate", "shadow"] = "shadow" if state.candidate.share is None else "candidate"
            served_as = ServedAs(self._name, side, change=change.number)
            candidate = self._open(build_served_model(self._name, tried), served_as)
        self.serving, self.candidate, self.trial = serving, candidate, state.candidate
        self._number, self.since = change.number, change.at

    def _open(self, model: ServedModel, served_as: ServedAs | None = None) -> Side:
        stored = model.read_pool(self._store)
        pool = self._pools.get(stored.pool.hash)
        if pool is None:
            cache = CallCache(DatabaseCacheStore(self._store.engine))
            pool = self._pools[stored.pool.hash] = open_live_pool(stored.pool, cache)
        make_orchestrator_with_memory(self._store, pool, model.orchestrator)  # raises now what every request would
        return Side(pool, model, tighten_mode(pool.pool.mode, model.mode), served_as)


def _write_draw_key(candidate: str, request: EpisodeRequest, user: str) -> str:
    """What all requests of a conversation have alike: whose it is, and how it began."""
    first = next((message.text for message in request.messages if message.role == "user"), request.query)
    return "\0".join((candidate, user, first))
