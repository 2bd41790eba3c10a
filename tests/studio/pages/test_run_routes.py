"""The studio's routes: live streams, details, downloads, and who may talk to it."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest

from orchestrator.engine.episode import replay
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, StepStarted, TurnStarted, TurnTaken
from orchestrator.plan import Step, Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from pool_registry.calls.live_pool import live_pool
from pool_registry.calls.run_limits import build_run_limits
from pool_registry.pool import import_pool
from studio.pages.run.stream import POLL_S, EpisodeFeeds
from trainer.tasks import find_task
from trainer.tasks.practice.stored import open_task_book

TASK = find_task("atlas", 2, "test", 1)


@pytest.fixture(scope="module")
def episode(runtime) -> str:
    """A finished, graded episode."""
    started = runtime.start_episode("starter", "oracle", TASK.query)
    deadline = time.monotonic() + 30
    while runtime.store.traces.row(started).correct is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return started


def messages(text: str) -> list[tuple[str, dict]]:
    """(event, data) of a server-sent stream."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def test_a_run_whose_model_is_being_loaded_says_so_until_it_is(client, runtime, episode, monkeypatch):
    loaded = threading.Event()

    async def load(_name: str) -> None:
        await asyncio.to_thread(loaded.wait)

    def is_loading() -> bool:
        return client.get(f"/api/episodes/{episode}/loading").json()["loading"]

    def wait_for(value: bool) -> bool:
        deadline = time.monotonic() + 30
        while is_loading() is not value and time.monotonic() < deadline:
            time.sleep(0.02)
        return is_loading()

    monkeypatch.setattr("studio.runtime.warm_up", load)
    assert is_loading() is False
    runtime.warm_up("oracle")  # the orchestrator of this run
    assert wait_for(True) is True
    loaded.set()
    assert wait_for(False) is False


def test_a_stream_ends_with_the_whole_graded_episode(client, episode):
    seen = messages(client.get(f"/api/episodes/{episode}/stream").text)
    assert [name for name, _ in seen][-1] == "end" and seen[0][0] == "view"
    last = seen[-2][1]
    assert last["episode"]["verdict"]["correct"] is True and last["episode"]["outcome"] == "answered"
    assert len(last["graph"]["nodes"]) == len(TASK.oracle_turn.steps)


def test_a_stream_begins_while_the_episode_runs_and_follows_it_to_its_end(client, runtime):
    started = runtime.start_episode("starter", "oracle", find_task("forge", 3, "test", 2).query)
    seen = messages(client.get(f"/api/episodes/{started}/stream").text)
    assert seen[-1][0] == "end" and seen[-2][1]["episode"]["verdict"]["correct"] is True


def test_viewers_of_one_episode_share_its_documents(runtime):
    traces, feeds = runtime.store.traces, EpisodeFeeds(runtime.store)
    plan = Turn((Step(1, "a"), Step(2, "b", access=(1,))))
    for event in (EpisodeStarted("q", "p", "h", "o", {}, "2026-01-01T00:00:00+00:00"), TurnStarted(1, 0.1)):
        traces.append("watched", event)
    traces.append("watched", TurnTaken(1, plan, 0.2))
    traces.flush()
    viewers = [feeds.open_viewer(traces.row("watched")) for _ in range(50)]
    views = [viewer.poll() for viewer in viewers]
    assert len({id(text) for (text,) in views}) == 1 and messages(views[0][0])[0][0] == "view"
    time.sleep(POLL_S)
    assert not any(viewer.poll() for viewer in viewers), "nothing was recorded"

    traces.append("watched", StepStarted(1, 0.3))
    traces.flush()
    time.sleep(POLL_S)
    patches = [viewer.poll() for viewer in viewers]
    assert len({id(text) for (text,) in patches}) == 1 and messages(patches[0][0])[0][0] == "patch"
    ((kind, late),) = messages(feeds.open_viewer(traces.row("watched")).poll()[0])
    assert kind == "view" and [node["status"] for node in late["graph"]["nodes"]] == ["RUNNING", "PENDING"]

    traces.append("watched", EpisodeEnded("stopped", 0.4))
    traces.flush()
    time.sleep(POLL_S)
    assert not any(viewer.is_over() for viewer in viewers), "they have not been sent the end"
    assert {messages(viewer.poll()[0])[0][0] for viewer in viewers} == {"view"}
    assert all(viewer.is_over() for viewer in viewers)


def test_documents_are_kept_no_longer_than_somebody_watches(runtime, episode):
    feeds, row = EpisodeFeeds(runtime.store), runtime.store.traces.row(episode)
    first = feeds.open_viewer(row).poll()
    second = feeds.open_viewer(row).poll()
    assert first == second and first[0] is not second[0]


def test_a_step_shows_what_it_was_allowed_to_see_and_nothing_else(client, episode):
    for step in TASK.oracle_turn.steps:
        detail = client.get(f"/api/episodes/{episode}/steps/{step.id}").json()
        assert [seen["step"] for seen in detail["visible"]] == list(step.access)
    assert client.get(f"/api/episodes/{episode}/turns/1").json()["text"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/episodes/nothing",
        "/api/episodes/nothing/stream",
        "/api/episodes/{episode}/steps/99",
        "/api/episodes/{episode}/turns/9",
        "/api/pools/nothing",
        "/api/pools/starter?version=99",
    ],
)
def test_what_is_not_there_is_a_404_with_a_sentence(client, episode, path):
    answer = client.get(path.format(episode=episode))
    assert answer.status_code == 404 and len(answer.json()["detail"]) > 10


