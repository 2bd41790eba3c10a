"""The commands of the Serve page: starting and stopping servers, and tokens. The servers are processes of their
own that go on without the studio; it only reads what they write down (server_record.py)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from orchestrator.policies.labels import label_orchestrator
from pool_registry.errors import InvalidPool, PoolError, StorageError
from studio.access.accounts import Tokens, current_user
from studio.access.roles import current_rights
from studio.frame.commands import Fields, PageCommands, PageReply, command, text, words
from studio.frame.ports import check_port
from studio.model_server import server_record
from studio.model_server.http.allowed_origins import read_origins
from studio.orchestrators.choices import orchestrator_choices
from studio.orchestrators.default import choose_default
from studio.pages.serve.deployments import DeploymentCommands
from studio.pages.serve.schema import NewToken, ServedModel, ServeState, TokenLine
from studio.runtime import Runtime

START_S = 120.0
FIRST_PORT = 8000
EVERYWHERE = "0.0.0.0"  # noqa: S104  only with a token, which the server itself insists on


class ServeCommands(PageCommands):
    """The commands of the Serve page, and what it shows."""

    def __init__(self, runtime: Runtime) -> None:
        self._home = runtime.store.home
        self._pools, self._tokens = runtime.store.pools, Tokens(runtime.store.engine)
        self.deployments = DeploymentCommands(runtime)
        self.parts = (self.deployments,)
        self._started: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def document(self) -> ServeState:
        """Build everything that the page draws."""
        self._reap()
        served = server_record.list_servers(self._home)
        defaults = {name: choose_default(self._pools.latest(name).pool) for name in self._pools.names()}
        return ServeState(
            servers=[_describe_server(server) for server in served],
            deployments=self.deployments.list_cards(served),
            tokens=[
                TokenLine(name=token.name, created_at=token.created_at) for token in self._tokens.list(_name_whose())
            ],
            guarded=bool(self._tokens.list()),
            role=current_rights.get().role,
            pools=self._pools.names(),
            orchestrators=_list_choices(defaults.values()),
            defaults=defaults,
            port=_free_port({server.port for server in served}),
            python=sys.executable,
            home=str(self._home.root),
        )

    @command("owner")
    def start(self, fields: Fields) -> PageReply:
        """Start a server and wait until it answers. Raises PoolError; InvalidPool for fields."""
        name, options = _read_served(fields)
        host = EVERYWHERE if fields.get("everywhere") is True else "127.0.0.1"
        port, origins = _port(fields), _read_origins(fields)
        if host == EVERYWHERE and not self._tokens.list():
            raise InvalidPool([("everywhere", "other machines need a token to get in; make one first")])
        try:
            check_port(port, host)
        except StorageError as error:
            raise InvalidPool([("port", str(error).partition(";")[0])]) from error
        options |= {"port": port, "host": host}
        arguments = [f"--{option}={value}" for option, value in options.items() if value]
        arguments += [f"--allow-origin={origin}" for origin in origins]
        arguments += ["--no-record"] if fields.get("unrecorded") is True else []
        arguments += ["--no-follow-ups"] if fields.get("no_follow_ups") is True else []
        process, log = self._spawn(arguments)
        self._await(process, port, log)
        return PageReply(f"{name} is being served on port {port}.")

    @command("owner")
    def stop(self, fields: Fields) -> PageReply:
        """Stop the server on a port. Raises StorageError when there is no such server."""
        stopped = server_record.stop_server(self._home, _port(fields))
        return PageReply(f"{stopped.model} is no longer served.")

    @command("editor")
    def add_token(self, fields: Fields) -> PageReply:
        """A new token, in the reply and nowhere else. Raises AccountError, InvalidPool."""
        name = text(fields, "name").strip()
        token = NewToken(name=name, token=self._tokens.add(name, current_user.get()))
        return PageReply(f"A token for {name}.", token.to_json())

    @command("editor")
    def remove_token(self, fields: Fields) -> PageReply:
        """Revoke a token. Raises AccountError."""
        self._tokens.remove(name := text(fields, "name"), _name_whose())
        return PageReply(f"The token {name} is revoked.")

    def _spawn(self, arguments: list[str]) -> tuple[subprocess.Popen[bytes], Path]:
        log = server_record.record_folder(self._home) / f"start-{time.time_ns()}.log"
        command = [sys.executable, "-m", "studio", "serve", f"--home={self._home.root}", *arguments]
        with log.open("wb") as out:
            process = subprocess.Popen(  # noqa: S603  our own program
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, env={**os.environ}
            )
        with self._lock:
            self._started.append(process)
        return process, log

    def _await(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        """Wait until the server answers. Raises StorageError with its own error when it ends instead."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise StorageError(_failure_reason(log))
            if any(one.port == port and one.state == "ready" for one in server_record.list_servers(self._home)):
                log.unlink(missing_ok=True)
                return
            time.sleep(0.1)
        raise StorageError(f"the server has not answered for {START_S:.0f} s; it may still come. Its log is {log}")

    def _reap(self) -> None:
        """Reap servers that have ended, or they stay in the process table as zombies."""
        with self._lock:
            self._started = [process for process in self._started if process.poll() is None]


def _read_served(fields: Fields) -> tuple[str, dict[str, object]]:
    """The name that clients will use, and the options that say what is served: a deployment, or pool and orchestrator.
    Raises InvalidPool."""
    if deployment := words(fields, "deployment"):
        return deployment, {"deployment": deployment}
    pool, orchestrator, name = text(fields, "pool"), text(fields, "orchestrator"), words(fields, "name")
    return name or f"podium-{pool}", {"pool": pool, "orchestrator": orchestrator, "name": name}


def _describe_server(server: server_record.ServerRecord) -> ServedModel:
    label = label_orchestrator(server.orchestrator)
    return ServedModel(**server.model_dump(exclude={"owner"}), url=server.url, orchestrator_label=label)


def _list_choices(defaults: Iterable[str]) -> list[tuple[str, str]]:
    """What can be served: (label, name), with models of pools that are a pool's default."""
    choices = orchestrator_choices(with_reference=False)
    names = {name for _, name in choices}
    return choices + [(label_orchestrator(name), name) for name in dict.fromkeys(defaults) if name not in names]


def _name_whose() -> str | None:
    """Whose tokens are shown and revoked: each person's own; every token where nobody logs in."""
    return current_user.get() or None


def _port(fields: Fields) -> int:
    value = fields.get("port")
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65535:
        raise InvalidPool([("port", "a port is a number from 1 to 65535")])
    return value


def _read_origins(fields: Fields) -> tuple[str, ...]:
    """The origins that are written with spaces or commas between them. Raises InvalidPool."""
    try:
        return read_origins(words(fields, "origins").replace(",", " ").split())
    except PoolError as error:
        raise InvalidPool([("origins", str(error))]) from error


def _free_port(taken: set[int]) -> int:
    """The first free port from FIRST_PORT on; the page suggests it."""
    for port in range(FIRST_PORT, FIRST_PORT + 100):
        if port not in taken:
            try:
                check_port(port)
            except StorageError:
                continue
            return port
    return FIRST_PORT


def _failure_reason(log: Path) -> str:
    """Why a server did not start: its own error, or where its log is."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    reasons = [line.removeprefix("podium: ") for line in lines if line.startswith("podium: ")]
    return reasons[-1] if reasons else f"the server ended without a reason; its log is {log}"
