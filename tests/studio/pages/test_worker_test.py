"""*Test* on a worker's card: what is called with which input, what is only probed, and why."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from studio.pages.pool.commands import PoolCommands
from studio.pages.pool.worker_test import describe_input

pytestmark = pytest.mark.medium

MCP_SERVER = Path(__file__).parents[2] / "pool_registry" / "support" / "raw_mcp_server.py"
FUNCTIONS = """
from pathlib import Path

def price_of(item: str) -> float:
    return {"rye loaf": 4.2, "baguette": 2.1}[item]

def order_flour(kg: float) -> str:
    Path(__file__).with_name("ordered").write_text(str(kg))
    return "ordered"
"""


@pytest.fixture
def press_test(runtime, tmp_path):
    """Make a pool of one worker and press Test."""
    (tmp_path / "bakery.py").write_text(FUNCTIONS)

    def run_test(spec: WorkerSpec, **more: object) -> dict:
        runtime.store.pools.save(Pool(name="bakery", workers=(spec,)))
        return PoolCommands(runtime).run("test_worker", {"pool": "bakery", "name": spec.name, **more})["test"]

    return run_test


def make_function(folder: Path, name: str, description: str, parameter: str, kind: str, **more: object) -> WorkerSpec:
    parameters = {"type": "object", "properties": {parameter: {"type": kind}}, "required": [parameter]}
    config = {"target": f"{folder / 'bakery.py'}:{name}", "parameters": parameters}
    return WorkerSpec(name=name, kind="function", description=description, config=config, **more)


def test_a_function_that_may_have_effects_is_probed_and_the_test_says_why(press_test, tmp_path):
    test = press_test(make_function(tmp_path, "order_flour", "Orders flour.", "kg", "number"))
    assert (test["how"], test["status"]) == ("probe", "OK") and "may change something" in test["note"]
    assert not (tmp_path / "ordered").exists()


def test_a_function_without_effects_is_called_with_what_its_description_names(press_test, tmp_path):
    about = "Price of an item in euros, such as 'rye loaf'."
    test = press_test(make_function(tmp_path, "price_of", about, "item", "string", effects="none"))
    assert (test["how"], test["status"], test["text"], test["input"]) == ("call", "OK", "4.2", "rye loaf")
    assert "made up from its description" in test["note"]


def test_inputs_that_are_made_up_and_refused_say_so(press_test, tmp_path):
    about = "Price of an item in euros, such as 'pie'."
    test = press_test(make_function(tmp_path, "price_of", about, "item", "string", effects="none"))
    assert (test["how"], test["status"]) == ("call", "EXEC_ERR") and "may only have refused those" in test["note"]


def test_what_a_person_tried_it_with_is_the_input(press_test, tmp_path):
    spec = make_function(tmp_path, "price_of", "Price of an item.", "item", "string", effects="none")
    without = press_test(spec)
    assert without["how"] == "probe" and "nothing says what its input looks like" in without["note"]
    test = press_test(spec, tried={"item": "baguette"})
    assert (test["how"], test["text"], test["note"]) == ("call", "2.1", "")


def test_a_worker_without_its_key_is_not_called(press_test, monkeypatch):
    monkeypatch.delenv("PODIUM_TEST_NONE", raising=False)
    config = {"base_url": "https://models.example.com/v1", "model": "m", "api_key": "env:PODIUM_TEST_NONE"}
    test = press_test(WorkerSpec(name="model", kind="chat", description="Answers.", config=config))
    assert test["how"] == "probe" and test["status"] == "EXEC_ERR"
    assert "export PODIUM_TEST_NONE" in test["text"] and "no key" in test["note"]


@pytest.mark.parametrize(("effects", "how"), [("auto", "probe"), ("some", "probe"), ("none", "call")])
def test_a_tool_of_an_mcp_server_is_called_where_it_only_reads(press_test, effects, how):
    server = {"name": "raw", "command": sys.executable, "args": ["-I", "-S", str(MCP_SERVER), "ok"]}
    text = {"type": "string", "examples": ["hello"]}
    parameters = {"type": "object", "properties": {"text": text}, "required": ["text"]}
    config = {"server": server, "tool": "echo", "parameters": parameters}
    test = press_test(WorkerSpec(name="echo", kind="mcp", description="Echoes.", config=config, effects=effects))
    assert (test["how"], test["status"]) == (how, "OK"), test


def test_an_own_database_is_called_with_what_it_holds(press_test, tmp_path):
    with closing(sqlite3.connect(tmp_path / "bakery.db")) as database:
        database.executescript("create table orders (item text, pieces int); insert into orders values ('pie', 3);")
    config = {
        "database": str(tmp_path / "bakery.db"),
        "query": "select pieces from orders where item = :item",
        "parameters": {"item": "of an item"},
    }
    test = press_test(WorkerSpec(name="orders", kind="sql", description="Pieces of an item.", config=config))
    assert (test["how"], test["text"], test["input"]) == ("call", "3", "pie")


def test_an_orchestrator_as_a_worker_is_not_run(press_test):
    test = press_test(WorkerSpec(name="inner", kind="orchestrator", description="Answers parts."))
    assert test["how"] == "probe" and "runs an orchestrator" in test["note"]


def test_an_input_is_described_in_words():
    assert describe_input({"city": "Oslo"}) == "Oslo"
    assert describe_input({"city": "Oslo", "kg": 4}) == "city: Oslo, kg: 4"
