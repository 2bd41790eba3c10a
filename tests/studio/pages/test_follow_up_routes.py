"""Follow-up questions through the studio's routes: understood, started, stored, shown, and refused with a sentence."""

from __future__ import annotations

import json
import re

import pytest

from orchestrator.engine.edits import RunAgain
from orchestrator.failure_memory.write_lesson import has_failed, write_by_rule
from pool_registry.calls.run_limits import RunLimits
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of
from tests.studio.test_final_answer import wait_for
from trainer.demonstrations.episode_task import Judgement, keep_run

__all__ = ["endpoint"]

pytestmark = pytest.mark.medium
SUM = re.compile(r"\d+ \* \d+")


def plan_sums(messages) -> str:
    """The planner's reply: a step for each sum of the question."""
    sums = SUM.findall(messages[-1]["content"])
    steps = [{"id": k, "worker": "calc", "arguments": {"expression": text}} for k, text in enumerate(sums, 1)]
    return json.dumps({"steps": steps, "answer": f"${len(steps)}"})


@pytest.fixture
def pool(runtime, endpoint):
    Endpoint.reply = staticmethod(plan_sums)
    made = pool_of(endpoint, "ada")
    runtime.store.pools.save(made)
    return made


@pytest.fixture
def run(runtime, pool):
    """Ask a question on the pool, and wait for its answer."""

    def ask(query: str, **how):
        return wait_for(runtime, runtime.start_episode(pool.name, "model:ada:plan", query, **how))

    return ask


def follow(client, episode: str, text: str, **more):
    return client.post(f"/api/episodes/{episode}/follow-up", json={"text": text, **more}).json()


def test_a_follow_up_is_a_run_of_a_question_that_stands_alone(client, runtime, run):
    first = run("What is 6 * 7?")
    reply = follow(client, first.id, "and 8 * 9?")
    second = wait_for(runtime, reply["episode"])
    assert (second.query, second.answer, second.source) == ("What is 8 * 9?", 72, "mine")
    row = runtime.store.traces.row(second.id)
    assert (row.query, row.continues) == (second.query, first.id)
    third = wait_for(runtime, follow(client, second.id, "what is that times 2?")["episode"])
    assert third.query == "What is 72 times 2?" and third.started.follow_up.quotes
    assert [turn.question for turn in third.started.follow_up.before] == [first.query, second.query]
    document = client.get(f"/api/episodes/{second.id}").json()
    assert document["follow_up"]["text"] == "and 8 * 9?" and document["follow_up"]["by"] == "rule"
    (line,) = client.get(f"/api/episodes/{first.id}/follow-ups").json()["runs"]
    assert (line["episode"], line["query"], line["answer"]) == (second.id, "What is 8 * 9?", "72")


def test_the_head_shows_what_was_typed_and_what_was_before(client, runtime, run):
    from studio.episode_documents.replay_document import build_replay
    from studio.episode_documents.view import build_episode_view

    first = run("What is 6 * 7?")
    key = follow(client, first.id, "what about 8 * 9")["episode"]
    episode = wait_for(runtime, key)
    head = build_episode_view(episode, runtime.store.traces.row(key), None, None).episode
    assert (head.follow_up.text, head.follow_up.how) == ("what about 8 * 9", "understood as")
    (before,) = head.follow_up.before
    assert (before.episode, before.question, before.answer) == (first.id, "What is 6 * 7?", "42")
    assert "nothing of the runs before" in head.follow_up.seen
    replay = build_replay(episode, runtime.store.traces.row(key))
    assert replay["view"]["episode"]["follow_up"] is None and "6 * 7" not in json.dumps(replay), (
        "others see this run alone"
    )


def test_where_two_fit_nothing_starts_before_one_is_chosen(client, runtime, run):
    first = run("How much is 2 * 3 and 4 * 5?")
    reply = follow(client, first.id, "and 6 * 7?")
    assert reply["readings"] == ["How much is 6 * 7 and 4 * 5?", "How much is 2 * 3 and 6 * 7?"]
    assert reply["episode"] == "" and not runtime.store.traces.list_follow_ups(first.id)
    chosen = wait_for(runtime, follow(client, first.id, "and 6 * 7?", question=reply["readings"][1])["episode"])
    assert chosen.answer == 42 and chosen.started.follow_up.by == "rule"
    own = wait_for(runtime, follow(client, first.id, "and 6 * 7?", question="What is 6 * 7 then?")["episode"])
    assert own.query == "What is 6 * 7 then?" and own.started.follow_up.by == "person"


