"""What the Serve page can do: start and stop servers, and hand out tokens. The servers are processes of their
own that go on without the studio; it only reads what they write down (server_record.py)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Body
from fastapi.responses import JSONResponse

from orchestrator.policies.registry import needs_reference
from pool_registry.errors import InvalidPool, PoolError, StorageError
from studio.access.accounts import Tokens
from studio.frame.commands import Command, Reply, text, words
from studio.frame.ports import check_port
from studio.model_server import server_record
from studio.runtime import Runtime

START_S = 120.0
FIRST_PORT = 8000
EVERYWHERE = "0.0.0.0"  # noqa: S104  only with a token, which the server itself insists on


class ServeDesk:
    """The commands of the page, and what it shows."""

    def __init__(self, runtime: Runtime, orchestrators: Callable[[], list[tuple[str, str]]]) -> None:
        self._home = runtime.store.home
        self._pools, self._tokens = runtime.store.pools, Tokens(runtime.store.engine)
        self._orchestrators = orchestrators
        self._started: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def document(self) -> dict[str, Any]:
        """Everything the page draws."""
        self._reap()
        served = server_record.list_servers(self._home)
        return {
            "servers": [{**one.model_dump(exclude={"owner"}), "url": one.url} for one in served],
            "tokens": [{"name": known.name, "created_at": known.created_at} for known in self._tokens.list()],
            "pools": self._pools.names(),
            "orchestrators": [[label, name] for label, name in self._orchestrators() if not needs_reference(name)],
            "port": _free_port({one.port for one in served}),
            "python": sys.executable,
            "home": str(self._home.root),
        }

    def start(self, asked: Mapping[str, Any]) -> Reply:
        """Start a server and wait until it answers. Raises PoolError; InvalidPool for fields."""
        pool, orchestrator, name = text(asked, "pool"), text(asked, "orchestrator"), words(asked, "name")
        host = EVERYWHERE if asked.get("everywhere") is True else "127.0.0.1"
        port = _port(asked)
        if host == EVERYWHERE and not self._tokens.list():
            raise InvalidPool([("everywhere", "other machines need a token to get in; make one first")])
        try:
            check_port(port, host)
        except StorageError as error:
            raise InvalidPool([("port", str(error).partition(";")[0])]) from error
        options = {"pool": pool, "orchestrator": orchestrator, "port": port, "host": host, "name": name}
        process, log = self._spawn([f"--{option}={value}" for option, value in options.items() if value])
        self._await(process, port, log)
        return Reply(f"{name or f'podium-{pool}'} is being served on port {port}.")

    def stop(self, asked: Mapping[str, Any]) -> Reply:
        """Stop the server on a port. Raises StorageError when there is none."""
        stopped = server_record.stop_server(self._home, _port(asked))
        return Reply(f"{stopped.model} is no longer served.")

    def add_token(self, asked: Mapping[str, Any]) -> Reply:
        """A new token, in the reply and nowhere else. Raises AccountError, InvalidPool."""
        name = text(asked, "name").strip()
        return Reply(f"A token for {name}.", more={"name": name, "token": self._tokens.add(name)})

    def remove_token(self, asked: Mapping[str, Any]) -> Reply:
        """Make a token void. Raises AccountError."""
        self._tokens.remove(name := text(asked, "name"))
        return Reply(f"The token {name} opens nothing any more.")

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
        """Return when the server answers. Raises StorageError with what it said when it ended instead."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise StorageError(_last_words(log))
            if any(one.port == port and one.state == "ready" for one in server_record.list_servers(self._home)):
                log.unlink(missing_ok=True)
                return
            time.sleep(0.1)
        raise StorageError(f"the server has not answered for {START_S:.0f} s; it may still come. Its log is {log}")

    def _reap(self) -> None:
        """Let go of servers that have ended, or they stay in the process table as zombies."""
        with self._lock:
            self._started = [process for process in self._started if process.poll() is None]


def serve_routes(desk: ServeDesk) -> APIRouter:
    """The routes, all below /api/serve."""
    router = APIRouter(prefix="/api/serve")

    @router.get("")
    def state() -> JSONResponse:
        return JSONResponse(desk.document())

    for path, command in (
        ("/start", desk.start),
        ("/stop", desk.stop),
        ("/tokens/add", desk.add_token),
        ("/tokens/remove", desk.remove_token),
    ):
        router.add_api_route(path, _answering(command), methods=["POST"])
    return router


def _answering(command: Command) -> Callable[..., JSONResponse]:
    """The command as a route: what a person can mend is an answer, not an error."""

    def answer(asked: dict[str, Any] = Body()) -> JSONResponse:  # noqa: B008  FastAPI's way
        try:
            reply = command(asked)
        except InvalidPool as error:
            reply = Reply(problems=tuple(error.problems))
        except PoolError as error:
            reply = Reply(problems=(("", str(error)),))
        return JSONResponse(reply.document())

    return answer


def _port(asked: Mapping[str, Any]) -> int:
    value = asked.get("port")
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65535:
        raise InvalidPool([("port", "a port is a number from 1 to 65535")])
    return value


def _free_port(taken: set[int]) -> int:
    """The first port from FIRST_PORT on that nobody listens on; the page suggests it."""
    for port in range(FIRST_PORT, FIRST_PORT + 100):
        if port not in taken:
            try:
                check_port(port)
            except StorageError:
                continue
            return port
    return FIRST_PORT


def _last_words(log: Path) -> str:
    """Why a server did not start: its own sentence, or where to read on."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    said = [line.removeprefix("podium: ") for line in lines if line.startswith("podium: ")]
    return said[-1] if said else f"the server ended without a reason; its log is {log}"
