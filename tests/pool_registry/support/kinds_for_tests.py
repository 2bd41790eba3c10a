"""Throw-away worker kinds that misbehave in every way an adapter can. Registered by tests only."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from pool_registry.errors import BadCall, WorkerFault
from pool_registry.kinds import KINDS, Kind
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec, one_string


class Text(Worker[NoConfig]):
    """Base: one string parameter `text`."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        return one_string("text", "anything")


class Echo(Text):
    async def call(self, call: Call) -> Reply:
        return Reply(call.text("text"))


class Raises(Text):
    async def call(self, call: Call) -> Reply:
        raise KeyError("a bug in an adapter")


class Refuses(Text):
    async def call(self, call: Call) -> Reply:
        raise BadCall("write a number")


class Hangs(Text):
    async def call(self, call: Call) -> Reply:
        await asyncio.sleep(3600)
        raise AssertionError


class Huge(Text):
    async def call(self, call: Call) -> Reply:
        return Reply("x" * 50_000_000)


class NotJson(Text):
    async def call(self, call: Call) -> Reply:
        return Reply({"a": object()})


class Dirty(Text):
    async def call(self, call: Call) -> Reply:
        return Reply("a\x00b\ud800c")


class Flaky(Text):
    """Fails with a retryable fault until it was called `text` times."""

    remote = True
    calls = 0

    async def call(self, call: Call) -> Reply:
        type(self).calls += 1
        if type(self).calls < int(call.text("text")):
            raise WorkerFault("rate_limited", "slow down", retryable=True)
        return Reply(type(self).calls)


class Counts(Text):
    """Returns how many calls were running at once, at most."""

    running = 0
    most = 0

    async def call(self, call: Call) -> Reply:
        Counts.running += 1
        Counts.most = max(Counts.most, Counts.running)
        await asyncio.sleep(0.02)
        Counts.running -= 1
        return Reply(Counts.most)


@pytest.fixture
def odd_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register every class above under its name in lower case."""
    for cls in (Echo, Raises, Refuses, Hangs, Huge, NotJson, Dirty, Flaky, Counts):
        name = cls.__name__.lower()
        monkeypatch.setitem(KINDS.built_in, name, Kind(name, f"{__name__}:{cls.__name__}"))


def spec(kind: str, **changes: Any) -> WorkerSpec:
    return WorkerSpec(**{"name": kind, "kind": kind, "description": "for tests", **changes})
