"""Server-sent events: how a message is written, and when following ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import cast

import pytest
from fastapi import Request

from orchestrator.errors import DamagedTrace
from studio.frame import sse


class Viewer:
    """A request whose viewer disconnects after a number of polls."""

    def __init__(self, polls: int = 100) -> None:
        self.polls = polls

    async def is_disconnected(self) -> bool:
        self.polls -= 1
        return self.polls < 0


def collect(
    poll: Callable[[], list[str]], is_over: Callable[[], bool], polls: int = 100, every_s: float = 0.0
) -> list[str]:
    async def run() -> list[str]:
        return [text async for text in sse.follow(cast(Request, Viewer(polls)), poll, is_over, every_s)]

    return asyncio.run(run())


def test_a_message_has_its_id_and_event_before_its_data():
    assert sse.message({"a": "ü\n"}) == 'data: {"a": "ü\\n"}\n\n'
    assert sse.message([1], "rows", "7:9") == "id: 7:9\nevent: rows\ndata: [1]\n\n"


def test_following_ends_with_the_event_end():
    batches = [["a"], [], ["b", "c"]]
    assert collect(lambda: batches.pop(0), lambda: not batches) == ["a", "b", "c", sse.message({}, "end")]


def test_a_damaged_trace_ends_it_with_the_reason():
    def poll() -> list[str]:
        raise DamagedTrace("the trace is damaged")

    (text,) = collect(poll, lambda: False)
    assert text.startswith("event: problem\n") and "damaged" in json.loads(text.split("data: ")[1])


def test_a_viewer_that_has_gone_is_not_polled_again():
    polled = []
    assert collect(lambda: polled.append(1) or [], lambda: False, polls=3) == []
    assert len(polled) == 3


def test_a_quiet_stream_is_kept_alive(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sse, "KEEP_ALIVE_S", 0.02)
    assert collect(list, lambda: False, polls=5, every_s=0.01) == [sse.KEEP_ALIVE] * 2
