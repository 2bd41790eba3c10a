"""A server that misbehaves in every way, against every kind that calls one: a status, in time, in little memory."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
import stamina

from orchestrator.engine.events import StepEnded, dump_event
from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.kinds import KINDS
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from tests.pool_registry.support.peer import peer

pytestmark = pytest.mark.medium

# What the chat kind makes of each behaviour; the other kinds, who expect no chat completion, may find some fine.
FAULTS = {
    "unauthorized": "auth", "missing": "not_found", "broken": "server_error", "busy": "rate_limited",
    "context": "context_overflow", "filtered": "content_filtered", "redirect": "invalid_response",
    "html": "invalid_response", "nan": "invalid_response", "utf8": "invalid_response", "deep": "invalid_response",
    "nochoices": "invalid_response", "null": "invalid_response", "cut": "invalid_response",
    "empty": "invalid_response", "half": "invalid_response", "no_answer": "invalid_response",
    "not_http": "invalid_response", "bad_length": "invalid_response", "error_within": "server_error",
    "refused": "content_filtered", "stopped": "content_filtered", "thought": "invalid_response",
}  # fmt: skip
HANGING = ("hang", "slow_headers", "slow_body", "drip")
FLOODS = ("huge", "endless_chunks", "endless_headers", "endless_hints", "gzip_bomb")
FINE = {"ok": "four", "parts": "four", "reasoned": "four", "surrogate": "a\ufffdb\ufffdc", "liar": "four"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with peer() as found:
        yield found


@pytest.fixture(autouse=True)
def quick_retries():
    with stamina.set_testing(True, attempts=10, cap=True):
        yield


def chat(url: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"base_url": url, "model": "tiny"}, {"instruction": "2+2?"}


def openapi(url: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"base_url": url, "method": "GET", "path": "/x"}, {}


def http(url: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"url": url}, {}


def web_fetch(url: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"allow_private": True}, {"url": url}


def mcp(url: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"server": {"name": "s", "transport": "http", "url": url}, "tool": "t"}, {}


def space(url: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"space": url}, {"inputs": []}


ADAPTERS = {each.__name__: each for each in (chat, openapi, http, web_fetch, space, mcp) if each.__name__ in KINDS}


def call(kind: str, urls: list[str], timeout_s: float) -> list[Observation]:
    """One call to each URL, all at once, each by a worker of its own."""

    async def all_of_them() -> list[Observation]:
        made = [ADAPTERS[kind](url) for url in urls]
        workers = tuple(
            WorkerSpec(
                name=f"w{k}", kind=kind, description="d", config=config, timeout_s=timeout_s, retries=0
            )
            for k, (config, _) in enumerate(made)
        )  # fmt: skip
        async with live_pool(Pool(name="p", workers=workers)) as pool:
            calls = (pool.call(Action(f"w{k}", arguments)) for k, (_, arguments) in enumerate(made))
            return await asyncio.gather(*calls)

    return asyncio.run(all_of_them())


def test_chat_gives_each_fault_its_code(address):
    seen = call("chat", [f"{address}/{name}" for name in FAULTS], 20.0)
    assert {name: each.error.code for name, each in zip(FAULTS, seen, strict=True) if each.error} == FAULTS


def test_chat_reads_what_can_be_read(address):
    seen = call("chat", [f"{address}/{name}" for name in FINE], 20.0)
    assert {name: each.value for name, each in zip(FINE, seen, strict=True)} == FINE
    assert all(0 <= each.usage.tokens < 10_000 for each in seen)


@pytest.mark.parametrize("kind", ADAPTERS)
def test_every_kind_ends_in_a_status_that_can_be_recorded(address, kind):
    names = [*FAULTS, *FINE, "reset"]
    for name, seen in zip(names, call(kind, [f"{address}/{name}" for name in names], 20.0), strict=True):
        assert seen.ok == (seen.error is None), name
        assert seen.ok or (seen.value is None and seen.error.message), name
        assert seen.error is None or seen.error.code != "worker_raised", (name, seen.error)
        assert dump_event(StepEnded(1, seen, 0.0)).encode(), name


@pytest.mark.parametrize("kind", ADAPTERS)
def test_who_hangs_or_drips_is_timed_out(address, kind):
    started = time.monotonic()
    for name, seen in zip(HANGING, call(kind, [f"{address}/{name}" for name in HANGING], 0.5), strict=True):
        early = kind == "mcp" and seen.error.code == "invalid_response"  # no MCP server, as its headers say already
        assert seen.status is Status.TIMEOUT or early, (name, seen.error)
        assert seen.latency_s < 10, name  # 0.5 s and slack
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("kind", ADAPTERS)
def test_a_flood_is_cut_off_in_little_memory(address, kind):
    memory = psutil.Process().memory_info().rss
    for name in FLOODS:
        (seen,) = call(kind, [f"{address}/{name}"], 3.0)
        assert not seen.ok and seen.latency_s < 15, name
        assert seen.error.code in ("output_too_large", "invalid_response", "connection", "timeout"), (name, seen.error)
    assert psutil.Process().memory_info().rss - memory < 100e6


@pytest.mark.parametrize("kind", ADAPTERS)
def test_a_private_address_that_was_not_named_outright_is_told_with_the_switch(address, kind):
    url = "http://10.255.255.1/x"
    config, arguments = ADAPTERS[kind](url)
    config.pop("allow_private", None)
    spec = WorkerSpec(name="w", kind=kind, description="d", config=config, timeout_s=5, retries=0)

    async def once() -> Observation:
        async with live_pool(Pool(name="p", workers=(spec,))) as pool:
            return await pool.call(Action("w", arguments))

    try:
        said = asyncio.run(once()).error.message
    except InvalidPool as error:  # some kinds tell it before the first call
        said = str(error)
    assert "allow_private" in said


def test_a_fault_that_echoes_the_key_does_not_leak_it(address, monkeypatch):
    monkeypatch.setenv("PODIUM_TEST_KEY", "sk-planted-4711-secret")
    config = {"base_url": f"{address}/unauthorized", "model": "tiny", "api_key": "env:PODIUM_TEST_KEY"}
    spec = WorkerSpec(name="w", kind="chat", description="d", config=config)

    async def once() -> Observation:
        async with live_pool(Pool(name="p", workers=(spec,))) as pool:
            return await pool.call(Action("w", {"instruction": "x"}))

    seen = asyncio.run(once())
    assert "[secret]" in seen.error.message and "4711" not in str(dataclasses.asdict(seen))
