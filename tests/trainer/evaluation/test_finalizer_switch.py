"""Evaluations leave a pool's finalizer off, so that figures stay comparable, unless a name switches it on."""

from __future__ import annotations

import asyncio

import pytest
from typer.testing import CliRunner

from orchestrator.engine.events import TaskRef
from orchestrator.policies.labels import label_orchestrator
from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.storage.data_folder import choose_home
from tests.orchestrator.support.endpoint import Endpoint, asked, endpoint, pool_of
from trainer.__main__ import app
from trainer.errors import InvalidRecipe
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.results.summary import Evaluation
from trainer.tasks.task import Task
from trainer.tasks.verifier import ExactText

__all__ = ["endpoint"]
TASKS = [Task(TaskRef("products", 1, "val", k), f"What is {k} times 7?", ExactText("42")) for k in range(3)]


def measure(url: str, name: str) -> Evaluation:
    """What an orchestrator gets where agents say 42, and the finalizer 42 in a sentence."""
    Endpoint.bodies.clear()
    Endpoint.reply = staticmethod(lambda messages: "It is 42." if "final answer" in messages[-1]["content"] else "42")

    async def once() -> Evaluation:
        async with live_pool(pool_of(url, "ada", "writer", finalizer="writer")) as live:
            return await evaluate_orchestrator(name, TASKS, live)

    return asyncio.run(once())


def test_an_evaluation_leaves_the_finalizer_off(endpoint):
    table = measure(endpoint, "direct:ada")
    assert table.mean == 1.0 and {name for name, _ in asked()} == {"ada"}


def test_switched_on_the_final_answers_are_graded_under_a_name_of_their_own(endpoint):
    table = measure(endpoint, "direct:ada+finalizer=on")
    assert table.mean == 0.0, "a sentence is not the exact text"
    assert table.orchestrator == "direct:ada+finalizer=on", "figures of the two never stand under one name"
    assert [name for name, _ in asked()].count("writer") == len(TASKS)
    assert label_orchestrator(table.orchestrator).endswith(", with the finalizer")


@pytest.mark.medium
def test_the_command_switches_it_on(endpoint, tmp_path):
    Endpoint.reply = staticmethod(lambda messages: "It is 42." if "final answer" in messages[-1]["content"] else "42")
    store = open_store(choose_home(str(tmp_path)))
    store.pools.save(pool_of(endpoint, "ada", "writer", finalizer="writer"))
    store.close()
    words = ["evaluate", "--family", "forge", "--tasks", "1", "--pool", "p", "--home", str(tmp_path), "--json"]
    for switch, calls in (([], 0), (["--finalizer"], 1)):
        Endpoint.bodies.clear()
        result = CliRunner().invoke(app, [*words, "--orchestrator", "direct:ada", *switch])
        assert result.exit_code == 0, result.output
        assert [name for name, _ in asked()].count("writer") == calls
    refused = CliRunner().invoke(app, ["evaluate", "own-agents", "--finalizer", "--home", str(tmp_path)])
    assert isinstance(refused.exception, InvalidRecipe) and "write +finalizer=on" in str(refused.exception)
