"""The official SDK's own server over both transports, and HTTP peers that misbehave."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.errors import WorkerFault
from pool_registry.imports.mcp import list_tools
from pool_registry.mcp_client import connection
from pool_registry.mcp_client.session import borrow, give_back
from pool_registry.pool import Pool, check_pool
from pool_registry.worker import WorkerSpec
from pool_registry.workers.mcp import McpServer
from tests.pool_registry.support.peer import peer
from tests.pool_registry.support.processes import gone

pytestmark = pytest.mark.medium

SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
START_S = 120.0  # the SDK takes 2 s of CPU to import, and a busy machine gives little of it


class Service:
    """The server behind a port, which can be started again."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        command = [sys.executable, str(SERVER), "http", str(self.port)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.kill()


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> McpServer:
    monkeypatch.setattr(connection, "CONNECT_S", START_S)
    monkeypatch.setattr(connection, "LIST_S", START_S)
    monkeypatch.setenv("TESTS_STUDIO_KEY", "of-the-studio")
    if request.param == "stdio":
        env = {"TESTS_TOKEN": "env:TESTS_STUDIO_KEY"}
        return McpServer(name="t", command=sys.executable, args=(str(SERVER),), env=env)
    port = request.getfixturevalue("service").port
    return McpServer(name="t", transport="http", url=f"http://127.0.0.1:{port}/mcp")


def workers(server: McpServer, *names: str, **settings: object) -> tuple[WorkerSpec, ...]:
    config = {"server": server.model_dump(mode="json"), "parameters": {"type": "object"}}
    return tuple(
        WorkerSpec(
            name=name, kind="mcp", description=name, config={**config, "tool": name}, retries=0, timeout_s=START_S
        )
        for name in names
    )


def test_the_official_server_from_the_list_of_tools_to_the_last_process(server):
    """One server start for all of it: the SDK is slow to import."""

    async def main() -> dict[str, Observation]:
        session = await borrow(server)
        try:
            return await scene()
        finally:
            await give_back(server, session)

    async def scene() -> dict[str, Observation]:
        found = {offer.spec.config["tool"]: offer for offer in await list_tools(server)}
        assert not any(offer.problem for offer in found.values())
        assert found["add"].spec.name == "t_add" and found["add"].spec.description == "Add two numbers."
        fields = {"city": {"type": "string"}, "degrees": {"type": "number"}}
        assert found["weather"].spec.config["returns"] == {"type": "object", "properties": fields}
        assert found["add"].spec.config["returns"] == {"type": "integer"}, "the SDK's wrapper comes out, as of values"
        assert found["add"].spec.retries == 2 and found["slow"].spec.retries == 0
        specs = tuple(offer.spec.model_copy(update={"timeout_s": START_S}) for offer in found.values())
        pool = Pool(name="p", workers=specs)
        check_pool(pool)
        async with live_pool(pool) as live:
            seen = {
                "add": await live.call(Action("t_add", {"a": 1, "b": 2})),
                "wrong": await live.call(Action("t_add", {"a": "one"})),
                "weather": await live.call(Action("t_weather", {"city": "Lagos"})),
                "fail": await live.call(Action("t_fail", {})),
                "picture": await live.call(Action("t_picture", {})),
                "flood": await live.call(Action("t_flood", {"chars": 9_000_000})),
                "environment": await live.call(Action("t_environment", {})),
                "daemon": await live.call(Action("t_leave_a_daemon", {})),
            }
            hung = asyncio.ensure_future(live.call(Action("t_slow", {"seconds": 600, "word": "never"})))
            while not (await live.call(Action("t_running"))).value:  # noqa: ASYNC110  it is in another process
                await asyncio.sleep(0.01)
            hung.cancel()
            await asyncio.wait({hung})
            while not (await live.call(Action("t_was_cancelled"))).value:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            echoes = [live.call(Action("t_add", {"a": number, "b": 1})) for number in range(50)]
            assert [each.value for each in await asyncio.gather(*echoes)] == list(range(1, 51))
            assert await live.workers["t_add"].worker.check() == f"answers; {len(found)} tools"
        return seen

    seen = asyncio.run(main())
    assert seen["add"].value == 3
    assert seen["wrong"].status is Status.PARSE_ERR
    assert seen["weather"].value == {"city": "Lagos", "degrees": 21.5}
    assert seen["fail"].error is not None and seen["fail"].error.code == "tool_error"
    assert "no luck today" in seen["fail"].error.message and "of-the-studio" not in seen["fail"].error.message
    assert seen["picture"].value == "[image, image/png, 5,000 bytes: not shown]"
    assert seen["flood"].error is not None and seen["flood"].error.code == "output_too_large"
    if server.transport == "stdio":
        environment = seen["environment"].value
        assert environment["TESTS_TOKEN"] == "[secret]"  # it got the key, and nobody else gets it
        assert "TESTS_STUDIO_KEY" not in environment
        assert asyncio.run(gone(int(seen["daemon"].value)))
    else:
        os.kill(int(seen["daemon"].value), 9)


