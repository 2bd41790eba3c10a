"""An application served within the test's process, and how long its event loop was held up."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from tests.studio.support.served import free_port

BEAT_S = 0.002


@dataclass(slots=True)
class WatchedServer:
    """Where it is served, and the longest hold since it was last set to 0: seconds of this process's CPUs between two
    beats of its loop. Other processes on the machine add nothing to them, threads that hold Python's lock do."""

    url: str
    longest_hold_s: float = 0.0

    async def watch(self) -> None:
        last = time.process_time()
        while True:
            await asyncio.sleep(BEAT_S)
            now = time.process_time()
            self.longest_hold_s = max(self.longest_hold_s, now - last)
            last = now


@contextmanager
def watched(app: ASGIApp) -> Iterator[WatchedServer]:
    """Serve until the end of the block."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", timeout_graceful_shutdown=1))
    running = WatchedServer(f"http://127.0.0.1:{port}")

    async def serve() -> None:
        beats = asyncio.create_task(running.watch())
        await server.serve()
        beats.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beats

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    deadline = time.monotonic() + 120
    while not server.started:
        assert thread.is_alive() and time.monotonic() < deadline, "it does not start"
        time.sleep(0.02)
    try:
        yield running
    finally:
        server.should_exit = True
        thread.join(timeout=30)
