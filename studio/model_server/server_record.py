"""What is being served from a data folder: one small file for each server, written by the server itself.

The studio only reads them, so it finds servers that were started from a shell, or before it was.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.engine.process_identity import is_alive
from pool_registry.atomic_write import write_atomically
from pool_registry.errors import StorageError
from pool_registry.storage.data_folder import Home


class Served(BaseModel):
    """A running server. `owner` is its process, `running` how many requests it is answering just now."""

    model_config = ConfigDict(frozen=True)

    host: str
    port: int
    pool: str
    version: int
    orchestrator: str
    model: str
    owner: str
    started_at: str
    state: Literal["starting", "ready"]
    running: int = 0
    answered: int = 0

    @property
    def url(self) -> str:
        """The base URL for clients of the OpenAI API, as seen from this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{self.port}/v1"


def folder(home: Home) -> Path:
    place = home.root / "serve"
    place.mkdir(exist_ok=True)
    return place


def write(home: Home, served: Served) -> None:
    """Readers see the old file or the new one, never half of it."""
    path = folder(home) / f"{served.port}.json"
    write_atomically(path, served.model_dump_json())


def remove(home: Home, served: Served) -> None:
    """Take the file away, unless another server has written its own in its place."""
    path = folder(home) / f"{served.port}.json"
    current = _read(path)
    if current is not None and current.owner == served.owner:
        path.unlink(missing_ok=True)


def served(home: Home) -> list[Served]:
    """The servers that run, by port. Files of those that were killed are cleared away."""
    found = []
    for path in folder(home).glob("*.json"):
        one = _read(path)
        if one is not None and is_alive(one.owner):
            found.append(one)
        else:
            path.unlink(missing_ok=True)
    return sorted(found, key=lambda one: one.port)


def stop(home: Home, port: int) -> Served:
    """Ask the server on `port` to stop; it answers what it has begun for a second more. Raises StorageError."""
    for one in served(home):
        if one.port == port:
            os.kill(int(one.owner.partition(":")[0]), signal.SIGTERM)
            return one
    raise StorageError(f"nothing is served on port {port} from this data folder")


def _read(path: Path) -> Served | None:
    try:
        return Served.model_validate_json(path.read_text())
    except (OSError, ValidationError):
        return None
