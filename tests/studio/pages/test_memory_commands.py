"""The Pool page's commands on the failure memory, and whom it reaches, as the pages say."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest

from orchestrator.failure_memory.lessons import LessonRow
from orchestrator.traces.store import TraceFilter
from pool_registry.pool import Limits
from studio.orchestrators.notes import memory_note
from studio.pages.pool.commands import PoolCommands
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of
from tests.trainer.support.results import row as make_row
from trainer.jobs.queue import JobStore
from trainer.tasks import find_task
from trainer.tasks.practice.stored import find_practice_file

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


def test_a_lesson_is_kept_only_where_the_answer_is_right_with_it(runtime, commands):
    send, name = commands
    send("set_memory", memory="rule")
    ran(runtime, name)
    wait(lambda: runtime.store.lessons.count(name) == 1)
    right = json.dumps({"answer": TASK.expected})
    Endpoint.reply = staticmethod(
        lambda messages: right if "which is wrong" in messages[-1]["content"] else '{"answer": "-1"}'
    )
    reply = send("try_lessons")
    assert "1 right with their lesson" in reply["message"]
    (lesson,) = reply["memory"]["lessons"]
    retry = runtime.store.traces.episode(lesson["retry"])
    assert retry.graded.correct and [row.sentence for row in retry.recalled.lessons] == [lesson["sentence"]]
    assert "0 right" in send("try_lessons")["message"], "what was right is not tried again"

    Endpoint.reply = staticmethod(lambda messages: '{"answer": "-1"}')
    send("forget")
    ran(runtime, name)
    wait(lambda: runtime.store.lessons.count(name) == 1)
    assert send("try_lessons")["memory"]["count"] == 0, "wrong again: forgotten"


def lessons_shown(runtime, episode):
    return [row.sentence for row in runtime.store.traces.episode(episode).recalled.lessons]


def retried(runtime, episode):
    """What the trace of a failed run says of its second try, once it does."""
    wait(lambda: runtime.store.traces.episode(episode).retried is not None)
    return runtime.store.traces.episode(episode).retried


def test_a_failed_run_is_tried_again_at_once_where_the_pool_wants_it(runtime, commands):
    send, name = commands
    assert send("set_memory", memory="rule", retry=True)["memory"]["retry"]
    assert send("set_memory", memory="rule")["memory"]["retry"], "what is not named stays"
    right = json.dumps({"answer": TASK.expected})
    Endpoint.reply = staticmethod(
        lambda messages: right if "which is wrong" in messages[-1]["content"] else '{"answer": "-1"}'
    )
    failed = runtime.start_episode(name, "model:boss:plan", TASK.query, user="ada")
    second = retried(runtime, failed)
    started = runtime.store.traces.episode(second.episode).started
    assert second.correct and (started.retry_of, started.user) == (failed, "ada"), "whoever is forgotten takes it along"
    (lesson,) = send("memory")["memory"]["lessons"]
    assert lesson["retry"] == second.episode and lessons_shown(runtime, second.episode) == [lesson["sentence"]]

    send("forget")
    Endpoint.reply = staticmethod(lambda messages: '{"answer": "-1"}')
    second = retried(runtime, ran(runtime, name))
    assert not second.correct and send("memory")["memory"]["count"] == 0, "wrong again: forgotten"
    assert runtime.store.traces.episode(second.episode).retried is None, "once"


def test_a_second_try_has_what_its_run_left_and_none_is_made_where_that_is_nothing_or_plans_wait(runtime, commands):
    send, name = commands
    send("set_memory", memory="rule", retry=True)
    limits = {"max_tokens": 10, "max_rounds": 1}
    send("save_limits", limits=limits)
    assert send("memory")["memory"]["retry"], "the form of the limits leaves it as it is"
    spent = ran(runtime, name)
    wait(lambda: runtime.store.lessons.count(name) == 1)
    assert runtime.store.traces.episode(spent).usage.tokens >= 10
    send("save_limits", limits={"max_tokens": 10_000, "max_rounds": 1})
    send("save_mode", mode={"name": "review"})
    send("forget")
    ran(runtime, name)
    wait(lambda: runtime.store.lessons.count(name) == 1)
    time.sleep(0.3)
    runtime.store.traces.flush()
    search = TraceFilter(pool=name, limit=10)
    assert [row for row in runtime.store.traces.search(search) if row.source == "evaluation"] == []


def test_what_nothing_grades_or_no_reader_of_lessons_made_is_left_as_it_is(runtime, commands):
    send, name = commands
    now = datetime.now(UTC)
    for episode, query in (("gone", "What is it?"), ("gone-too", TASK.query)):
        row = LessonRow(pool=name, episode=episode, query=query, sentence="S.", written_by="rule", created_at=now)
        runtime.store.lessons.add(row)
    reply = send("try_lessons")
    assert "2 left" in reply["message"] and reply["memory"]["count"] == 2


def test_what_it_brings_is_an_evaluation_of_the_pools_own_held_out_tasks(runtime, commands, monkeypatch):
    send, name = commands
    assert "no lessons yet" in send("measure_memory")["problems"][0][1]
    send("set_memory", memory="rule")
    ran(runtime, name)
    wait(lambda: runtime.store.lessons.count(name) == 1)
    monkeypatch.setenv("PODIUM_HOME", str(runtime.store.home.root))
    assert "no held-out tasks" in send("measure_memory")["problems"][0][1]
    file = find_practice_file(name)
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"query": "How much is 6 * 7?", "answer": 42, "split": "test"}\n')
    monkeypatch.setattr(JobStore, "start", lambda *_: False)  # it waits in the queue
    reply = send("measure_memory", max_cost="0.50")
    assert reply["ok"], reply["problems"]
    gain = reply["memory"]["gain"]
    assert gain["difference"] is None and gain["state"] == "queued"
    recipe = runtime.jobs.recipe(gain["job"])
    assert list(recipe.evaluate.conditions) == ["seen", "memory"] and recipe.evaluate.max_cost == 0.5
    assert list(recipe.evaluate.orchestrators) == ["model:boss:plan"]

    rows = [
        make_row(task, correct=condition == "memory" or task == 0, condition=condition)
        for condition in ("seen", "memory")
        for task in range(4)
    ]
    runtime.jobs.folder(gain["job"]).results.write_text("".join(f"{row.model_dump_json()}\n" for row in rows))
    gain = send("memory")["memory"]["gain"]
    assert (gain["without"], gain["with_lessons"], gain["tasks"]) == (0.25, 1.0, 4) and gain["difference"][0] == 0.75
