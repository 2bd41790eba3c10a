"""Work that is cancelled twice within moments, as by two limits that run out together, is still cleaned up after."""

from __future__ import annotations

import asyncio

import pytest

from pool_registry.network import http_client
from pool_registry.network.cancel_once import cancel_once

SEEN_S = 5.0


async def cancel_twice(task: asyncio.Task, turns: int) -> None:
    """Cancel a task, and again so many turns of the event loop later. Waits for its end."""
    task.cancel()
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("turns", range(8))
def test_a_request_that_is_cancelled_twice_closes_its_connection(turns):
    asked, closed = asyncio.Event(), asyncio.Event()

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        closed.set()
        writer.close()

    async def ask_and_cancel() -> None:
        server = await asyncio.start_server(never_answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        task = asyncio.create_task(http_client.ask("GET", url, timeout_s=60))
        await asked.wait()
        await cancel_twice(task, turns)
        try:
            await asyncio.wait_for(closed.wait(), SEEN_S)
        finally:
            server.close()

    asyncio.run(ask_and_cancel())


@pytest.mark.parametrize("turns", range(4))
def test_what_a_cancellation_has_begun_is_not_broken_off(turns):
    ends = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            ends.append("cleaned up")

    async def run() -> None:
        task = asyncio.create_task(cancel_once(work()))
        await asyncio.sleep(0.01)
        await cancel_twice(task, turns)
        assert ends == ["cleaned up"]  # before the caller goes on

    asyncio.run(run())


def test_a_limit_around_it_is_a_timeout_and_an_error_of_the_work_is_raised():
    async def fail() -> None:
        raise ValueError("no")

    async def run() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await cancel_once(asyncio.sleep(60))
        with pytest.raises(ValueError, match="no"):
            await cancel_once(fail())
        assert await cancel_once(asyncio.sleep(0, "slept")) == "slept"

    asyncio.run(run())
