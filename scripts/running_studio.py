"""A studio for scripts that drive one: started on a free port, and ended with the block."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

START_S = 240.0  # a busy machine is no failure


@contextmanager
def run_studio(home: Path) -> Iterator[str]:
    """A studio on a data folder; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "studio", "--port", str(port), "--no-browser", "--home", str(home)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            with suppress(OSError), urllib.request.urlopen(url, timeout=2):
                break
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)
