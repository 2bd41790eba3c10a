"""What-if through the studio's routes: the editor, its check, its start, and what is told of the result."""

from __future__ import annotations

import json
import time

import pytest

from trainer.tasks import find_task

TASK = find_task("forge", 3, "test", 2)


def finished(runtime, episode: str):
    """The row of an episode, once it has ended and been graded."""
    deadline = time.monotonic() + 60
    while runtime.store.traces.row(episode).correct is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return runtime.store.traces.row(episode)


@pytest.fixture(scope="module")
def episode(runtime) -> str:
    started = runtime.start_episode("starter", "oracle", TASK.query)
    assert finished(runtime, started).correct
    return started


@pytest.fixture(scope="module")
def steps(client, episode) -> list[dict]:
    return client.get(f"/api/episodes/{episode}/what-if").json()["rounds"][0]["steps"]


def change(step: dict, **other) -> dict:
    known = {name: step[name] for name in ("worker", "arguments", "access")}
    return {"edit": "change", "step": step["id"], **known, **other}


def test_the_editor_gets_the_recorded_plan_and_the_workers_of_that_version(client, runtime, episode):
    document = client.get(f"/api/episodes/{episode}/what-if").json()
    (only,) = document["rounds"]
    assert [step["id"] for step in only["steps"]] == [step.id for step in TASK.oracle_turn.steps]
    assert only["answer"] and document["fresh"] == len(only["steps"]) + 1
    calculator = next(each for each in document["workers"] if each["name"] == "calculator")
    assert calculator["instruction"] == "expression" and calculator["parameters"]["required"] == ["expression"]


def test_a_check_says_what_would_be_called_and_calls_nothing(client, runtime, episode, steps):
    first, last = steps[0], steps[-1]
    before = len(runtime.store.traces.variations(episode))
    edit = change(first, arguments={"code": "print(7)"})
    told = client.post(f"/api/episodes/{episode}/what-if/check", json={"round": 1, "edits": [edit]}).json()
    assert told["rerun"] == [first["id"], last["id"]] and told["problems"] == [] and told["dropped"] == 0
    assert set(told["kept"]) == {step["id"] for step in steps} - set(told["rerun"])
    assert len(runtime.store.traces.variations(episode)) == before


def test_problems_come_at_their_steps_and_start_nothing(client, runtime, episode, steps):
    edits = [change(steps[0], worker="nobody"), {"edit": "answer", "answer": "$99"}]
    for path in ("what-if", "what-if/check"):
        answer = client.post(f"/api/episodes/{episode}/{path}", json={"round": 1, "edits": edits})
        told = dict(answer.json()["problems"])
        assert "episode" not in answer.json() and "no worker" in told[str(steps[0]["id"])] and "$99" in told["answer"]
    nothing = client.post(f"/api/episodes/{episode}/what-if", json={"round": 1, "edits": []})
    assert "nothing is changed" in dict(nothing.json()["problems"])[""]
    some = {"round": 1, "edits": [{"edit": "again", "step": 1}]}
    assert client.post("/api/episodes/nowhere/what-if", json=some).status_code == 404
    some["edits"][0]["edit"] = "?"
    assert client.post(f"/api/episodes/{episode}/what-if", json=some).status_code == 422


def test_a_what_if_is_a_graded_trace_of_its_own_linked_both_ways(client, runtime, episode, steps):
    last = steps[-1]
    (name,) = last["arguments"]
    edit = change(last, arguments={name: f"{last['arguments'][name]} + 1"})
    started = client.post(f"/api/episodes/{episode}/what-if", json={"round": 1, "edits": [edit]}).json()["episode"]
    row = finished(runtime, started)
    assert row.correct is False and row.what_if_of == episode and row.orchestrator == "what-if"
    told = client.get(f"/api/episodes/{started}/variations").json()
    assert told["origin"]["id"] == episode and told["origin"]["correct"] and told["result"]["correct"] is False
    assert (told["kept"], told["rerun"]) == (len(steps) - 1, 1)
    assert told["edits"][0]["fields"][0]["after"].endswith("+ 1") and told["differences"]["arguments"] == 1
    assert [each["id"] for each in client.get(f"/api/episodes/{episode}/variations").json()["variations"]] == [started]
    view = runtime.store.traces.episode(started)
    assert view.started.what_if.kept == {step["id"]: step["id"] for step in steps[:-1]}
    detail = client.get(f"/api/episodes/{started}/steps/{steps[0]['id']}").json()
    assert detail["reused"] == {"episode": episode, "step": steps[0]["id"]}
    assert client.get(f"/api/episodes/{started}/steps/{last['id']}").json()["reused"] is None


def count_calls(runtime, worker: str) -> int:
    version = runtime.store.pools.latest("starter").pool.hash
    return runtime.store.traces.pool_stats({worker: [version]})[worker].calls


def test_a_what_if_does_not_count_as_calls_of_the_workers_it_kept(client, runtime, episode, steps):
    before = count_calls(runtime, "python")
    edits = [{"edit": "answer", "answer": "$1"}]
    started = client.post(f"/api/episodes/{episode}/what-if", json={"round": 1, "edits": edits}).json()["episode"]
    finished(runtime, started)
    assert count_calls(runtime, "python") == before


def test_a_starred_what_if_is_a_demonstration_as_it_was_edited(client, runtime, episode, steps):
    from pool_registry.calls.live_pool import open_live_pool
    from trainer.demonstrations.transcripts import load_starred_demonstrations
    from trainer.recipe_sections import ModelSettings

    def star(code: str) -> str:
        edits = [change(steps[0], arguments={"code": code}), {"edit": "answer", "answer": "$1"}]
        started = client.post(f"/api/episodes/{episode}/what-if", json={"round": 1, "edits": edits}).json()["episode"]
        finished(runtime, started)
        client.post(f"/api/episodes/{started}/star", json={"on": True})
        return started

    right, wrong = f"print({TASK.expected!r})", "print(5)"
    stars = {star(right): right, star(wrong): wrong}
    pool = open_live_pool(runtime.store.pools.latest("starter").pool)
    rows = load_starred_demonstrations(runtime.store.traces, pool, ModelSettings(), 6)
    (row,) = [demonstration for demonstration in rows if demonstration.episode in stars]
    assert stars[row.episode] == right, "a wrong answer teaches nothing"
    assert right in json.loads(row.messages[-1].content)["steps"][0]["arguments"]["code"] and row.messages[-1].learn


def test_a_run_whose_pool_is_not_kept_cannot_be_edited_and_says_why(client, runtime):
    from orchestrator.engine.events import EpisodeEnded, EpisodeStarted

    traces = runtime.store.traces
    traces.append("elsewhere", EpisodeStarted("q", "gone", "h", "o", {}, "2026-01-01T00:00:00+00:00"))
    traces.flush()
    running = client.get("/api/episodes/elsewhere/what-if")
    assert "under way" in running.json()["problems"][0][1]
    traces.append("elsewhere", EpisodeEnded("answered", 1.0, "x"))
    traces.flush()
    answer = client.get("/api/episodes/elsewhere/what-if")
    assert answer.status_code == 409 and "not kept" in answer.json()["detail"]