def test_a_server_started_again_behind_its_url_is_found_again(monkeypatch):
    monkeypatch.setattr(connection, "CONNECT_S", START_S)
    service = Service()
    server = McpServer(name="t", transport="http", url=f"http://127.0.0.1:{service.port}/mcp")

    async def scene(live: LivePool) -> list[Observation]:
        first = await live.call(Action("pid"))
        hanging = asyncio.ensure_future(live.call(Action("slow", {"seconds": 600})))
        while not (await live.call(Action("running"))).value:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.to_thread(service.kill)
        cut, down = await hanging, await live.call(Action("pid"))
        await asyncio.to_thread(service.start)
        return [first, cut, down, await live.call(Action("pid"))]

    async def main() -> list[Observation]:
        async with live_pool(Pool(name="p", workers=workers(server, "pid", "slow", "running"))) as live:
            return await scene(live)

    try:
        first, cut, down, again = asyncio.run(main())
    finally:
        service.kill()
    assert first.ok and again.ok and first.value != again.value
    for failed in (cut, down):
        assert failed.error is not None and failed.error.code == "connection", failed


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("unauthorized", "auth"),
        ("missing", "not_found"),
        ("broken", "server_error"),
        ("html", "invalid_response"),
        ("reset", "connection"),
        ("half", "invalid_response"),
        ("redirect", "invalid_response"),
        ("huge", "invalid_response"),
        ("hang", "connection"),
        ("drip", "invalid_response"),
    ],
)
def test_a_url_that_is_no_mcp_server_says_what_is_wrong(monkeypatch, path, code):
    monkeypatch.setenv("TESTS_STUDIO_KEY", "hush-hush-4711")
    if path == "hang":
        monkeypatch.setattr(connection, "CONNECT_S", 1.0)
    headers = {"Authorization": "Bearer env:TESTS_STUDIO_KEY"}
    with peer() as address, pytest.raises(WorkerFault) as caught:
        asyncio.run(list_tools(McpServer(name="t", transport="http", url=f"{address}/{path}", headers=headers)))
    assert caught.value.code == code, str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_url_where_nobody_listens_and_one_that_leads_inside_are_refused(monkeypatch):
    with pytest.raises(WorkerFault, match="cannot be reached") as caught:
        asyncio.run(list_tools(McpServer(name="t", transport="http", url="http://127.0.0.1:9/mcp")))
    assert caught.value.code == "connection"
    with pytest.raises(ValueError, match="private address"):
        McpServer(name="t", transport="http", url="http://10.0.0.1/mcp")
    assert McpServer(name="t", transport="http", url="http://10.0.0.1/mcp", allow_private=True).reach.private
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("10.0.0.1", 80))])
    with pytest.raises(WorkerFault, match="private address") as caught:  # a name says so only when it is looked up
        asyncio.run(list_tools(McpServer(name="t", transport="http", url="http://tools.example/mcp")))
    assert caught.value.code == "bad_url"
