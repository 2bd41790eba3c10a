"""The final answer on its way to people: runs, what is graded, commands, the API, exports, and its switch."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from fastapi.testclient import TestClient
from mcp.client.client import Client
from typer.testing import CliRunner

from orchestrator.engine.edits import ChangeStep
from orchestrator.orchestrator_name import split_options
from orchestrator.tracking.otlp import encode_json
from orchestrator.tracking.spans import TracedEpisode, list_spans
from pool_registry.errors import InvalidPool
from pool_registry.pool import Limits, Pool
from studio.__main__ import app
from studio.episode_documents.replay_document import build_replay
from studio.export.svg_and_graphml import write_graphml
from studio.model_server.apis.mcp import create_mcp_server
from studio.model_server.app import create_model_app
from studio.model_server.service import ServedModel, Service
from studio.orchestrators.choices import OrchestratorParts, orchestrator_name, split_orchestrator_name
from studio.pages.pool.commands import PoolCommands
from studio.prepare import prepare_store
from tests.orchestrator.support.endpoint import Endpoint, agent, asked, endpoint, pool_of
from trainer.tasks import find_task

__all__ = ["endpoint"]

pytestmark = pytest.mark.medium
PROSE = "There are 42 crates in hall 7."
QUERY = "How many crates are in hall 7?"
CHAT = {"model": "m", "messages": [{"role": "user", "content": QUERY}]}


@pytest.fixture
def pool(runtime, endpoint) -> Pool:
    """A pool whose agents answer 42, and whose finalizer writes a sentence."""
    Endpoint.reply = staticmethod(lambda messages: PROSE if "final answer" in messages[-1]["content"] else "42")
    made = pool_of(endpoint, "ada", "writer", finalizer="writer")
    runtime.store.pools.save(made)
    return made


def wait_for(runtime, episode: str):
    """The episode once it has ended or waits for a person."""
    deadline = time.monotonic() + 60
    while runtime.store.traces.row(episode).state == "running" and time.monotonic() < deadline:
        time.sleep(0.02)
    return runtime.store.traces.episode(episode)


def run(runtime, pool: Pool, orchestrator: str = "direct:ada", query: str = QUERY):
    return wait_for(runtime, runtime.start_episode(pool.name, orchestrator, query))


def test_a_run_shows_both_answers(runtime, client, pool):
    episode = run(runtime, pool)
    assert (episode.final_answer, episode.answer) == (PROSE, "42")
    document = client.get(f"/api/episodes/{episode.id}").json()
    assert document["answer"] == PROSE and document["final"]["plan_answer"] == "42"
    detail = client.get(f"/api/episodes/{episode.id}/final").json()
    assert (detail["worker"], detail["state"], detail["value"]) == ("writer", "OK", PROSE)
    assert [seen["step"] for seen in detail["visible"]] == [1] and QUERY in detail["prompt"]
    row = runtime.store.traces.row(episode.id)
    assert row.answer == PROSE and row.tokens == 30
    replayed = build_replay(episode, row, pool)
    assert replayed["view"]["episode"]["final"]["sentence"] == "Final answer written by writer."
    assert replayed["final"]["value"] == PROSE
    assert "final answer written by writer" in write_graphml(episode, pool)
    spans = json.dumps(encode_json(list_spans(TracedEpisode(episode, pool))))
    assert spans.count("invoke_agent writer") == 1 and PROSE in spans


def test_a_run_with_the_switch_off_has_the_plans_own(runtime, client, pool):
    episode = run(runtime, pool, "direct:ada+finalizer=off")
    assert episode.final_answer == "42" and episode.final is None and len(asked()) == 1
    assert client.get(f"/api/episodes/{episode.id}/final").status_code == 404


def test_the_page_writes_the_switch_into_the_name():
    name = orchestrator_name("direct", "ada", None, finalizer=False)
    assert name == "direct:ada+finalizer=off" and orchestrator_name("direct", "ada", None) == "direct:ada"
    assert split_orchestrator_name(name) == OrchestratorParts("direct", "ada", finalizer=False)
    assert split_orchestrator_name(name.replace("+", " ")).finalizer is False, "an address that a person types"


def test_a_known_task_is_graded_by_the_plans_own_answer(runtime, client, endpoint):
    Endpoint.reply = staticmethod(lambda messages: "It is 123456789, I think.")
    starter = runtime.store.pools.latest("starter").pool
    limits = starter.limits.model_copy(update={"finalizer": "writer"})
    pool = starter.with_worker(agent("writer", endpoint)).model_copy(update={"name": "graded", "limits": limits})
    runtime.store.pools.save(pool)
    episode = run(runtime, pool, "oracle", find_task("forge", 1, "test", 4).query)
    assert episode.final_answer == "It is 123456789, I think." and episode.graded.correct
    replayed = build_replay(episode, runtime.store.traces.row(episode.id), pool)
    assert replayed["view"]["episode"]["verdict"]["of_plan"] is True


def test_a_what_if_and_a_plan_that_waited_are_finalized_like_their_run(runtime, pool):
    episode = run(runtime, pool)
    edited = runtime.start_variation(episode.id, 1, [ChangeStep(1, "ada", {"instruction": "count again"})])
    assert wait_for(runtime, edited).final_answer == PROSE
    held = runtime.start_episode(pool.name, "direct:ada", QUERY, mode="review")
    assert wait_for(runtime, held).held is not None and len(asked()) == 4, "nothing runs before the plan is approved"
    runtime.decide(held, "approve")
    assert wait_for(runtime, held).final_answer == PROSE


@pytest.fixture
def served(runtime, pool):
    made = create_model_app(runtime.store, ServedModel(pool.name, "direct:ada", "m"), loopback=True)
    with TestClient(made, base_url="http://127.0.0.1") as client:
        yield client


def test_a_served_answer_is_the_final_one(runtime, served):
    reply = served.post("/v1/chat/completions", json=CHAT).json()
    assert reply["choices"][0]["message"]["content"] == PROSE and reply["usage"]["total_tokens"] == 30
    final = reply["podium"]["final"]
    assert final == {"worker": "writer", "sentence": "Final answer written by writer.", "plan_answer": "42"}
    streamed = served.post("/v1/chat/completions", json={**CHAT, "stream": True}).text
    assert "writer writes the final answer" in streamed
    texts = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
    deltas = [chunk["choices"][0]["delta"].get("content") or "" for chunk in texts if chunk["choices"]]
    assert "".join(deltas) == PROSE
    response = served.post("/v1/responses", json={"model": "m", "input": QUERY}).json()
    assert PROSE in json.dumps(response["output"])


def test_a_request_can_have_the_plans_own_answer(runtime, served):
    reply = served.post("/v1/chat/completions", json={**CHAT, "podium": {"finalizer": False}})
    assert reply.json()["choices"][0]["message"]["content"] == "42" and "final" not in reply.json()["podium"]
    runtime.store.traces.flush()
    name = runtime.store.traces.row(reply.headers["x-podium-trace"]).orchestrator
    assert split_options(name)[1].finalizer is False
    refused = served.post("/v1/chat/completions", json={**CHAT, "podium": {"finalizer": "no"}})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "podium.finalizer")


def test_an_answer_that_must_have_a_form_is_the_plans_own(served, endpoint):
    Endpoint.reply = staticmethod(lambda messages: '{"count": 42}')
    form = {"type": "json_object"}
    reply = served.post("/v1/chat/completions", json={**CHAT, "response_format": form}).json()
    assert json.loads(reply["choices"][0]["message"]["content"]) == {"count": 42}
    assert "writer" not in [name for name, _ in asked()]


def test_a_failing_finalizer_costs_a_request_nothing_but_its_prose(runtime, endpoint):
    Endpoint.reply = staticmethod(lambda messages: "42")
    broken = agent("writer", "http://127.0.0.1:9")
    runtime.store.pools.save(pool_of(endpoint, "ada", broken, finalizer="writer").model_copy(update={"name": "broken"}))
    made = create_model_app(runtime.store, ServedModel("broken", "direct:ada", "m"), loopback=True)
    with TestClient(made, base_url="http://127.0.0.1") as client:
        reply = client.post("/v1/chat/completions", json=CHAT).json()
    assert reply["choices"][0]["message"]["content"] == "42"
    assert "writer wrote no final one" in reply["podium"]["final"]["sentence"]


def test_what_the_fallback_answers_is_final_already(runtime, pool):
    made = create_model_app(runtime.store, ServedModel(pool.name, "random_plan:1", "m"), loopback=True)
    with TestClient(made, base_url="http://127.0.0.1") as client:
        greeting = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        reply = client.post("/v1/chat/completions", json=greeting).json()["podium"]
    assert ("fallback" in reply) != ("final" in reply)


def test_an_agent_over_mcp_chooses_too(runtime, pool):
    async def ask(**options: object) -> str:
        service = Service(runtime.store, ServedModel(pool.name, "direct:ada", "m"))
        try:
            async with Client(create_mcp_server(lambda: service)) as client:
                return (await client.call_tool("ask", {"query": QUERY, **options})).structured_content["answer"]
        finally:
            await service.close()

    assert asyncio.run(ask()) == PROSE
    assert asyncio.run(ask(finalizer=False)) == "42"


def test_a_shell_says_which_answer_it_prints(tmp_path, endpoint):
    Endpoint.reply = staticmethod(lambda messages: PROSE if "final answer" in messages[-1]["content"] else "42")

    def podium(*words: str) -> tuple[str, str]:
        result = CliRunner().invoke(app, [*words, "--home", str(tmp_path / "home")])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.stdout.strip(), result.stderr

    store = prepare_store(str(tmp_path / "home"))
    store.pools.save(pool_of(endpoint, "ada", "writer"))
    store.close()
    podium("pool", "set", "p", "--set", "finalizer=writer", "--set", "max_rounds=2")
    assert json.loads(podium("pool", "show", "p", "--json")[0])["limits"]["finalizer"] == "writer"
    words = ("run", QUERY, "--pool", "p", "--orchestrator", "direct:ada")
    answer, about = podium(*words)
    assert answer == PROSE and "Final answer written by writer." in about and "The plan's own answer: 42" in about
    answer, about = podium(*words, "--no-finalizer")
    assert answer == "42" and "writer" not in about
    assert json.loads(podium(*words, "--json")[0])["final"]["plan_answer"] == "42"
    with pytest.raises(InvalidPool, match="'calc' is no language model"):
        podium("pool", "set", "p", "--set", "finalizer=calc")
    with pytest.raises(InvalidPool, match="there is no limit 'finaliser': a pool has max_rounds"):
        podium("pool", "set", "p", "--set", "finaliser=ada")


def test_the_limits_of_the_page_take_it_and_say_what_is_wrong(runtime, pool):
    def save(finalizer: str):
        limits = Limits(finalizer=finalizer).model_dump(mode="json")
        return PoolCommands(runtime).run("save_limits", {"pool": pool.name, "limits": limits})

    ((where, what),) = save("calc")["problems"]
    assert where == "limits.finalizer" and "no language model" in what
    assert save("ada")["state"]["pool"]["limits"]["finalizer"] == "ada"
