"""Commands that make practice tasks: started, followed, stopped, gone on with, one at a time."""

from __future__ import annotations

import json
import threading

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from orchestrator.traces.store import open_store
from studio.pages.train.commands import TrainCommands
from studio.pages.train.routes import routes
from studio.runtime import Runtime
from tests.studio.support.making import wait_for_making
from tests.trainer.support.experts import AUTHOR, Script, build_experts, serve_script
from trainer.tasks.practice.stored import find_practice_file
from trainer.tasks.practice.task_book import TaskBook

pytestmark = pytest.mark.medium


@pytest.fixture
def script() -> Script:
    """Agents who wait with their thirtieth reply until `script.go` is set."""
    script = Script()
    go = threading.Event()

    def wait(_model: str, _text: str) -> None:
        if len(script.calls) >= 30:
            go.wait(60)

    script.before, script.go = wait, go
    return script


@pytest.fixture
def send(runtime, script, monkeypatch):
    with serve_script(script) as url:
        runtime.store.pools.save(build_experts(url))
        monkeypatch.setenv("PODIUM_HOME", str(runtime.store.home.root))
        for place in TaskBook(find_practice_file("experts")).files:
            place.unlink(missing_ok=True)
        page = TrainCommands(runtime)
        yield lambda action, **fields: page.run(action, {"pool": "experts", "count": 12, "author": AUTHOR, **fields})
        script.go.set()
        runtime.stop_making("experts")


def test_a_start_returns_at_once_and_a_second_one_gets_a_sentence(send, script):
    making = send("make_tasks")["making"]
    assert (making["state"], making["outcome"], making["can_go_on"]) == ("running", "", False)
    refused = send("make_tasks")
    assert not refused["ok"] and "being made already: wait" in refused["problems"][0][1]
    script.go.set()
    assert wait_for_making("experts").state == "done"


def test_a_stop_keeps_what_is_done_and_go_on_asks_nothing_again(send, script):
    send("make_tasks", max_cost=None)
    while len(script.calls) < 30:
        threading.Event().wait(0.02)
    assert send("stop_making")["ok"]
    script.go.set()
    stopped = wait_for_making("experts")
    assert stopped.state == "stopped" and stopped.can_go_on and "you stopped it" in stopped.outcome
    before = {call for call in script.calls if call[0] != AUTHOR}
    script.calls.clear()
    assert send("go_on_making")["making"]["state"] == "running"
    assert wait_for_making("experts").state == "done" and not before & set(script.calls)
    refused = send("go_on_making")
    assert not refused["ok"] and "nothing to go on with" in refused["problems"][0][1]


@pytest.mark.parametrize(("action", "sentence"), [("stop_making", "Ctrl-C"), ("go_on_making", "nothing to go on with")])
def test_where_nothing_is_made_a_sentence_says_so(send, action, sentence):
    reply = send(action)
    assert not reply["ok"] and sentence in reply["problems"][0][1]


def test_a_studio_that_ends_leaves_what_another_goes_on_with(send, script, runtime):
    ending = Runtime(open_store(runtime.store.home))
    assert TrainCommands(ending).run("make_tasks", {"pool": "experts", "count": 12, "author": AUTHOR})["ok"]
    while len(script.calls) < 30:
        threading.Event().wait(0.02)
    assert "being made already" in send("make_tasks")["problems"][0][1], "they know of each other"
    threading.Timer(0.5, script.go.set).start()
    ending.close()
    assert wait_for_making("experts").can_go_on
    assert send("go_on_making")["ok"] and wait_for_making("experts").state == "done"


def test_the_stream_says_how_far_it_is_until_it_has_ended(send, script, runtime):
    app = FastAPI()
    app.include_router(routes(runtime))
    script.go.set()
    send("make_tasks")
    text = TestClient(app).get("/api/tasks/experts/making").text
    messages = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: {")]
    assert messages[-1] == {} and (messages[-2]["state"], messages[-2]["kept"]) == ("done", 12)
    assert TestClient(app).get("/api/tasks/nowhere/making").text.startswith("event: end")
