"""The gallery's commands: one click adds, a second tests; a key is only ever a reference."""

from __future__ import annotations

import json
import sqlite3
import uuid

import pytest

from pool_registry.gallery.discover_servers import PORTS_VARIABLE
from pool_registry.gallery.templates import templates
from studio.pages.pool.commands import PoolCommands
from tests.studio.support.model_server import model_server


@pytest.fixture
def commands(runtime) -> PoolCommands:
    return PoolCommands(runtime)


@pytest.fixture
def pool(commands) -> str:
    name = f"g{uuid.uuid4().hex[:8]}"
    assert commands.run("create", {"name": name})["ok"]
    return name


def added(commands, pool, template, **more) -> dict:
    """The worker that a click on a template adds."""
    reply = commands.run("add_template", {"pool": pool, "template": template, **more})
    assert reply["ok"], reply["problems"]
    return next(each for each in reply["state"]["pool"]["workers"] if each["name"] == reply["added"])


NEEDS_NOTHING = [each.id for each in templates().values() if each.spec and each.needs in ("nothing", "a model")]


@pytest.mark.parametrize("template", NEEDS_NOTHING)
def test_one_click_adds_what_needs_nothing(commands, pool, template):
    first = added(commands, pool, template)
    again = added(commands, pool, template)
    assert first["name"] != again["name"] and first["config"] == again["config"]
    assert first["enabled"] and "{" not in first["description"].replace("{model}", "{")


@pytest.mark.parametrize("template", ["calculator", "units", "calendar"])
def test_a_second_click_tests_it_with_its_own_sample(commands, pool, template):
    check_own_sample(commands, pool, added(commands, pool, template)["name"])


@pytest.mark.parametrize("name", ["clock", "elements", "great_circle"])
def test_a_worker_that_ships_is_tested_with_its_own_sample(commands, name):
    check_own_sample(commands, "starter", name)


def check_own_sample(commands, pool, name) -> None:
    test = commands.run("test_worker", {"pool": pool, "name": name})["test"]
    assert (test["how"], test["status"]) == ("call", "OK"), test
    assert test["text"] and test["input"] and test["latency_s"] > 0
    workers = commands.run("show", {"pool": pool})["state"]["pool"]["workers"]
    assert next(worker for worker in workers if worker["name"] == name)["light"]["light"] == "ok"


def test_a_click_on_what_needs_a_key_asks_for_it_and_adds_nothing(commands, pool, monkeypatch):
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    reply = commands.run("add_template", {"pool": pool, "template": "mistral"})
    assert "state" not in reply and [field for field, _ in reply["needs"]] == ["api_key"]
    assert "export MISTRAL_API_KEY" in reply["needs"][0][1]
    values = {"api_key": "keyring:MISTRAL", "model": "mistral-small-latest"}
    worker = added(commands, pool, "mistral", values=values)
    assert worker["config"]["api_key"] == "keyring:MISTRAL" and "mistral-small-latest" in worker["description"]


def test_where_the_usual_variable_is_set_a_provider_needs_one_click_only(commands, pool, monkeypatch):
    monkeypatch.setenv("MISTRAL_API_KEY", "planted-4711-secret")
    reply = commands.run("add_template", {"pool": pool, "template": "mistral"})
    assert reply["added"] == "mistral" and "planted-4711-secret" not in json.dumps(reply)


def test_a_pasted_key_is_refused_at_its_field_and_not_repeated(commands, pool):
    values = {"api_key": "sk-planted-4711-secret", "model": "m"}
    reply = commands.run("add_template", {"pool": pool, "template": "openai", "values": values})
    assert reply["problems"][0][0] == "api_key" and "planted-4711" not in json.dumps(reply)


@pytest.mark.parametrize(
    ("reference", "resolves", "said"),
    [
        ("env:PODIUM_TEST_KEY", True, "is set on this machine"),
        ("env:PODIUM_TEST_NONE", False, "export PODIUM_TEST_NONE="),
        ("sk-planted-4711-secret", False, "not kept"),
        ("env:", False, ""),
        ("", False, ""),
    ],
)
def test_a_reference_is_judged_without_showing_what_is_behind_it(commands, monkeypatch, reference, resolves, said):
    monkeypatch.setenv("PODIUM_TEST_KEY", "planted-4711-secret")
    reply = commands.run("check_reference", {"reference": reference})
    assert reply["resolves"] is resolves and said in reply["sentence"]
    assert "planted-4711" not in json.dumps(reply)


