"""Cases of MCP servers and of the shell, on the inputs that were tried: a raw server that does what they did."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pool_registry.actions import Observation
from pool_registry.errors import WorkerFault
from pool_registry.imports import Offer
from pool_registry.imports.mcp import list_tools
from pool_registry.mcp_client import connection
from pool_registry.pasted.base import ImportSettings
from pool_registry.pasted.table import recognise
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
from tests.pool_registry.workers.test_mcp_sdk import SERVER, START_S

OPERATIONS = 1_222
MOST_S = 15.0  # of this process, which the issue that reported it allows for so many
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


@shows("GitHub, added to a pool")
def _show_a_thousand_operations(request: Context) -> None:
    """As many operations as GitHub's document has, through the shell."""
    folder: Path = request.getfixturevalue("tmp_path")
    paths = {
        f"/repos/{{owner}}/{{repo}}/things/{number}": {
            "get": {
                "operationId": f"things/get-{number}",
                "summary": f"Get thing {number} of a repository",
                "parameters": [{"name": name, "in": "path", "required": True} for name in ("owner", "repo")],
            }
        }
        for number in range(OPERATIONS)
    }
    document = {"openapi": "3.0.3", "info": {"title": "GitHub", "version": "1"}, "paths": paths}
    (folder / "github.json").write_text(json.dumps(document | {"servers": [{"url": "https://api.example.com"}]}))
    run(folder, "new", "hub")
    begun = time.process_time()
    run(folder, "add", "hub", "--from", f"openapi:{folder / 'github.json'}")
    assert time.process_time() - begun < MOST_S
    workers = json.loads(run(folder, "show", "hub", "--json"))["workers"]
    assert len({worker["name"] for worker in workers}) == OPERATIONS


@shows("MCP servers of the official package")
def _show_official_server(request: Context) -> None:
    """Pasted as clients have it in their settings, and called."""
    request.getfixturevalue("monkeypatch").setattr(connection, "CONNECT_S", START_S)
    entry = {"command": sys.executable, "args": [str(SERVER)], "env": {"LEVEL": "1"}}
    [source] = recognise(json.dumps({"mcpServers": {"t": entry}}), ImportSettings()).recognition.sources
    offers = {offer.spec.name: offer for offer in asyncio.run(source.list_offers())}
    assert not any(offer.problem for offer in offers.values())
    slow = offers["t_add"].spec.model_copy(update={"timeout_s": START_S})
    seen = call(Offer(slow), {"a": 1, "b": 2})
    assert seen.ok and seen.value == 3, seen.error


def run(folder: Path, *words: str) -> str:
    """What a command of `podium pool` prints."""
    done = CliRunner().invoke(podium, ["pool", *words, "--home", str(folder / "home")])
    assert done.exit_code == 0, done.output
    return done.stdout


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
