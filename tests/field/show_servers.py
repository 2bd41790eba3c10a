"""Cases of MCP servers and of the shell, on the inputs that were tried: a raw server that does what they did."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pool_registry.actions import Observation
from pool_registry.errors import WorkerFault
from pool_registry.imports import Offer
from pool_registry.imports.mcp import list_tools
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from pool_registry.workers.mcp import McpServer
from studio.__main__ import app as podium
from studio.prepare import prepare_store
from studio.publish.plan import make_plan
from studio.publish.request import Publication
from tests.field.shows import Context, shows
from tests.pool_registry.support.recorder import call
from tests.pool_registry.workers.test_mcp import server

PETSTORE = {
    "openapi": "3.0.4", "info": {"title": "Swagger Petstore", "version": "1.0.27"}, "servers": [{"url": "/api/v3"}],
    "components": {"securitySchemes": {
        "api_key": {"type": "apiKey", "name": "api_key", "in": "header"},
        "petstore_auth": {"type": "oauth2", "flows": {"implicit": {"authorizationUrl": "https://a/", "scopes": {}}}},
    }},
    "paths": {
        "/pet/findByStatus": {"get": {"operationId": "findPetsByStatus", "security": [{"petstore_auth": []}]}},
        "/store/inventory": {"get": {"operationId": "getInventory", "security": [{"api_key": []}]}},
    },
}  # fmt: skip


def list_odd_tools(request: Context, tools: list[dict[str, Any]], mode: str = "ok", name: str = "raw") -> list[Offer]:
    state: Path = request.getfixturevalue("tmp_path") / "tools.json"
    state.write_text(json.dumps(tools))
    return asyncio.run(list_tools(server(mode, str(state)).model_copy(update={"name": name})))


def call_odd_tool(request: Context, schema: dict[str, Any], **arguments: Any) -> Observation:
    [offer] = list_odd_tools(request, [{"name": "echo", "inputSchema": schema}])
    return call(offer, arguments)


@shows("Petstore from the shell")
def _show_petstore(request: Context) -> None:
    folder: Path = request.getfixturevalue("tmp_path")
    (folder / "petstore.json").write_text(json.dumps(PETSTORE))
    options = ["--key", "env:PETS", "--server", "http://127.0.0.1:9/api/v3", "--private"]
    for words in (["new", "pets"], ["add", "pets", "--from", f"openapi:{folder / 'petstore.json'}", *options]):
        done = CliRunner().invoke(podium, ["pool", *words, "--home", str(folder / "home")])
        assert done.exit_code == 0, done.output
    shown = CliRunner().invoke(podium, ["pool", "show", "pets", "--json", "--home", str(folder / "home")])
    workers = json.loads(shown.stdout)["workers"]
    assert [worker["name"] for worker in workers] == ["find_pets_by_status", "get_inventory"]
    assert all(worker["config"]["api_key"] == "env:PETS" for worker in workers)


@shows("names from the shell")
def _show_cut_names(request: Context) -> None:
    tool = {"name": "trigger-long-running-operation", "inputSchema": {"type": "object"}}
    [offer] = list_odd_tools(request, [tool], name="mcp-server-sequential-thinking")
    assert offer.spec.name.endswith("trigger-long-running-operation")


@shows("null for an optional argument")
def _show_null(request: Context) -> None:
    properties = {"text": {"type": "string"}, "limit": {"type": "integer", "default": None}}
    seen = call_odd_tool(request, {"type": "object", "properties": properties}, text="tea", limit=None)
    assert seen.ok and seen.value == "tea", seen.error


@shows("a server of an unknown protocol version")
def _show_versions(_: Context) -> None:
    for mode in ("future", "no-version"):
        with pytest.raises(WorkerFault, match=r"of the protocol, and Podium speaks 2024-11-05, .*2025-11"):
            asyncio.run(list_tools(server(mode)))


@shows("tools in pages, noise, an older protocol")
def _show_pages(request: Context) -> None:
    tools = [{"name": f"tool_{number}", "inputSchema": {"type": "object"}} for number in range(150)]
    assert len(list_odd_tools(request, tools, "pages")) == 150
    for mode in ("noise", "older"):
        assert len(list_odd_tools(request, tools[:3], mode)) == 3


@shows("a server that fails by its own fault")
def _show_failing_server(_: Context) -> None:
    """mcp-server-sqlite beside mcp 2: a name that it imports is gone."""
    broken = McpServer(name="sqlite", command=sys.executable, args=("-I", "-c", "from json import FastMCP"))
    with pytest.raises(WorkerFault, match="cannot import name 'FastMCP'"):
        asyncio.run(list_tools(broken))


@shows("visitors' own key")
def _show_own_key(request: Context) -> None:
    folder: Path = request.getfixturevalue("tmp_path")
    store = prepare_store(str(folder / "keys"))
    chat = {"base_url": "https://models.example.com/v1", "model": "m", "api_key": "env:A_KEY"}
    writer = WorkerSpec(name="writer", kind="chat", description="Writes.", config=chat)
    store.pools.save(Pool(name="keyed", workers=(writer,)))
    publication = Publication(pool="keyed", orchestrator="random_plan", repo="tiny", visitors="own_key")
    space = make_plan(store, publication, folder / "space").space("tiny")
    store.close()
    shown = json.loads(space.text("space.json"))
    assert shown["visitors"] == "own_key" and shown["keys"] == [{"name": "A_KEY", "workers": ["writer"]}]
