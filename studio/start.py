"""Starts the studio: data folder, store, starter pool, web server."""

from __future__ import annotations

import inspect
import threading
import time
import webbrowser
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from orchestrator.engine.gc_settings import expect_many_episodes
from orchestrator.traces.store import Store
from pool_registry.errors import StorageError
from studio.access.request_guards import LOOPBACK
from studio.frame.ports import HOST, check_port
from studio.prepare import build_starter_data, open_whole_store

if TYPE_CHECKING:
    import uvicorn


@dataclass(frozen=True, slots=True)
class StartOptions:
    """How to start the studio. `home` is the data folder, None for the default one; `proxy` the address of the reverse
    proxy whose word on the visitor's address and on https counts."""

    port: int
    home: str | None
    browser: bool
    host: str = HOST
    login: bool = False
    proxy: str = ""

    @property
    def loopback(self) -> bool:
        """Whether this machine alone can reach the studio; a proxy brings others."""
        return self.host in LOOPBACK and not self.proxy

    @property
    def needs_login(self) -> bool:
        """Whether the studio asks for a login: wherever others can reach it, on loopback only where `login` says so."""
        return self.login or not self.loopback


def check_login(store: Store) -> None:
    """Raise StorageError when there is no user who could log in."""
    from studio.access.accounts import Accounts

    if not Accounts(store.engine).list():
        raise StorageError("there is no user who could log in; add one first with `podium users add NAME`")


def run_studio(options: StartOptions) -> None:
    """Run the studio until it is interrupted."""
    check_port(options.port, options.host)
    store = open_whole_store(options.home)
    if options.needs_login:
        check_login(store)

    import uvicorn  # after the cheap checks: Gradio takes seconds to import

    import_gradio()
    from studio.app import create_app
    from studio.housekeeping.daily import start_daily_work
    from studio.runtime import Runtime

    expect_many_episodes()
    runtime = Runtime(store)
    runtime.jobs.start_rented()
    app = create_app(runtime, login=options.needs_login, loopback=options.loopback)
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        log_level="warning",
        timeout_graceful_shutdown=1,
        server_header=False,
        proxy_headers=bool(options.proxy),  # anybody can write them: only a proxy that is named is believed
        forwarded_allow_ips=options.proxy,
    )
    threading.Thread(target=build_starter_data, args=(store.home, False), daemon=True).start()
    start_daily_work(store)
    server = uvicorn.Server(config)
    threading.Thread(target=_announce, args=(server, options), daemon=True).start()
    server.run()


def import_gradio() -> None:
    """Import Gradio without the stubs that it writes for editors: at every start it parses the source of all
    components, a third of the time of the import. For a class that has no file it writes none."""
    find_file = inspect.getfile
    inspect.getfile = _refuse_to_find  # type: ignore[assignment]  # for as long as the import takes
    try:
        import gradio  # noqa: F401  what imports it later finds it there
    finally:
        inspect.getfile = find_file


def _refuse_to_find(place: object) -> str:
    raise OSError(f"{place} has no stub")


def _announce(server: uvicorn.Server, options: StartOptions) -> None:
    """Print the studio's address as soon as it answers, and open the browser there."""
    while not server.started:
        if server.should_exit:
            return
        time.sleep(0.02)
    url = f"http://{options.host}:{options.port}/"
    typer.echo(f"Podium is ready: {url}  (stop with Ctrl-C)")
    if not options.loopback and not options.proxy:
        typer.echo("Passwords travel unencrypted over http; outside a network you trust, put a TLS proxy in front.")
    if options.browser:
        webbrowser.open(url)
