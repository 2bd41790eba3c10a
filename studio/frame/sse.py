"""Server-sent events: one way to write a message, and the one loop that follows something until it is over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse

from orchestrator.errors import DamagedTrace

KEEP_ALIVE = ": keep-alive\n\n"
KEEP_ALIVE_S = 15.0
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def message(document: Any, event: str = "", key: str = "") -> str:
    """Write one message: `event` names it where the stream has names, `key` is what a browser sends back as
    `Last-Event-ID`."""
    head = (f"id: {key}\n" if key else "") + (f"event: {event}\n" if event else "")
    return f"{head}data: {json.dumps(document, ensure_ascii=False)}\n\n"


def stream(messages: AsyncIterator[str], headers: dict[str, str] | None = None) -> StreamingResponse:
    """The response that sends `messages` as they come."""
    return StreamingResponse(messages, media_type="text/event-stream", headers={**HEADERS, **(headers or {})})


async def follow(
    request: Request, poll: Callable[[], Sequence[str]], is_over: Callable[[], bool], every_s: float
) -> AsyncIterator[str]:
    """Send what `poll` returns, every `every_s` seconds, until `is_over` or the viewer has disconnected.

    `poll` runs in a thread. A damaged trace ends the stream with the event `problem`, everything else with `end`.
    """
    quiet_s = 0.0
    while not await request.is_disconnected():
        try:
            messages = await asyncio.to_thread(poll)
        except DamagedTrace as error:
            yield message(str(error), "problem")
            return
        for text in messages:
            yield text
        if is_over():
            yield message({}, "end")
            return
        quiet_s = 0.0 if messages else quiet_s + every_s
        if quiet_s >= KEEP_ALIVE_S:
            quiet_s = 0.0
            yield KEEP_ALIVE
        await asyncio.sleep(every_s)
