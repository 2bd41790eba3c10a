"""Waits for a coroutine that is cancelled at most once, and has then ended.

Two limits that run out together cancel a task twice. The second cancellation would break off what the first one has
begun: httpcore then leaves the connection open for ever, and the peer goes on working on a request that nobody awaits.
anyio's shield, behind which httpcore closes a connection, does not hold off `Task.cancel`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def cancel_once(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` in a task of its own.

    When the caller is cancelled, however often, `work` is cancelled once, and this raises CancelledError after it has
    ended.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:  # the one that is raised below stands for all
                continue
        if not task.cancelled():
            task.exception()  # now it counts as seen, and asyncio does not warn of it
        raise
    return task.result()
