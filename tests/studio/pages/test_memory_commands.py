"""The Pool page's commands on the failure memory, and whom it reaches, as the pages say."""

from __future__ import annotations

import time

import pytest

from pool_registry.pool import Limits
from studio.orchestrators.notes import memory_note
from studio.pages.pool.commands import PoolCommands
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of
from trainer.tasks import find_task

__all__ = ["endpoint"]
TASK = find_task("forge", 1, "test", 3)


@pytest.fixture
def commands(runtime, endpoint):
    """A pool with a model that answers wrongly, and its commands."""
    Endpoint.reply = staticmethod(lambda messages: '{"answer": "-1"}')
    name = f"m{time.time_ns()}"
    runtime.store.pools.save(pool_of(endpoint, "boss").model_copy(update={"name": name}))
    commands = PoolCommands(runtime)
    return lambda action, pool=name, **request: commands.run(action, {"pool": pool, **request}), name


def ran(runtime, pool: str) -> str:
    """A failed, graded run."""
    episode = runtime.start_episode(pool, "model:boss:plan", TASK.query)
    wait(lambda: runtime.store.traces.row(episode).correct is not None)
    return episode


def wait(done) -> None:
    deadline = time.monotonic() + 60
    while not done() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert done()


def test_a_failed_run_is_remembered_once_it_is_switched_on_and_shown_to_the_next(runtime, commands):
    send, name = commands
    first = ran(runtime, name)
    assert send("memory")["memory"]["count"] == 0, "off by default"
    told = send("set_memory", memory="rule")
    assert told["memory"]["mode"] == "rule" and told["state"]["pool"]["limits"]["memory"] == "rule"
    second = ran(runtime, name)
    wait(lambda: runtime.store.lessons.count(name) == 1)
    (lesson,) = send("memory")["memory"]["lessons"]
    assert lesson["episode"] == second and "It answered -1, which is wrong" in lesson["sentence"]
    third = runtime.store.traces.episode(ran(runtime, name))
    assert [each.episode for each in third.recalled.lessons] == [second]
    assert lesson["sentence"] in Endpoint.bodies[-1]["messages"][-1]["content"]
    assert first not in [each["episode"] for each in send("memory")["memory"]["lessons"]]


def test_recorded_failures_can_be_learnt_from_and_lessons_be_forgotten(runtime, commands):
    send, name = commands
    ran(runtime, name)
    assert "off" in send("learn")["problems"][0][1]
    send("set_memory", memory="rule")
    assert "1 recorded failure" in send("learn")["message"]
    assert "0 recorded" in send("learn")["message"], "nothing is learnt twice"
    lesson = send("memory")["memory"]["lessons"][0]
    assert send("forget", "starter", lesson=lesson["id"])["message"] == "Forgot 0 lessons", "of another pool"
    assert send("forget", lesson=lesson["id"])["memory"]["count"] == 0
    send("learn")
    assert send("forget")["memory"]["count"] == 0


def test_only_agents_of_the_pool_can_write(commands):
    send, _ = commands
    assert send("set_memory", memory="boss")["memory"]["mode"] == "boss"
    for wrong in ("calc", "nobody"):
        assert "no enabled agent" in send("set_memory", memory=wrong)["problems"][0][1]
    assert send("memory")["memory"]["mode"] == "boss"


def test_saving_the_limits_leaves_the_memory_as_it_is(commands):
    send, _ = commands
    send("set_memory", memory="rule")
    state = send("show")["state"]
    assert "memory" not in state["limits_schema"]["properties"]
    limits = {name: value for name, value in state["pool"]["limits"].items() if name in ("max_rounds", "max_steps")}
    assert send("save_limits", limits=limits)["state"]["pool"]["limits"]["memory"] == "rule"


def test_the_page_says_whom_the_memory_reaches(endpoint):
    pool = pool_of(endpoint, "boss")
    assert memory_note("oracle", pool) == ""
    on = pool.model_copy(update={"limits": Limits(memory="rule")})
    assert "before the query" in memory_note("model:boss:plan", on)
    assert "does not reach" in memory_note("oracle", on)
    assert "bare query" in memory_note("starter-grpo", on)