def test_a_damaged_trace_says_so_everywhere(client, runtime):
    runtime.store.traces.append("odd", EpisodeStarted("q", "p", "h", "o", {}, "2026-01-01T00:00:00+00:00"))
    runtime.store.traces.append("odd", TurnTaken(1, Turn(answer="x"), 0.1))  # without a TurnStarted
    runtime.store.traces.flush()
    (said,) = messages(client.get("/api/episodes/odd/stream").text)
    assert said[0] == "problem" and "damaged" in said[1]
    for path in ("", "/steps/1", "/turns/1"):
        answer = client.get(f"/api/episodes/odd{path}")
        assert answer.status_code == 409 and "damaged" in answer.json()["detail"]


def test_a_downloaded_trace_can_be_replayed(client, episode, runtime):
    document = client.get(f"/api/episodes/{episode}").json()
    assert document["podium_trace"] == 1 and document["correct"] is True
    events = [event for _, event in runtime.store.traces.events_after(episode)]
    assert len(events) == len(document["events"])
    assert replay(episode, events).answer == document["answer"]


def test_a_downloaded_pool_is_the_pool(client, runtime):
    assert import_pool(client.get("/api/pools/starter").text) == runtime.store.pools.latest("starter").pool


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, True),
        ({"text": "ATLAS"}, True),
        ({"text": "100%_nothing"}, False),
        ({"pool": "other"}, False),
        ({"state": "correct"}, True),
        ({"state": "wrong"}, False),
        ({"orchestrator": "oracle", "pool": "starter", "state": "answered"}, True),
        ({"offset": "nonsense"}, True),
    ],
)
def test_traces_are_filtered_on_the_server(client, episode, filters, found):
    answer = client.get("/api/traces", params=filters)
    assert answer.status_code == 200
    assert (episode in [row["id"] for row in answer.json()["rows"]]) is found


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 400),
        ({"origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_other_origins_and_hosts_are_refused(client, headers, status):
    assert client.post("/gradio_api/queue/join", json={}, headers=headers).status_code == status


def test_pages_load_nothing_from_elsewhere(client):
    answer = client.get("/")
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    for path in (
        "/podium/web/../../pyproject.toml",
        "/podium/web/%2e%2e/%2e%2e/pyproject.toml",
        "/gradio_api/file=/etc/passwd",
    ):
        assert client.get(path).status_code in (403, 404)


def test_a_recorded_query_can_be_run_again_with_another_orchestrator(client, runtime):
    first = runtime.start_episode("starter", "random_plan", TASK.query)
    reply = client.post(f"/api/episodes/{first}/again", json={"orchestrator": "oracle"})
    row = runtime.store.traces.row(reply.json()["episode"])
    assert (row.query, row.pool, row.orchestrator) == (TASK.query, "starter", "oracle")
    refused = client.post(f"/api/episodes/{first}/again", json={"orchestrator": "oracle", "query": "Who are you?"})
    assert refused.status_code == 409 and "reference plan" in refused.json()["detail"]


def test_a_run_again_keeps_the_limits_of_the_first(client, runtime):
    limits = build_run_limits(["atlas_search"], 0.5, {"calculator": ["units"]})
    first = runtime.start_episode("starter", "random_plan", TASK.query, run_limits=limits)
    reply = client.post(f"/api/episodes/{first}/again", json={"orchestrator": "oracle"})
    assert runtime.store.traces.episode(reply.json()["episode"]).run_limits == limits


def test_a_run_is_kept_only_with_somebodys_word_for_its_answer(client, runtime, episode):
    store = runtime.store

    async def run() -> str:
        steps = (Step(1, "calculator", {"expression": "300 - 31"}),)
        async with live_pool(store.pools.latest("starter").pool) as live:
            spec, plan = EpisodeSpec("How many days until Christmas?"), OraclePolicy(Turn(steps, "$1"))
            return (await run_episode(spec, plan, live, sink=store.traces)).id

    unverified = runtime.run(run())
    store.traces.flush()
    silent = client.post(f"/api/episodes/{unverified}/task", json={}).json()
    assert "is 269 right? nothing has verified it" in silent["problem"]
    assert open_task_book("starter").read() == []
    assert client.post(f"/api/episodes/{unverified}/task", json={"answer": "297"}).json()["problem"] == ""
    assert client.post(f"/api/episodes/{episode}/task").json()["problem"] == "", "a verifier has found it right"
    overruled = client.post(f"/api/episodes/{episode}/verdict", json={"answer": "1"}).json()
    assert "whose verifier judges it" in overruled["problem"]
    judged = client.post(f"/api/episodes/{unverified}/verdict", json={"right": True}).json()
    assert judged == {"right": True, "expected": "269", "problem": ""} and store.traces.row(unverified).correct
    assert client.post("/api/episodes/nothing/verdict", json={"right": True}).status_code == 404
    corrected, verified = (row.task for row in open_task_book("starter").read())
    assert corrected is not None and corrected.verifier.accepts("297") and corrected.oracle_turn is None
    assert verified is not None and verified.oracle_turn is not None
