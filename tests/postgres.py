"""A PostgreSQL server of our own for a test session, where the machine has the programs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def programs() -> Path | None:
    """The folder with initdb and postgres, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    plain = shutil.which("initdb")
    return Path(plain).resolve().parent if plain else None


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of an empty database of a running server. PostgreSQL refuses to run as root: then it is nobody."""
    binaries = programs()
    assert binaries is not None, "ask programs() first"
    user: dict[str, Any] = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="podium-postgres-"))
    if user:
        shutil.chown(folder, "nobody", "nogroup")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"
    make: list[str | Path] = [binaries / "initdb", "-D", data, "-U", "podium", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL, cwd=folder, **user)
    serve: list[str | Path] = [binaries / "postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder]
    server = subprocess.Popen(
        [*serve, "-c", "fsync=off"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, **user
    )
    try:
        _wait(port)
        yield f"postgresql://podium@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)  # without waiting for clients
        server.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(port: int) -> None:
    import psycopg

    for _ in range(200):
        try:
            psycopg.connect(f"postgresql://podium@127.0.0.1:{port}/postgres", connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("PostgreSQL did not start within 20 s")
