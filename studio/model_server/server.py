"""Serves a pool and an orchestrator as one model: `podium serve`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from orchestrator.engine.gc_settings import expect_many_episodes
from orchestrator.engine.process_identity import this_process
from orchestrator.orchestrator_name import add_options, split_options
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.errors import StorageError
from studio.access.accounts import Tokens
from studio.access.request_guards import LOOPBACK
from studio.deployments.store import Deployments
from studio.frame.ports import HOST, check_port
from studio.model_server.server_record import ServerRecord, remove_record, write_record
from studio.model_server.service import Service
from studio.model_server.sides import ServedModel, build_served_model
from studio.orchestrators.default import choose_default
from studio.prepare import open_whole_store

if TYPE_CHECKING:
    import uvicorn
    from fastapi import APIRouter, FastAPI

REPORT_S = 0.5


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Where to serve and whom to let in. `tokens` are references, `origins` those of pages that may use it
    from a browser. `make_routers` adds routes to those of the model,
    `start_work` begins what is done beside it."""

    host: str = HOST
    port: int = 8000
    tokens: Sequence[str] = ()
    origins: Sequence[str] = ()
    home: str | None = field(default=None)
    make_routers: Callable[[Store], Sequence[APIRouter]] = field(default=lambda _: ())
    start_work: Callable[[Store], None] = field(default=lambda _: None)

    @property
    def loopback(self) -> bool:
        return self.host in LOOPBACK


def serve_http(model: ServedModel, options: ServeOptions) -> None:
    """Serve until interrupted. Raises before the port is opened when the server cannot start."""
    check_port(options.port, options.host)
    store = open_whole_store(options.home)
    try:
        model = _choose_orchestrator(store, model)
        app = _create_app(store, model, options)
    except BaseException:
        store.close()
        raise
    _run_server(app, store, model, options)


def serve_stdio(model: ServedModel, home: str | None, start_work: Callable[[Store], None]) -> None:
    """Serve as an MCP server on stdin and stdout until the client disconnects. Nothing else may print.

    `start_work` begins what is done beside it.
    """
    from studio.model_server.apis.mcp import create_mcp_server

    store = open_whole_store(home)
    expect_many_episodes()

    async def main() -> None:
        service = Service(store, _choose_orchestrator(store, model))
        try:
            await create_mcp_server(lambda: service, holds_plans=service.mode.name != "autonomous").run_stdio_async()
        finally:
            await service.close()

    start_work(store)
    try:
        asyncio.run(main())
    finally:
        store.close()


def _create_app(store: Store, model: ServedModel, options: ServeOptions) -> FastAPI:
    if not options.loopback and not options.tokens and not Tokens(store.engine).list():
        raise StorageError(
            f"{options.host} can be reached by others, so clients need a token; make one first with "
            "`podium tokens add NAME`, or give one with --token env:NAME"
        )
    expect_many_episodes()
    asyncio.run(_check_model(store, model))

    from studio.model_server.app import create_model_app

    return create_model_app(
        store,
        model,
        loopback=options.loopback,
        references=options.tokens,
        routers=options.make_routers(store),
        origins=options.origins,
    )


def _choose_orchestrator(store: Store, model: ServedModel) -> ServedModel:
    """The model with an orchestrator, where none was named; options stay. A deployment is what its record says. Raises
    DeploymentNotFound."""
    if model.deployment:
        serving = Deployments(store.engine).latest(model.deployment).state.serving
        return build_served_model(model.deployment, serving, model.max_concurrency)
    name, options = split_options(model.orchestrator)
    if name:
        return model
    default = choose_default(store.pools.latest(model.pool).pool)
    return replace(model, orchestrator=add_options(default, options))


async def _check_model(store: Store, model: ServedModel) -> None:
    """Raise now what would otherwise fail at start-up: an unknown pool or orchestrator."""
    from orchestrator.policies.registry import make_orchestrator

    pool = open_live_pool(model.read_pool(store).pool)
    try:
        make_orchestrator(model.orchestrator, pool)
    finally:
        await pool.close()


def _run_server(app: FastAPI, store: Store, model: ServedModel, options: ServeOptions) -> None:
    import uvicorn

    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host=options.host,
            port=options.port,
            log_level="warning",
            lifespan="on",  # a start-up that fails ends the server instead of leaving half of one
            timeout_graceful_shutdown=1,
            server_header=False,
        )
    )
    stopped = threading.Event()
    reporter = threading.Thread(target=_report_state, args=(server, app, store, model, options, stopped), daemon=True)
    reporter.start()
    options.start_work(store)
    try:
        server.run()
    finally:
        stopped.set()
        reporter.join(timeout=5)


def _report_state(
    server: uvicorn.Server,
    app: FastAPI,
    store: Store,
    model: ServedModel,
    options: ServeOptions,
    stopped: threading.Event,
) -> None:
    """Keep this server's record up to date until it stops, and print its address as soon as it answers."""
    last = _new_record(store, model, options)
    write_record(store.home, last)
    try:
        while not stopped.wait(REPORT_S if server.started else 0.05):
            service: Service | None = getattr(app.state, "service", None)
            if not server.started or service is None:
                continue
            if last.state == "starting":
                typer.echo(f"Serving {model.name}: {last.url}  (stop with Ctrl-C)")
            now = last.model_copy(
                update={
                    **_describe_serving(service),
                    "state": "ready",
                    "running": service.running,
                    "answered": service.answered,
                    "failed": service.failed,
                }
            )
            if now != last:
                write_record(store.home, now)
                last = now
    finally:
        remove_record(store.home, last)


def _describe_serving(service: Service) -> dict[str, object]:
    """What a deployment serves by now."""
    model = service.sides.serving.model
    return {"orchestrator": model.orchestrator, **({} if model.version is None else {"version": model.version})}


def _new_record(store: Store, model: ServedModel, options: ServeOptions) -> ServerRecord:
    return ServerRecord(
        host=options.host,
        port=options.port,
        pool=model.pool,
        version=model.read_pool(store).version,
        orchestrator=model.orchestrator,
        model=model.name,
        deployment=model.deployment,
        owner=this_process(),
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        state="starting",
        origins=list(options.origins),
        recorded=model.record,
    )
