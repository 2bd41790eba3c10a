"""Tools of MCP servers, against a raw server that misbehaves on request. test_mcp_sdk.py has the real one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.errors import InvalidPool, WorkerFault
from pool_registry.imports import Offer
from pool_registry.imports.mcp import ToolChange, list_tools, refresh
from pool_registry.mcp_client import connection
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from pool_registry.workers.mcp import McpServer
from tests.pool_registry.support.processes import alive, gone

pytestmark = pytest.mark.medium

RAW = Path(__file__).parents[1] / "support" / "raw_mcp_server.py"
SCHEMAS = {"echo": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}
T = TypeVar("T")


def server(mode: str = "ok", *more: str, **settings: Any) -> McpServer:
    arguments = ("-I", "-S", str(RAW), mode, *more)
    return McpServer(name="raw", command=sys.executable, args=arguments, **settings)


def tool(name: str, of: McpServer | None = None, **settings: Any) -> WorkerSpec:
    config = {
        "server": (of or server()).model_dump(mode="json"),
        "tool": name,
        "parameters": SCHEMAS.get(name, {"type": "object"}),
    }
    settings = {"retries": 0, "timeout_s": 300.0, **settings}
    return WorkerSpec(name=name, kind="mcp", description=name, config=config, **settings)


def in_pool(scene: Callable[[LivePool], Awaitable[T]], *workers: WorkerSpec) -> T:
    async def main() -> T:
        async with live_pool(Pool(name="p", workers=workers)) as live:
            return await scene(live)

    return asyncio.run(main())


def one_call(spec: WorkerSpec, **arguments: Any) -> Observation:
    return in_pool(lambda live: live.call(Action(spec.name, arguments)), spec)


def failure(seen: Observation) -> tuple[str, str]:
    assert seen.status is Status.EXEC_ERR and seen.error is not None, seen
    return seen.error.code, seen.error.message


# Offers


@pytest.mark.parametrize("mode", ["ok", "pages", "noise"])
def test_every_tool_of_every_page_is_offered_also_by_a_server_that_prints(mode):
    found = asyncio.run(list_tools(server(mode)))
    assert [offer.spec.name for offer in found] == [
        f"raw_{name}" for name in ("echo", "pid", "hang", "cancelled", "huge", "crash", "odd")
    ]
    assert found[0].spec.description == "does echo"
    assert found[0].spec.config["parameters"] == SCHEMAS["echo"]
    assert not any(offer.problem for offer in found)


def list_offers(tmp_path: Path, tools: list[Any]) -> list[Offer]:
    state = tmp_path / "tools.json"
    state.write_text(json.dumps(tools))
    return asyncio.run(list_tools(server("ok", str(state))))


def test_one_odd_tool_does_not_lose_its_server(tmp_path):
    tools = [
        {"name": "Get.Weather", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
        {"name": "get_weather", "inputSchema": {"type": "object"}},
        {"name": "fetches", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}},
        {"name": "wrong", "inputSchema": {"type": "object", "properties": {"a": {"type": "strange"}}}},
        {"name": "vast", "inputSchema": {"type": "object", "description": "x" * 200_000}},
        {"name": "日本", "inputSchema": {"type": "object"}, "description": "long " * 1000},
        {"name": "none", "inputSchema": None, "annotations": "many", "icons": 5, "outputSchema": {"type": "dict"}},
        {"name": "training", "inputSchema": {"type": "dict", "properties": {"n": {"type": "Int", "required": True}}}},
        {"name": "openai", "parameters": {"type": "object", "properties": {"x": {"type": "float"}}}},
        {"name": "flat", "inputSchema": {"type": "string"}},
        {"inputSchema": {"type": "object"}},
        "no tool at all",
        {"name": "none", "inputSchema": {"type": "object"}},
        {"name": "later", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
        {"name": "button", "inputSchema": {"type": "object"}, "_meta": {"ui": {"visibility": ["app"]}}},
    ]
    offers = list_offers(tmp_path, tools)
    names = [offer.spec.name.removeprefix("raw_") for offer in offers if not offer.problem]
    assert names[:4] == ["get_weather", "get_weather_2", "fetches", "wrong"]
    assert names[4:] == ["vast", "long_long_long_long", "none", "training", "openai"]
    assert [offer.spec.retries for offer in offers[:2]] == [2, 0]  # only what may be repeated is repeated
    assert offers[7].spec.config["parameters"]["required"] == ["n"]
    assert offers[8].spec.config["mended"] == ["x: the type float was read as number"]
    reasons = {offer.spec.name: offer.problem for offer in offers if offer.problem}
    words = ("an object with named fields", "is empty", "is empty", "same name", "as a task", "server's own page")
    assert all(word in reason for word, reason in zip(words, reasons.values(), strict=True)), reasons
    Pool(name="p", workers=tuple(offer.spec for offer in offers if not offer.problem))


def test_a_mended_tool_can_be_called_and_is_not_taken_for_changed(tmp_path):
    schema = {"type": "dict", "properties": {"text": {"type": "String", "required": True}}}
    tools = [{"name": "echo", "inputSchema": schema}, {"name": "bad", "inputSchema": 7}]
    offer = list_offers(tmp_path, tools)[0]
    assert one_call(offer.spec, text="hello").value == "hello"
    of = server("ok", str(tmp_path / "tools.json"))
    assert asyncio.run(refresh(of, [offer.spec])).changes[0].what == "added"  # of the other one, and nothing else
    assert in_pool(lambda live: live.workers["raw_echo"].worker.check(), offer.spec) == "answers; 2 tools"


def test_an_empty_cursor_ends_the_list(tmp_path):
    assert len(asyncio.run(list_tools(server("empty-cursor")))) == 7


def test_a_foreign_version_of_the_protocol_is_named_with_those_that_are_spoken():
    with pytest.raises(
        WorkerFault, match=r"version 2031-01-01 of the protocol, and Podium speaks 2024-11-05, .*2025-11"
    ):
        asyncio.run(list_tools(server("future")))


@pytest.mark.parametrize(
    ("mode", "code", "said"),
    [
        ("dies", "connection", r"ended \(exit status 3\) and said: cannot open the vault with \[secret\]$"),
        ("mute", "connection", "no handshake within"),
        ("noise-alone", "connection", r"ended \(exit status 0\)\. It writes lines .* no JSON-RPC, such as: null"),
        ("endless-line", "connection", "no handshake within"),
        ("endless", "invalid_response", "more than 100 pages"),
    ],
)
def test_a_server_that_cannot_be_used_says_why(monkeypatch, mode, code, said):
    monkeypatch.setenv("RAW_VAULT_TOKEN", "s3cret-of-the-vault")
    if mode in ("mute", "endless-line"):
        monkeypatch.setattr(connection, "CONNECT_S", 2.0)
    with pytest.raises(WorkerFault, match=said) as caught:
        asyncio.run(list_tools(server(mode, env={"VAULT_TOKEN": "env:RAW_VAULT_TOKEN"})))
    assert caught.value.code == code
    assert "s3cret" not in str(caught.value)


def test_a_program_that_is_not_there_and_a_secret_that_is_not_set_are_told():
    with pytest.raises(WorkerFault, match="no-such-program cannot be started: No such file"):
        asyncio.run(list_tools(McpServer(name="s", command="no-such-program")))
    with pytest.raises(WorkerFault, match="env:NOT_SET_ANYWHERE is not set") as caught:
        asyncio.run(list_tools(server(env={"A_TOKEN": "env:NOT_SET_ANYWHERE"})))
    assert caught.value.code == "auth"


@pytest.mark.parametrize(
    "settings",
    [
        {"name": "Two Words", "command": "npx"},
        {"name": "s", "command": ""},
        {"name": "s", "transport": "http"},
        {"name": "s", "transport": "http", "url": "http://169.254.169.254/mcp"},
        {"name": "s", "transport": "http", "url": "file:///etc/passwd"},
        {"name": "s", "transport": "http", "url": "http://h/mcp", "headers": {"Authorization": "Bearer sk-123"}},
        {"name": "s", "command": "npx", "env": {"API_KEY": "sk-123"}},
        {"name": "s", "command": "npx", "env": {"A=B": "c"}},
        {"name": "s", "command": "np\0x"},
        {"name": "s", "command": "npx", "shell": True},
    ],
)
def test_a_wrong_description_of_a_server_is_refused(settings):
    with pytest.raises(ValueError, match=r".+"):
        McpServer.model_validate(settings)


# Calls


def test_fifty_calls_at_once_share_one_process_and_each_gets_its_own_answer():
    async def scene(live: LivePool) -> list[Observation]:
        echoes = [live.call(Action("echo", {"text": f"no {number}"})) for number in range(50)]
        return await asyncio.gather(*echoes, *[live.call(Action("pid")) for _ in range(5)])

    seen = in_pool(scene, tool("echo", max_concurrency=50), tool("pid"))
    assert [each.value for each in seen[:50]] == [f"no {number}" for number in range(50)]
    assert len({each.value for each in seen[50:]}) == 1


def test_closing_the_pool_ends_the_server():
    async def scene(live: LivePool) -> int:
        return int(str((await live.call(Action("pid"))).value))

    assert asyncio.run(gone(in_pool(scene, tool("pid"))))
    assert asyncio.run(gone(in_pool(scene, tool("pid", of=server("deaf")))))  # also one that minds no signal


def test_two_pools_share_a_server_until_the_second_closes():
    async def main() -> None:
        pool = Pool(name="p", workers=(tool("pid"),))
        async with live_pool(pool) as first:
            async with live_pool(pool) as second:
                pids = {(await live.call(Action("pid"))).value for live in (first, second)}
            assert len(pids) == 1
            assert alive(int(pids.pop()))
            assert (await first.call(Action("pid"))).ok

    asyncio.run(main())


def test_after_a_crash_the_call_in_flight_fails_and_the_next_one_works():
    async def scene(live: LivePool) -> tuple[Observation, Observation, Observation]:
        first = await live.call(Action("pid"))
        hanging = asyncio.ensure_future(live.call(Action("hang")))
        while not (await live.call(Action("cancelled"))).value["hung"]:  # noqa: ASYNC110  until it has arrived
            await asyncio.sleep(0.01)
        os.kill(int(first.value), signal.SIGKILL)
        return first, await hanging, await live.call(Action("pid"))

    first, hung, second = in_pool(scene, tool("pid"), tool("hang"), tool("cancelled"))
    code, message = failure(hung)
    assert code == "connection" and "was ended by SIGKILL" in message
    assert second.ok and second.value != first.value


def test_the_last_words_of_a_server_that_crashes_are_told():
    code, message = failure(one_call(tool("crash")))
    assert (code, "going down: disk on fire" in message) == ("connection", True)


@pytest.mark.parametrize("retries", [0, 1])
def test_a_lost_call_is_sent_again_only_where_retries_say_so(tmp_path, retries):
    starts = tmp_path / "starts"
    code, _ = failure(one_call(tool("crash", of=server(env={"STARTS": str(starts)}), retries=retries)))
    assert code == "connection"
    assert len(starts.read_text().splitlines()) == 1 + retries


def test_a_time_out_tells_the_server_and_leaves_the_session_usable():
    async def scene(live: LivePool) -> tuple[Observation, Observation, Any]:
        before = await live.call(Action("pid"))
        hung = await live.call(Action("hang"))
        after = await live.call(Action("pid"))
        assert before.value == after.value
        return hung, after, (await live.call(Action("cancelled"))).value

    hung, after, told = in_pool(scene, tool("pid"), tool("hang", timeout_s=1.0), tool("cancelled"))
    assert hung.status is Status.TIMEOUT and after.ok
    assert len(told["hung"]) == 1 and told["ids"] == told["hung"]


def test_hostile_answers_end_in_an_error_of_that_call_alone():
    async def scene(live: LivePool) -> list[Observation]:
        return [await live.call(Action(name)) for name in ("huge", "odd", "cancelled")]

    huge, odd, after = in_pool(scene, tool("huge"), tool("odd"), tool("cancelled"))
    assert failure(huge)[0] == "output_too_large"
    assert failure(odd)[0] == "invalid_response"
    assert after.ok


def test_a_tool_that_has_gone_is_not_found_and_the_others_are_named():
    code, message = failure(one_call(tool("nowhere")))
    assert code == "not_found" and "'nowhere'" in message and "echo" in message


def test_a_wrong_schema_in_a_pool_file_is_refused_without_fetching_anything():
    spec = tool("echo")
    config = {**spec.config, "parameters": {"type": "object", "$ref": "http://127.0.0.1:9/schema"}}
    with pytest.raises(InvalidPool, match="not valid JSON Schema"):
        in_pool(lambda live: live.call(Action("echo")), spec.model_copy(update={"config": config}))


# Health


def test_check_and_refresh_tell_what_has_changed(tmp_path):
    state = tmp_path / "tools.json"
    of = server("ok", str(state))
    kept, gone_tool = (
        {"name": "pid", "inputSchema": {"type": "object"}},
        {"name": "hang", "inputSchema": {"type": "object"}},
    )
    echo = {"name": "echo", "inputSchema": SCHEMAS["echo"]}

    async def main() -> None:
        state.write_text(json.dumps([echo, kept, gone_tool]))
        specs = [offer.spec for offer in await list_tools(of)]
        async with live_pool(Pool(name="p", workers=tuple(specs))) as live:
            checks = {name: each.worker for name, each in live.workers.items()}
            assert await checks["raw_echo"].check() == "answers; 3 tools"
            assert (await refresh(of, specs)).changes == ()
            wider = {"type": "object", "properties": {"text": {"type": "string"}, "loud": {"type": "boolean"}}}
            state.write_text(json.dumps([{**echo, "inputSchema": wider}, kept, {**echo, "name": "Shout"}]))
            assert "the arguments of echo have changed (new: loud)" in await checks["raw_echo"].check()
            with pytest.raises(WorkerFault, match="no longer has a tool 'hang'; it has: echo, pid, Shout"):
                await checks["raw_hang"].check()
        found = await refresh(of, specs)
        assert found.changes == (
            ToolChange("changed", "echo", "raw_echo", "new: loud"),
            ToolChange("removed", "hang", "raw_hang"),
            ToolChange("added", "Shout", "raw_shout"),
        )
        assert [spec.name for spec in found.specs] == ["raw_echo", "raw_pid"]
        assert found.specs[0].config["parameters"] == wider
        assert [offer.spec.config["tool"] for offer in found.new] == ["Shout"]

    asyncio.run(main())


def test_refresh_refuses_workers_of_another_server():
    with pytest.raises(InvalidPool, match="no tool of the server"):
        asyncio.run(refresh(server("pages"), [tool("echo")]))


def test_a_pool_that_closes_while_connecting_does_not_wait_for_the_handshake():
    async def scene(live: LivePool) -> Observation:
        return await live.call(Action("pid"))

    seen = in_pool(scene, tool("pid", of=server("mute"), timeout_s=1.0))
    assert seen.status is Status.TIMEOUT


def test_the_server_does_not_outlive_a_loop_that_forgot_to_close(tmp_path):
    async def main() -> int:
        from pool_registry.calls.live_pool import open_live_pool

        live = open_live_pool(Pool(name="p", workers=(tool("pid"),)))
        return int(str((await live.call(Action("pid"))).value))

    assert asyncio.run(gone(asyncio.run(main())))