def test_where_none_fits_an_agent_reads_it_and_the_run_pays(client, runtime, run):
    first = run("What is 6 * 7?")

    def reply(messages):
        return "What is 9 * 9?" if "Follow-up: why?" in messages[-1]["content"] else plan_sums(messages)

    Endpoint.reply = staticmethod(reply)
    second = wait_for(runtime, follow(client, first.id, "why?")["episode"])
    assert (second.query, second.answer, second.started.follow_up.agent) == ("What is 9 * 9?", 81, "ada")
    assert second.usage.tokens == first.usage.tokens + 15 == runtime.store.traces.row(second.id).tokens
    Endpoint.reply = staticmethod(lambda messages: "UNCLEAR")
    refused = follow(client, first.id, "why?")
    assert (
        refused["episode"] == ""
        and "and ada could not read it either; write the question in full" in refused["problem"]
    )


def test_where_workers_have_effects_a_person_sees_a_question_that_holds_an_answer_before_it_is_asked(
    client, runtime, run, pool
):
    first = run("What is 6 * 7?")
    workers = tuple(spec.model_copy(update={"effects": "some"}) for spec in pool.workers if spec.name == "calc")
    runtime.store.pools.save(pool.model_copy(update={"workers": (*workers, pool.worker("ada"))}))
    assert follow(client, first.id, "and 8 * 9?")["episode"], "nothing of an answer is in it"
    reply = follow(client, first.id, "what is that times 2?")
    assert (reply["episode"], reply["readings"]) == ("", ["What is 42 times 2?"])
    chosen = wait_for(
        runtime, follow(client, first.id, "what is that times 2?", question=reply["readings"][0])["episode"]
    )
    assert chosen.query == "What is 42 times 2?" and chosen.started.follow_up.quotes


def test_an_answer_made_of_hidden_outputs_is_not_shown(client, runtime, run):
    first = run("What is 6 * 7?", run_limits=RunLimits(seen_by={"calc": ()}))
    requests = len(Endpoint.bodies)
    refused = follow(client, first.id, "what is that times 2?")
    assert "limits who may see" in refused["problem"] and refused["episode"] == ""
    assert "in full" in follow(client, first.id, "why?")["problem"]
    assert len(Endpoint.bodies) == requests, "no agent has read the answer"
    second = wait_for(runtime, follow(client, first.id, "and 8 * 9?")["episode"])
    assert second.answer == 72 and second.run_limits == first.run_limits


def test_a_follow_up_teaches_its_question_and_not_the_words_typed(client, runtime, run, pool):
    first = run("What is 6 * 7?")
    second = wait_for(runtime, follow(client, first.id, "and 8 * 9?")["episode"])
    kept = keep_run(runtime.store, second.id, pool.name, Judgement(is_right=True))
    assert kept.line.query == "What is 8 * 9?" and "and 8 * 9?" not in kept.line.model_dump_json()
    Endpoint.reply = staticmethod(lambda messages: "no plan")
    failed = wait_for(runtime, follow(client, first.id, "and 3 * 3?")["episode"])
    assert has_failed(failed) and failed.query == "What is 3 * 3?" and "and 3" not in (write_by_rule(failed) or "")


def test_what_cannot_be_continued_says_what_to_do(client, runtime, run):
    first = run("What is 6 * 7?")
    assert client.post("/api/episodes/nowhere/follow-up", json={"text": "why?"}).status_code == 404
    assert "empty" in follow(client, first.id, "  ")["problem"]
    assert "at most" in follow(client, first.id, "x" * 2001)["problem"]
    varied = wait_for(runtime, runtime.start_variation(first.id, 1, [RunAgain(step=1)]))
    assert "what-if" in follow(client, varied.id, "and 8 * 9?")["problem"]
