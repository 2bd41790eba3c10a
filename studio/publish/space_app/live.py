"""The engine of a live Space: its pool, the orchestrator, and one episode for each query."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

os.environ.setdefault("PODIUM_HOME", str(Path(tempfile.gettempdir()) / "podium-space"))

from orchestrator.engine.budget import Budget
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, Orchestrator, check_query, new_episode_id, run_episode
from orchestrator.engine.events import Event
from orchestrator.errors import OrchestratorError
from orchestrator.policies.finalizer import find_finalizer
from orchestrator.policies.registry import make_orchestrator
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.errors import PoolError, WorkerFault
from pool_registry.pool import Pool, import_pool
from pool_registry.pools.luggage import place_luggage
from pool_registry.secrets import lending
from studio.episode_documents.replay_document import Headline, build_replay

POLL_S = 0.1
FILES = ["*.json", "*.safetensors", "*.jinja", "*.txt", "*.model"]


class MemorySink:
    """Keeps the events of one episode in memory, without those of the episodes inside it."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.count = 0

    def append(self, episode_id: str, event: Event) -> None:
        if episode_id == self.episode.id:
            self.episode.apply(event)
            self.count += 1


class LiveRunner:
    """Runs queries. `errors` are those that a visitor can fix."""

    errors = (OrchestratorError, PoolError, WorkerFault)

    def __init__(self, space: Mapping[str, Any], here: Path) -> None:
        self._space = space
        self._here = here
        self._pool: Pool = place_luggage(import_pool((here / "pool.json").read_bytes()), here)

    async def run(self, query: str, keys: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
        """Run a query and yield replay documents of the growing episode. Leaving early stops it.

        Raises OrchestratorError or PoolError when it cannot start.
        """
        check_query(query)
        name = await asyncio.to_thread(self._orchestrator_name)
        head = Headline(
            new_episode_id(), query, self._pool.name, self._space["info"]["orchestrator"],
            datetime.now(UTC).isoformat(timespec="milliseconds"),
        )  # fmt: skip
        recorder = MemorySink(Episode(head.id))
        budget = Budget(self._pool.limits)
        task = asyncio.create_task(self._episode(EpisodeSpec(query, id=head.id), name, keys, recorder, budget))
        try:
            async for _ in list_changes(task, recorder):
                yield build_replay(recorder.episode, head, self._pool, self._space.get("pool_version"))
            await task
        finally:
            budget.stop()
            with suppress(asyncio.CancelledError, *self.errors):
                await task

    async def _episode(
        self, spec: EpisodeSpec, name: str, keys: Mapping[str, str], recorder: MemorySink, budget: Budget
    ) -> None:
        """Run the episode, as a task of its own: only it and what it starts can use the visitor's keys."""
        with lending(keys):
            async with live_pool(self._pool) as pool:
                orchestrator = make_orchestrator(name, pool)
                finalizer = find_finalizer(name, pool)
                await run_episode(
                    spec, orchestrator, pool, sink=recorder, budget=budget, resolve=_resolve, finalizer=finalizer
                )

    def _orchestrator_name(self) -> str:
        """The policy, or the folder of the checkpoint."""
        return str(self._checkpoint or self._space["policy"])

    @cached_property
    def _checkpoint(self) -> Path | None:
        """The checkpoint in this folder, or the published one at the revision that this Space was made for."""
        inside = self._here / "checkpoint"
        model = self._space.get("model")
        if inside.is_dir() or not model:
            return inside if inside.is_dir() else None
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

        try:
            return Path(snapshot_download(model["repo"], revision=model["revision"] or None, allow_patterns=FILES))
        except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise WorkerFault("model_missing", f"the model {model['repo']} cannot be fetched: {reason}") from error


def _resolve(name: str, _query: str, pool: LivePool) -> Orchestrator:
    return make_orchestrator(name, pool)


async def list_changes(task: asyncio.Task[None], recorder: MemorySink) -> AsyncIterator[None]:
    """Yield whenever something has been recorded, the last time after the end: also where the task ended while the
    caller was busy with the change before."""
    seen = 0
    while True:
        has_ended = task.done()  # asked first: whatever was recorded until then is seen below
        if recorder.count != seen:
            seen = recorder.count
            yield
        if has_ended:
            return
        await asyncio.wait([task], timeout=POLL_S)
