"""Answers in words on their way to people, where no finalizer is named: runs, the API, commands, and their switch."""

from __future__ import annotations

import asyncio
import json

import pytest
from fastapi.testclient import TestClient
from mcp.client.client import Client
from typer.testing import CliRunner

from pool_registry.starter import starter_pool
from studio.__main__ import app
from studio.episode_documents.replay_document import build_replay
from studio.model_server.apis.mcp import create_mcp_server
from studio.model_server.app import create_model_app
from studio.model_server.service import ServedModel, Service
from studio.prepare import prepare_store
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of
from tests.studio.test_final_answer import wait_for
from trainer.demonstrations.episode_task import Judgement, keep_run
from trainer.tasks import find_task

__all__ = ["endpoint"]

pytestmark = pytest.mark.medium
PLAN = {"steps": [{"id": 1, "worker": "calc", "arguments": {"expression": "2 / 3"}, "access": []}], "answer": "$1"}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "How much of the flour is left?"}]}
WORDS = "≈ 0.6667"


@pytest.fixture
def pool(runtime, endpoint):
    """A pool whose agent plans a sum."""
    Endpoint.reply = staticmethod(lambda messages: json.dumps(PLAN))
    made = pool_of(endpoint, "ada")
    runtime.store.pools.save(made)
    return made


def test_a_run_is_read_in_words_and_graded_and_kept_by_its_value(runtime, client):
    task = find_task("itinerary", 3, "test", 0)
    episode = wait_for(runtime, runtime.start_episode("starter", "oracle", task.query))
    assert episode.shown_answer.endswith(f" in US: {task.expected}") and episode.graded.correct
    assert episode.final_answer == episode.answer == task.expected == runtime.store.traces.row(episode.id).answer
    document = client.get(f"/api/episodes/{episode.id}").json()
    assert (document["answer"], document["presented"]) == (task.expected, episode.shown_answer), "a program's document"
    head = build_replay(episode, runtime.store.traces.row(episode.id), starter_pool())["view"]["episode"]
    assert head["answer"] == episode.shown_answer and head["final"]["plan_answer"] == task.expected
    assert head["final"]["worker"] == "" and head["verdict"]["of_plan"] is False
    events = [event.type for _, event in runtime.store.traces.events_after(episode.id)]
    assert events.count("answer_presented") == 1
    own = wait_for(runtime, runtime.start_episode("starter", "oracle+finalizer=off", task.query))
    assert own.shown_answer == task.expected and own.presented is None


def test_a_task_kept_from_a_run_has_its_value(runtime, pool):
    episode = wait_for(runtime, runtime.start_episode(pool.name, "model:ada:plan", "How much is left?"))
    assert episode.shown_answer == WORDS
    assert keep_run(runtime.store, episode.id, pool.name, Judgement(True)).line.answer == pytest.approx(2 / 3)
    held = runtime.start_episode(pool.name, "model:ada:plan", "How much is left?", mode="review")
    assert wait_for(runtime, held).held is not None
    runtime.decide(held, "approve")
    assert wait_for(runtime, held).shown_answer == WORDS


def test_a_served_chat_is_in_words_and_programs_get_the_value(runtime, pool):
    made = create_model_app(runtime.store, ServedModel(pool.name, "model:ada:plan", "m"), loopback=True)
    with TestClient(made, base_url="http://127.0.0.1") as served:

        def ask(**options: object) -> tuple[str, dict]:
            reply = served.post("/v1/chat/completions", json={**CHAT, **options}).json()
            return reply["choices"][0]["message"]["content"], reply["podium"]

        content, podium = ask()
        assert content == WORDS and podium["value"] == pytest.approx(2 / 3) and "final" not in podium
        content, podium = ask(podium={"finalizer": False})
        assert float(content) == pytest.approx(2 / 3) and "value" not in podium
        schema = {"name": "part", "schema": {"type": "number"}}
        content, _ = ask(response_format={"type": "json_schema", "json_schema": schema})
        assert float(content) == pytest.approx(2 / 3), "a form is demanded"


def test_an_agent_over_mcp_gets_the_value(runtime, pool):
    async def ask() -> str:
        service = Service(runtime.store, ServedModel(pool.name, "model:ada:plan", "m"))
        try:
            async with Client(create_mcp_server(lambda: service)) as client:
                return (await client.call_tool("ask", {"query": "How much?"})).structured_content["answer"]
        finally:
            await service.close()

    assert float(asyncio.run(ask())) == pytest.approx(2 / 3)


def test_a_shell_prints_words_and_says_the_value(tmp_path, endpoint):
    Endpoint.reply = staticmethod(lambda messages: json.dumps(PLAN))
    store = prepare_store(str(tmp_path / "home"))
    store.pools.save(pool_of(endpoint, "ada"))
    store.close()

    def podium(*switches: str) -> tuple[str, str]:
        words = [
            "run",
            "How much?",
            "--pool",
            "p",
            "--orchestrator",
            "model:ada:plan",
            "--home",
            str(tmp_path / "home"),
        ]
        result = CliRunner().invoke(app, [*words, *switches])
        assert result.exit_code == 0, result.output
        return result.stdout.strip(), result.stderr

    answer, about = podium()
    assert answer == WORDS and "The plan's own answer: 0.666" in about
    assert float(podium("--no-finalizer")[0]) == pytest.approx(2 / 3)
    document = json.loads(podium("--json")[0])
    assert document["answer"] == pytest.approx(2 / 3) and document["presented"] == WORDS
