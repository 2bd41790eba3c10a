"""The served pool as an MCP server: the official SDK's client over both transports."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from studio.access.accounts import Tokens
from tests.studio.support.edge_home import home, model
from tests.studio.support.edge_model import TOKENS_IN, TOKENS_OUT
from tests.studio.support.served import PRICE_CALL, ended_row, opened, serving

pytestmark = pytest.mark.medium

__all__ = ["home", "model"]

OFFER = ("--pool", "edge", "--orchestrator", "direct:agent")


@asynccontextmanager
async def over_stdio(home: Path) -> AsyncIterator[Client]:
    arguments = ["-m", "studio", "serve", "--mcp", "--home", str(home), *OFFER]
    server = StdioServerParameters(command=sys.executable, args=arguments)
    async with Client(stdio_client(server), read_timeout_seconds=240) as client:
        yield client


@asynccontextmanager
async def over_http(home: Path) -> AsyncIterator[Client]:
    """With a token, whose name the traces carry."""
    with opened(home) as store:
        token = Tokens(store.engine).add("another-agent")
    with serving(home, *OFFER) as url:
        headers = {"authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=240, trust_env=False) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), read_timeout_seconds=240) as client,
        ):
            yield client


@pytest.mark.parametrize(("connect", "user"), [(over_stdio, ""), (over_http, "another-agent")])
def test_another_agent_asks_sees_progress_and_may_change_its_mind(home, model, connect, user):
    async def main() -> tuple[str, ...]:
        async with connect(home) as client:
            return await scene(client)

    async def scene(client: Client) -> tuple[str, ...]:
        (tool,) = (await client.list_tools()).tools
        limits = ["without_workers", "max_cost", "seen_by", "finalizer"]
        assert tool.name == "ask" and list(tool.input_schema["properties"]) == ["query", *limits]
        assert tool.input_schema["required"] == ["query"]
        told: list[str] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append(f"{done:g}/{total:g} {message}" if total else str(message))

        answered = await client.call_tool("ask", {"query": "say hello"}, progress_callback=progress)
        found = answered.structured_content
        assert not answered.is_error and found["answer"] == "hello"
        assert (found["steps"], found["tokens"], found["cost"]) == (1, TOKENS_IN + TOKENS_OUT, PRICE_CALL)
        assert told[0] == "0/1 Round 1: 1 agent" and told[-1].startswith("1/1 Step 1 agent OK")

        empty = await client.call_tool("ask", {"query": " "})
        assert empty.is_error and "empty" in empty.content[0].text

        asked = f"wait 9{len(user)}"
        call = asyncio.create_task(client.call_tool("ask", {"query": asked}))
        await _until(lambda: asked in model.started)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await _until(lambda: asked in model.hung_up)

        many = await asyncio.gather(*(client.call_tool("ask", {"query": f"say {k}"}) for k in range(20)))
        assert [each.structured_content["answer"] for each in many] == [str(k) for k in range(20)]
        return found["trace"], asked

    trace, asked = asyncio.run(main())
    with opened(home) as store:
        from orchestrator.traces.store import TraceFilter

        assert ended_row(store, trace).user_name == user
        assert [row.state for row in store.traces.search(TraceFilter(text=asked))] == ["stopped"]


async def _until(true) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.05)
