"""Serves a pool and an orchestrator as one model: `podium serve`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from orchestrator.engine.gc_settings import expect_many_episodes
from orchestrator.engine.process_identity import this_process
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.errors import StorageError
from pool_registry.storage.data_folder import choose_home
from studio.access.accounts import Tokens
from studio.access.request_guards import LOOPBACK
from studio.frame.ports import HOST, check_port
from studio.model_server.server_record import Served, remove, write
from studio.model_server.service import Offer, Service
from studio.prepare import prepare_store

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

REPORT_S = 0.5


@dataclass(frozen=True, slots=True)
class Place:
    """Where to serve and whom to let in. `tokens` are references."""

    host: str = HOST
    port: int = 8000
    tokens: Sequence[str] = ()
    home: str | None = field(default=None)

    @property
    def loopback(self) -> bool:
        return self.host in LOOPBACK


def serve_http(offer: Offer, place: Place) -> None:
    """Serve until interrupted. Raises what keeps it from starting, before the port is opened."""
    check_port(place.port, place.host)
    store = _store(place.home)
    try:
        app = _app(store, offer, place)
    except BaseException:
        store.close()
        raise
    _run(app, store, offer, place)


def serve_stdio(offer: Offer, home: str | None) -> None:
    """Serve as an MCP server on stdin and stdout until the client goes away. Nothing else may print."""
    from studio.model_server.mcp import mcp_server

    store = _store(home)

    async def main() -> None:
        service = Service(store, offer)
        try:
            await mcp_server(lambda: service).run_stdio_async()
        finally:
            await service.close()

    try:
        asyncio.run(main())
    finally:
        store.close()


def _store(home: str | None) -> Store:
    chosen = choose_home(home)  # checkpoints and workers' data are looked up in it
    expect_many_episodes()
    return prepare_store(str(chosen.root))


def _app(store: Store, offer: Offer, place: Place) -> FastAPI:
    if not place.loopback and not place.tokens and not Tokens(store.engine).list():
        raise StorageError(
            f"{place.host} can be reached by others, so clients need a token; make one first with "
            "`podium tokens add NAME`, or give one with --token env:NAME"
        )
    asyncio.run(_try(store, offer))

    from studio.model_server.app import create_serve_app

    return create_serve_app(store, offer, loopback=place.loopback, references=place.tokens)


async def _try(store: Store, offer: Offer) -> None:
    """Raise now what would be a failed start-up later: a pool or an orchestrator that is not there."""
    from orchestrator.policies.registry import make_orchestrator

    pool = open_live_pool(store.pools.latest(offer.pool).pool)
    try:
        make_orchestrator(offer.orchestrator, pool)
    finally:
        await pool.close()


def _run(app: FastAPI, store: Store, offer: Offer, place: Place) -> None:
    import uvicorn

    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host=place.host,
            port=place.port,
            log_level="warning",
            lifespan="on",  # a start-up that fails ends the server instead of leaving half of one
            timeout_graceful_shutdown=1,
            server_header=False,
        )
    )
    stopped = threading.Event()
    reporter = threading.Thread(target=_report, args=(server, app, store, offer, place, stopped), daemon=True)
    reporter.start()
    try:
        server.run()
    finally:
        stopped.set()
        reporter.join(timeout=5)


def _report(
    server: uvicorn.Server, app: FastAPI, store: Store, offer: Offer, place: Place, stopped: threading.Event
) -> None:
    """Keep this server's record true until it stops, and say where it is as soon as it answers."""
    last = _record(store, offer, place)
    write(store.home, last)
    try:
        while not stopped.wait(REPORT_S if server.started else 0.05):
            service: Service | None = getattr(app.state, "service", None)
            if not server.started or service is None:
                continue
            if last.state == "starting":
                typer.echo(f"Serving {offer.name}: {last.url}  (stop with Ctrl-C)")
            now = last.model_copy(
                update={"state": "ready", "running": service.running, "answered": service.started - service.running}
            )
            if now != last:
                write(store.home, now)
                last = now
    finally:
        remove(store.home, last)


def _record(store: Store, offer: Offer, place: Place) -> Served:
    return Served(
        host=place.host,
        port=place.port,
        pool=offer.pool,
        version=store.pools.latest(offer.pool).version,
        orchestrator=offer.orchestrator,
        model=offer.name,
        owner=this_process(),
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        state="starting",
    )
