"""The cascade by a score of outcomes: who is asked, alone or together, what is answered and how sure that is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from orchestrator.approval.plan_gate import measure_doubts
from orchestrator.choice.describe_choice import describe_confidence
from orchestrator.choice.outcomes import Outcome
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, Sink, run_episode
from orchestrator.engine.events import Graded
from orchestrator.policies.registry import orchestrator_factory
from orchestrator.retrieval import sentence_vectors
from orchestrator.traces.agent_track_record import read_track_record
from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.calls.run_limits import NO_RUN_LIMITS, RunLimits, build_run_limits
from pool_registry.storage.data_folder import choose_home
from tests.orchestrator.choice.test_choose_worker import FixedRecord
from tests.orchestrator.support.endpoint import Endpoint, agent, asked, endpoint, pool_of

__all__ = ["endpoint"]
QUERY = "Who may fish here?"


@pytest.fixture(autouse=True)
def _by_words(monkeypatch):
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)


def play(
    url: str,
    rights: Mapping[str, int],
    replies: Mapping[str, str],
    sink: Sink | None = None,
    run_limits: RunLimits = NO_RUN_LIMITS,
    **limits: int,
) -> Episode:
    """An episode with agents that were right so many times of twenty, on the same question."""
    Endpoint.reply = staticmethod(lambda messages: replies[messages[0]["content"][8:-1]])
    known = {
        name: [Outcome(QUERY, place < right) for place in range(20)] if right >= 0 else []
        for name, right in rights.items()
    }

    async def once() -> Episode:
        pool = pool_of(url, *(agent(name, url, price_out=1.0) for name in rights), **{"max_rounds": 5, **limits})
        async with live_pool(pool) as opened:
            live = opened.limit(run_limits)
            made = orchestrator_factory("cascade+who=log", live, lambda: FixedRecord(known))(None, None)
            return await run_episode(EpisodeSpec(QUERY), made, live, sink=sink)

    return asyncio.run(once())


def workers(episode: Episode) -> list[str]:
    return [run.step.worker for run in episode.steps.values()]


def test_an_agent_that_is_likely_right_answers_alone_in_its_own_words(endpoint):
    episode = play(endpoint, {"a": 4, "b": 19}, {"b": "Members of the club may."})
    assert workers(episode) == ["b"] and episode.answer == "Members of the club may."
    assert asked()[0][1] == QUERY and len(episode.rounds) == 1
    number, confidence = episode.confidence
    assert number == 1 and confidence.probability == pytest.approx(0.9, abs=0.06)
    assert describe_confidence(confidence).startswith("0.")


def test_two_middling_ones_are_asked_at_once_and_believed_if_they_agree(endpoint):
    episode = play(endpoint, {"a": 14, "b": 14, "c": 2}, {"a": "Members.", "b": "members"})
    assert sorted(workers(episode)) == ["a", "b"] and episode.answer == "Members."
    assert {run.round for run in episode.steps.values()} == {1}, "in one round, side by side"
    assert episode.confidence[1].probability > 0.8


def test_where_they_differ_another_one_is_asked_and_the_likeliest_answer_counts(endpoint):
    episode = play(endpoint, {"a": 14, "b": 14, "c": 13}, {"a": "Members", "b": "Anybody", "c": "anybody."})
    assert sorted(workers(episode)) == ["a", "b", "c"] and str(episode.answer).rstrip(".").casefold() == "anybody"
    confidence = episode.confidence[1]
    assert list(confidence.answers)[1] == "Members" and sum(confidence.answers.values()) < 1
    assert "2 different answers" in describe_confidence(confidence)


def test_the_record_says_so_where_nobody_is_likely_to_know(endpoint):
    episode = play(endpoint, {"a": 1, "b": 0}, {})
    assert workers(episode) == [] and str(episode.answer).startswith(
        "No worker of this pool can do this: by its record"
    )
    newcomer = play(endpoint, {"a": 0, "new": -1}, {"new": "Members"})
    assert newcomer.answer == "Members", "of a newcomer nobody knows that"


def test_one_who_fails_is_replaced_and_few_rounds_are_enough(endpoint):
    episode = play(endpoint, {"a": 19, "b": 18}, {"a": "", "b": "Members"})
    assert workers(episode) == ["a", "b"] and episode.answer == "Members"
    hurried = play(endpoint, {"a": 14, "b": 14, "c": 14}, {"a": "x", "b": "y", "c": "z"}, max_rounds=2)
    assert hurried.answer == "x" and hurried.confidence[1].probability < 0.8
    assert describe_confidence(hurried.confidence[1]).startswith("Unsure: ")
    alone = play(endpoint, {"a": 14, "b": 14}, {"a": "Members", "b": "x"}, max_rounds=1)
    assert len(workers(alone)) == 1 and alone.answer is not None


def test_a_plan_is_in_doubt_as_much_as_its_least_likely_worker(endpoint):
    episode = play(endpoint, {"a": 14, "b": 14}, {"a": "Members", "b": "members"})
    turn = episode.rounds[0].turn
    ((sentence, doubt),) = measure_doubts(turn, None).items()
    least = min(step.choice.success for step in turn.steps)
    assert doubt == pytest.approx(1 - least) and f"{least:.2f} likely to be right" in sentence


@pytest.mark.parametrize(
    ("correct", "outcomes"),
    [(True, {"a": [True], "b": [False], "c": [True]}), (False, {"a": [False], "b": [], "c": [False]})],
)
def test_a_graded_cascade_is_an_outcome_of_each_agent_that_it_asked(endpoint, tmp_path, monkeypatch, correct, outcomes):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    store = open_store(choose_home(tmp_path))
    replies = {"a": "Members", "b": "Anybody", "c": "members."}
    episode = play(endpoint, {"a": 14, "b": 14, "c": 13}, replies, sink=store.traces)
    store.traces.append(episode.id, Graded(correct, "", 1.0))
    store.traces.flush()
    record = read_track_record("p")
    store.close()
    assert {name: [outcome.right for outcome in record.outcomes(name)] for name in replies} == outcomes
    assert record.cost("a") == pytest.approx(5 / 1e6)


def test_long_answers_are_recorded_by_their_first_characters(endpoint):
    episode = play(endpoint, {"a": 14, "b": 14, "c": 13}, {"a": "x" * 500, "b": "y" * 500, "c": "y" * 500})
    assert episode.answer == "y" * 500
    assert {len(answer) for answer in episode.confidence[1].answers} == {80}


def test_an_answer_that_the_run_hides_from_the_cascade_is_given_all_the_same(endpoint):
    limits = build_run_limits(seen_by={"a": [], "b": []})
    episode = play(endpoint, {"a": 14, "b": 13}, {"a": "Members", "b": "Members"}, run_limits=limits)
    assert episode.answer == "Members"
    assert all("hidden" in answer for answer in episode.confidence[1].answers), "and what it compared says nothing"
