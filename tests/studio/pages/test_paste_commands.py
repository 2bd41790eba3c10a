"""The commands behind the box of the Pool page: what a text is, what it offers, and who may look."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path

import pytest

from studio.pages.pool.commands import PoolCommands
from tests.pool_registry.support.openapi_service import make_app, served
from tests.studio.support.model_server import model_server

MCP_SERVER = Path(__file__).parents[2] / "pool_registry" / "support" / "mcp_server.py"
TOOLS = [{"type": "function", "function": {"name": "orders", "parameters": {"type": "object", "properties": {}}}}]


@pytest.fixture
def commands(runtime) -> PoolCommands:
    return PoolCommands(runtime)


@pytest.fixture
def pool(commands) -> str:
    name = f"g{uuid.uuid4().hex[:8]}"
    assert commands.run("create", {"name": name})["ok"]
    return name


def look(commands, pool, text, **settings) -> dict:
    written = text if isinstance(text, str) else json.dumps(text)
    return commands.run("look_pasted", {"pool": pool, "text": written, **settings})


def add(commands, pool, text, **settings) -> list[str]:
    """The names of the workers that come of a text, added and each with a test that is well."""
    reply = look(commands, pool, text, **settings)
    assert reply["ok"], reply["problems"]
    ready = [offer["spec"] for offer in reply["pasted"]["offers"] if not offer["problem"]]
    added = commands.run("add_workers", {"pool": pool, "workers": json.loads(json.dumps(ready, default=dict))})["added"]
    tests = {name: commands.run("test_worker", {"pool": pool, "name": name})["test"] for name in added}
    assert {test["status"] for test in tests.values()} <= {"OK"}, tests
    return added


def test_recognising_a_text_asks_nothing_and_names_what_it_would_do(commands, pool):
    entry = {"command": "no-such-program", "env": {"TOKEN": "abcdefgh-12345678"}}
    reply = commands.run("recognise", {"pool": pool, "text": json.dumps({"mcpServers": {"files": entry}})})
    pasted = reply["pasted"]
    assert pasted["actions"] == ["Starts no-such-program on this machine, with your rights"]
    assert pasted["keys"] == 1 and "abcdefgh" not in json.dumps(reply, default=str)
    refused = commands.run("recognise", {"pool": pool, "text": "hello"})
    assert not refused["ok"] and "Accepted are" in refused["problems"][0][1]


def test_the_models_of_an_address_become_agents(commands, pool):
    with model_server("ollama", ["llama3.2:3b", "nomic-embed-text", "acme/qwen3"]) as port:
        for text in (f"http://127.0.0.1:{port}", f"localhost:{port}/v1/chat/completions", f"127.0.0.1:{port}/api/tags"):
            reply = look(commands, pool, text)
            assert [offer["spec"]["name"] for offer in reply["pasted"]["offers"]] == ["llama3_2_3b", "qwen3"], reply
        assert add(commands, pool, f"http://127.0.0.1:{port}/v1/") == ["llama3_2_3b", "qwen3"]


def test_the_address_of_a_document_or_of_its_service_offers_its_operations(commands, pool):
    with served(make_app()) as address:
        for text in (f"{address}/v1/openapi.json", f"{address}/v1"):
            reply = look(commands, pool, text, key="env:SHOP")
            offers = {offer["spec"]["name"]: offer for offer in reply["pasted"]["offers"]}
            assert offers["get_item"]["spec"]["config"]["base_url"] == f"{address}/v1"
            assert any(offer["spec"]["config"].get("api_key") == "env:SHOP" for offer in offers.values())
        curl = f"curl '{address}/v1/items/7?deep=true'"
        assert add(commands, pool, curl) == ["items"]
        assert add(commands, pool, TOOLS, server=f"{address}/v1") == ["orders"]


@pytest.mark.medium
def test_servers_are_started_and_one_that_fails_leaves_the_others(commands, pool):
    entries = {
        "tests": {"command": sys.executable, "args": [str(MCP_SERVER)]},
        "gone": {"command": "no-such-program"},
    }
    reply = look(commands, pool, {"mcpServers": entries})
    offers = {offer["spec"]["name"]: offer["problem"] for offer in reply["pasted"]["offers"]}
    assert offers["tests_add"] == "" and "no-such-program" in offers["gone"]
    alone = look(commands, pool, {"mcpServers": {"gone": entries["gone"]}})
    assert not alone["ok"] and "no-such-program" in alone["problems"][0][1]


def test_an_address_that_is_none_of_these_says_what_was_asked(commands, pool):
    with served(make_app()) as address:
        reply = look(commands, pool, f"{address}/nothing")
    assert "gives neither an OpenAPI document" in reply["problems"][0][1]
    silent = look(commands, pool, "http://127.0.0.1:9")
    assert "127.0.0.1:9" in silent["problems"][0][1]


def test_a_skill_runs_on_the_model_that_is_chosen(commands, pool):
    with model_server("vllm", ["big"]) as port:
        add(commands, pool, f"http://127.0.0.1:{port}")
        skill = "---\nname: brief\ndescription: Answers briefly.\n---\nAnswer in one word."
        models = commands.run("recognise", {"pool": pool, "text": skill})["models"]
        assert [model["name"] for model in models] == ["big"]
        assert add(commands, pool, skill, model_of="big") == ["brief"]
        workers = commands.run("show", {"pool": pool})["state"]["pool"]["workers"]
        worker = next(worker for worker in workers if worker["name"] == "brief")
        assert (worker["config"]["role"], worker["config"]["model"]) == ("Answer in one word.", "big")


def test_a_key_goes_to_the_keyring_where_a_person_says_so(commands, pool, monkeypatch):
    kept: dict[str, str] = {}
    monkeypatch.setattr("keyring.set_password", lambda _service, name, value: kept.update({name: value}))
    line = "curl https://api.acme.com/v1/x -H 'Authorization: Bearer abcdefgh12345678'"
    [offer] = look(commands, pool, line, to_keyring=True)["pasted"]["offers"]
    assert offer["spec"]["config"]["headers"] == {"Authorization": "Bearer keyring:API_ACME_COM_TOKEN"}
    assert kept == {"API_ACME_COM_TOKEN": "abcdefgh12345678"}
    monkeypatch.setattr("keyring.get_password", lambda _service, _name: "another-key-4711")
    assert "another key" in look(commands, pool, line, to_keyring=True)["problems"][0][1]
    [without] = look(commands, pool, line)["pasted"]["offers"]
    assert without["spec"]["config"]["headers"] == {"Authorization": "Bearer env:API_ACME_COM_TOKEN"}


def test_settings_that_cannot_be_read_or_are_of_no_use_are_refused_at_their_field(commands, pool):
    assert look(commands, pool, TOOLS, key="abc")["problems"][0][0] == "key"
    assert look(commands, pool, TOOLS, env="no pair")["problems"][0][0] == "env"
    assert look(commands, pool, TOOLS, name="mine")["problems"][0][0] == "name"


def test_an_import_of_something_else_names_the_way(commands):
    reply = commands.run("import", {"text": json.dumps({"mcpServers": {"a": {"command": "npx"}}})})
    assert "podium pool add POOL --paste FILE" in reply["problems"][0][1]
    assert "podium_pool" in commands.run("import", {"text": "{}"})["problems"][0][1]
