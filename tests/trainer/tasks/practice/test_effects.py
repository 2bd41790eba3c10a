"""Making tasks calls nothing that may have effects: tools of MCP servers, operations that write, functions."""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap
from pathlib import Path

import pytest
from fastapi import FastAPI

from pool_registry.calls.live_pool import live_pool
from pool_registry.imports.functions import list_functions
from pool_registry.imports.mcp import list_tools
from pool_registry.imports.openapi.operations import list_operations
from pool_registry.pool import Pool
from pool_registry.workers.mcp import McpServer
from tests.pool_registry.support.openapi_service import served
from trainer.tasks.practice.calls import CallBook, collect_calls

pytestmark = pytest.mark.medium

MCP_SERVER = """
    import sys
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    app = MCPServer("shelf")

    def note(name: str) -> None:
        with open(sys.argv[1], "a") as file:
            file.write(name + " ")

    @app.tool(annotations=ToolAnnotations(read_only_hint=True))
    def measure(word: str = "oak") -> int:
        '''Returns the length of a word such as elm, poplar, oak.'''
        note("measure")
        return len(word)

    @app.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
    def erase(word: str) -> int:
        '''Erases a word such as elm, poplar, oak.'''
        note("erase")
        return len(word)

    @app.tool()
    def silent(word: str) -> int:
        '''Returns the length of a word such as elm, poplar, oak. Nobody says what else it does.'''
        note("silent")
        return len(word)

    app.run("stdio")
"""
FUNCTIONS = """
    def send(word: str) -> int:
        '''Sends a word such as elm, poplar, oak.'''
        open({file!r}, "a").write("send ")
        return len(word)
"""


def collect(pool: Pool, *allowed: str) -> CallBook:
    async def call() -> CallBook:
        async with live_pool(pool) as live:
            return await collect_calls(live, {}, frozenset(allowed))

    return asyncio.run(call())


def read_calls(file: Path) -> set[str]:
    return set(file.read_text().split()) if file.exists() else set()


def test_tools_of_a_server_are_called_when_it_says_that_they_only_read(tmp_path):
    calls, program = tmp_path / "calls", tmp_path / "server.py"
    program.write_text(textwrap.dedent(MCP_SERVER))
    server = McpServer(name="shelf", command=sys.executable, args=[str(program), str(calls)])
    specs = {offer.spec.name: offer.spec for offer in asyncio.run(list_tools(server))}
    pool = Pool(name="shelf", workers=tuple(specs.values()))
    names = {name.rpartition("_")[2]: name for name in specs}
    book = collect(pool)
    assert read_calls(calls) <= {"measure"}
    assert {names["erase"], names["silent"]} <= book.reasons.keys() and "--allow" in book.reasons[names["erase"]]
    assert names["silent"] in collect(pool, names["silent"]).calls
    assert "erase" not in read_calls(calls)


def test_operations_that_write_are_not_called_unless_they_are_allowed():
    app, calls = FastAPI(), []

    @app.get("/length/{word}", operation_id="length")
    def length(word: str) -> int:
        """Returns the length of a word such as elm, poplar, oak."""
        calls.append("length")
        return len(word)

    @app.post("/orders/{word}", operation_id="order")
    @app.delete("/orders/{word}", operation_id="cancel")
    def order(word: str) -> int:
        """Orders a word such as elm, poplar, oak."""
        calls.append("order")
        return len(word)

    with served(app) as url:
        offers = list_operations(json.dumps(app.openapi()), base_url=url, allow_private=True)
        pool = Pool(name="shop", workers=tuple(offer.spec for offer in offers))
        book = collect(pool)
        assert set(calls) == {"length"} and book.calls.keys() == {"length"}
        assert {"order", "cancel"} <= book.reasons.keys()
        assert "order" in collect(pool, "order").calls and "order" in calls


def test_functions_are_not_called_unless_they_are_allowed_or_said_to_read_only(tmp_path):
    calls, module = tmp_path / "calls", tmp_path / "tools.py"
    module.write_text(textwrap.dedent(FUNCTIONS.format(file=str(calls))))
    [offer] = asyncio.run(list_functions(str(module)))
    pool = Pool(name="post", workers=(offer.spec,))
    assert "send" in collect(pool).reasons and not calls.exists()
    assert "send" in collect(pool, "send").calls and read_calls(calls) == {"send"}
    calls.unlink()
    reading = pool.model_copy(update={"workers": (offer.spec.model_copy(update={"effects": "none"}),)})
    assert "send" in collect(reading).calls
    writing = pool.model_copy(update={"workers": (offer.spec.model_copy(update={"effects": "some"}),)})
    calls.unlink()
    assert "send" in collect(writing).reasons and not calls.exists()
