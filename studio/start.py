"""Starts the studio: data folder, store, starter pool, web server."""

from __future__ import annotations

import socket
import threading
import time
import webbrowser
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from orchestrator.engine.gc_settings import expect_many_episodes
from orchestrator.traces.store import Store, open_store
from pool_registry.errors import StorageError
from pool_registry.starter import seed_starter
from pool_registry.storage.data_folder import Home, choose_home, find_home
from studio.access.request_guards import LOOPBACK

if TYPE_CHECKING:
    import uvicorn

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class StartOptions:
    port: int
    home: str | None
    browser: bool
    host: str = HOST
    login: bool = False

    @property
    def loopback(self) -> bool:
        return self.host in LOOPBACK

    @property
    def needs_login(self) -> bool:
        """Always where others can reach it; on a shared machine also when it is wished."""
        return self.login or not self.loopback


def prepare(folder: str | None) -> Store:
    """A migrated, seeded store. Raises StorageError saying what to do."""
    home = find_home(folder)
    store = open_store(home)
    store.traces.mark_interrupted()
    if not (names := store.pools.names()) or "starter" in names:
        seed_starter(store.pools)
    return store


def make_starter_data(home: Home, with_model: bool) -> None:
    """Build what the starter pool reads (database, search index, converted model), once per data folder."""
    from pool_registry.starter.ledger import ledger_database
    from pool_registry.workers.search import load_index

    ledger_database(home)
    load_index("starter:factbook", home)
    if with_model:
        from pool_registry.language_models.model_files import model_path
        from pool_registry.starter import STARTER_MODEL

        model_path(STARTER_MODEL)


def check_port(port: int, host: str = HOST) -> None:
    """Raise StorageError when another program listens there."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise StorageError(
                f"port {port} of {host} cannot be used ({error.strerror}); "
                "is a studio already running there? Choose another with --port (make studio PORT=7861)"
            ) from error


def check_login(store: Store) -> None:
    """Raise StorageError when nobody could log in."""
    from studio.access.accounts import Accounts

    if not Accounts(store.engine).list():
        raise StorageError("nobody could log in; add a user first with `python -m studio users add NAME`")


def serve(options: StartOptions) -> None:
    """Run the studio until it is interrupted."""
    check_port(options.port, options.host)
    home = choose_home(options.home)  # checkpoints and workers' data are looked up in it
    store = prepare(str(home.root))
    if options.needs_login:
        check_login(store)

    import uvicorn  # after the cheap checks: Gradio takes seconds to import

    from studio.app import create_app
    from studio.runtime import Runtime

    expect_many_episodes()
    app = create_app(Runtime(store), login=options.needs_login, loopback=options.loopback)
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        log_level="warning",
        timeout_graceful_shutdown=1,
        server_header=False,
    )
    threading.Thread(target=make_starter_data, args=(store.home, False), daemon=True).start()
    server = uvicorn.Server(config)
    threading.Thread(target=_announce, args=(server, options), daemon=True).start()
    server.run()


def _announce(server: uvicorn.Server, options: StartOptions) -> None:
    """Say where the studio is as soon as it answers, and open the browser there."""
    while not server.started:
        if server.should_exit:
            return
        time.sleep(0.02)
    url = f"http://{options.host}:{options.port}/"
    typer.echo(f"Podium is ready: {url}  (stop with Ctrl-C)")
    if not options.loopback:
        typer.echo("Passwords travel unencrypted over http; outside a network you trust, put a TLS proxy in front.")
    if options.browser:
        webbrowser.open(url)
