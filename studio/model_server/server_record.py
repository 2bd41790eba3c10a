"""The servers of a data folder: each running server keeps one small file there.

The studio only reads these files, so it also finds servers that were started from a shell or before the studio.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.engine.process_identity import is_alive, signal_process
from pool_registry.atomic_write import write_atomically
from pool_registry.errors import StorageError
from pool_registry.storage.data_folder import Home


class ServerRecord(BaseModel):
    """A running server. `owner` is its process, `running` the number of requests that it is answering."""

    model_config = ConfigDict(frozen=True)

    host: str
    port: int
    pool: str
    version: int
    orchestrator: str
    model: str
    deployment: str = ""
    owner: str
    started_at: str
    state: Literal["starting", "ready"]
    origins: list[str] = []
    recorded: bool = True
    running: int = 0
    answered: int = 0
    failed: int = 0

    @property
    def url(self) -> str:
        """The base URL for clients of the OpenAI API, as seen from this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{self.port}/v1"


def record_folder(home: Home) -> Path:
    """The folder of the records; created when it is missing."""
    folder = home.root / "serve"
    folder.mkdir(exist_ok=True)
    return folder


def write_record(home: Home, server: ServerRecord) -> None:
    """Write a server's file, replacing the one before."""
    write_atomically(record_folder(home) / f"{server.port}.json", server.model_dump_json())


def remove_record(home: Home, server: ServerRecord) -> None:
    """Remove a server's file, unless another server on the same port has replaced it."""
    path = record_folder(home) / f"{server.port}.json"
    current = _read_record(path)
    if current is not None and current.owner == server.owner:
        path.unlink(missing_ok=True)


def list_servers(home: Home) -> list[ServerRecord]:
    """List the running servers by port. Files of killed servers are removed."""
    servers = []
    for path in record_folder(home).glob("*.json"):
        server = _read_record(path)
        if server is not None and is_alive(server.owner, home.root):
            servers.append(server)
        else:
            path.unlink(missing_ok=True)
    return sorted(servers, key=lambda server: server.port)


def stop_server(home: Home, port: int) -> ServerRecord:
    """Ask the server on `port` to stop; requests in flight get one more second. Raises StorageError."""
    for server in list_servers(home):
        if server.port == port:
            if signal_process(server.owner, signal.SIGTERM):
                return server
            raise StorageError(
                f"what is served on port {port} runs in another container or on another host; stop it there"
            )
    raise StorageError(f"nothing is served on port {port} from this data folder")


def _read_record(path: Path) -> ServerRecord | None:
    try:
        return ServerRecord.model_validate_json(path.read_text())
    except (OSError, ValidationError):
        return None
