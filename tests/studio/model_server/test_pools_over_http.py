"""Pools over HTTP: a real server on loopback lists, shows, makes, fills, takes, checks and tries pools for a token."""

from __future__ import annotations

import json

import httpx
import pytest
from typer.testing import CliRunner

from studio.__main__ import app
from tests.studio.support.served import serving

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("pools")


@pytest.fixture(scope="module")
def url(home):
    with serving(home, "--orchestrator", "random_plan", "--pools", "--token", "env:POOLS_TOKEN",
                 POOLS_TOKEN="t0ken-of-a-test") as base:  # fmt: skip
        yield base


@pytest.fixture
def client(url):
    with httpx.Client(base_url=f"{url}/v1", headers={"authorization": "Bearer t0ken-of-a-test"}, timeout=60) as opened:
        yield opened


def test_a_pool_is_made_filled_checked_and_tried(client):
    assert client.post("/pools", json={"name": "crm"}).status_code == 200
    calc = {"name": "calc", "kind": "calculator", "description": "Calculates."}
    added = client.post("/pools/crm/workers", json={"worker": calc}).json()
    assert added["workers"] == ["calc"] and added["notes"] == []
    assert {"name": "crm", "version": 2, "workers": 1} in client.get("/pools").json()["pools"]
    assert client.post("/pools/crm/check").json()["workers"]["calc"]["ok"]
    seen = client.post("/pools/crm/workers/calc/test", json={"arguments": {"expression": "6 * 7"}}).json()
    assert (seen["status"], seen["value"]) == ("OK", "42")
    assert client.post("/pools/crm/workers/calc/test").json()["status"] == "OK"  # its sample


def test_a_pools_file_comes_back_byte_for_byte_as_the_command_writes_it(client, home):
    client.post("/pools", json={"name": "mine", "copy_of": "starter"})
    written = client.get("/pools/mine").text
    shown = CliRunner().invoke(app, ["pool", "show", "mine", "--json", "--home", str(home)]).stdout
    assert written == shown
    assert client.post("/pools/import", params={"name": "yours"}, content=written).status_code == 200
    assert client.get("/pools/yours").text.replace('"name": "yours"', '"name": "mine"', 1) == written


def test_everything_needs_the_token_and_a_server_without_the_option_has_no_pools(client, url):
    assert httpx.get(f"{url}/v1/pools").status_code == 401
    wrong = httpx.post(f"{url}/v1/pools", json={"name": "x"}, headers={"authorization": "Bearer nothing"})
    assert wrong.status_code == 401


def test_problems_are_told_by_field_and_unknown_pools_are_404(client):
    client.post("/pools", json={"name": "wrong"})
    reply = client.post("/pools/wrong/workers", json={"worker": {"name": "A B", "kind": "calculator"}})
    assert reply.status_code == 422
    assert {where for where, _ in reply.json()["error"]["problems"]} >= {"name", "description"}
    assert client.get("/pools/ghost").status_code == 404
    assert client.post("/pools/import", content="{").status_code == 422


def test_what_would_start_a_program_arrives_switched_off_and_is_not_called(client, tmp_path):
    (tmp_path / "tools.py").write_text("def touch(x: float) -> float:\n    return x\n")
    config = {"target": f"{tmp_path / 'tools.py'}:touch", "parameters": {"type": "object", "properties": {}}}
    client.post("/pools", json={"name": "risky"})
    worker = {"name": "touch", "kind": "function", "description": "Touches.", "config": config}
    added = client.post("/pools/risky/workers", json={"worker": worker}).json()
    assert "stays off until a person switches it on" in added["notes"][0]
    assert json.loads(client.get("/pools/risky").text)["workers"][0]["enabled"] is False
    assert client.post("/pools/risky/workers/touch/test", json={"arguments": {}}).status_code == 403
    command = {"source": {"source": "mcp", "server": {"transport": "stdio", "command": "touch /tmp/x"}}}
    refused = client.post("/pools/risky/workers", json=command)
    assert refused.status_code == 422 and "by its URL only" in refused.text


def test_what_an_openapi_document_offers_is_added(client):
    document = {
        "openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "servers": [{"url": "https://api.example.com"}],
        "paths": {"/rates": {"get": {"operationId": "getRates", "summary": "Lists the rates.", "responses": {}}}},
    }  # fmt: skip
    client.post("/pools", json={"name": "apis"})
    source = {"source": {"source": "openapi", "text": json.dumps(document)}}
    assert len(client.post("/pools/apis/workers", json=source).json()["workers"]) == 1