def test_role_agents_run_on_a_model_of_the_pool(commands, pool):
    assert added(commands, pool, "planner")["kind"] == "local_model"  # the pool has none: the one that ships
    values = {"base_url": "http://127.0.0.1:9/v1", "model": "big"}
    base = added(commands, pool, "compatible", values=values)
    critic = added(commands, pool, "critic", model_of=base["name"])
    assert critic["config"]["model"] == "big" and critic["config"]["base_url"] == values["base_url"]
    assert critic["config"]["role"].startswith("You are the critic") and critic["name"] == "critic"
    listed = commands.run("gallery", {"pool": pool})["models"]
    assert listed[0]["name"] == base["name"]  # endpoints first
    added(commands, pool, "calculator")
    refused = commands.run("add_template", {"pool": pool, "template": "coder", "model_of": "calculator"})
    assert refused["problems"][0][0] == "model_of"


def test_servers_on_this_machine_are_found_and_their_models_answer(commands, pool, monkeypatch):
    with model_server("vllm", ["acme/small-1", "acme/embed-1"]) as port:
        monkeypatch.setenv(PORTS_VARIABLE, str(port))
        monkeypatch.setattr("pool_registry.gallery.discover_servers.PROBE_S", 60.0)  # a busy machine is no failure
        found = commands.run("discover", {})["found"]
        base_url = f"http://127.0.0.1:{port}/v1"
        server = next(each for each in found if each["base_url"] == base_url)
        assert (server["server"], tuple(server["models"])) == ("vLLM", ("acme/small-1",))
        request = {"pool": pool, "base_url": base_url, "model": "acme/small-1", "server": "vLLM"}
        reply = commands.run("add_found", {**request})
        assert reply["added"] == "small-1"
        test = commands.run("test_worker", {"pool": pool, "name": "small-1"})["test"]
        assert (test["status"], test["text"]) == ("OK", "hello")
        assert commands.run("list_models", {"base_url": base_url})["models"][0] == "acme/small-1"


def test_a_model_with_a_long_name_is_described_in_short_and_an_address_that_is_none_is_refused(commands, pool):
    found = {"pool": pool, "model": "a" * 30_000, "base_url": "http://127.0.0.1:9"}
    assert commands.run("add_found", found)["ok"]
    refused = commands.run("add_found", {**found, "base_url": "http://["})
    assert refused["problems"] == (("base_url", "this is not a URL: Invalid IPv6 URL"),)


def test_two_versions_are_compared_field_by_field(commands, pool):
    added(commands, pool, "calculator")
    added(commands, pool, "units")
    commands.run("set_enabled", {"pool": pool, "name": "calculator", "enabled": False})
    commands.run("remove_worker", {"pool": pool, "name": "units"})
    diff = commands.run("compare", {"pool": pool, "before": 3, "after": 5})["diff"]
    by_name = {each["name"]: each for each in diff["workers"]}
    assert by_name["units"]["change"] == "removed"
    assert by_name["calculator"]["fields"] == [{"field": "enabled", "before": "true", "after": "false"}]
    assert commands.run("compare", {"pool": pool, "before": 1, "after": 2})["diff"]["workers"][0]["change"] == "added"
    assert commands.run("compare", {"pool": pool, "before": 2, "after": 2})["diff"] == {
        "workers": [],
        "pool": [],
    }


def test_an_own_database_is_described_by_its_tables_and_tried_on_them(commands, pool, tmp_path):
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as database:
        database.execute("create table orders (id integer, product text)")
        database.execute("insert into orders values (1, 'tea')")
    database.close()
    worker = added(commands, pool, "sql", values={"database": str(path)})
    assert "orders(id, product)" in worker["description"]
    tried = commands.run("try_worker", {"pool": pool, "worker": worker})
    assert "orders" in tried["sample"]["query"]
    test = commands.run("test_worker", {"pool": pool, "name": worker["name"]})["test"]
    assert test["how"] == "call" and test["status"] == "OK"
