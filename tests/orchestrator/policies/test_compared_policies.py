"""What a trained orchestrator is compared with at equal cost: one agent several times, and a plan without its words."""

from __future__ import annotations

from collections import Counter
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import OrchestratorName, TurnOptions
from orchestrator.policies.labels import label_orchestrator
from orchestrator.policies.registry import is_untrained
from tests.orchestrator.support.endpoint import Endpoint, asked, endpoint, play

__all__ = ["endpoint"]

PLAN = """{"steps": [{"worker": "boss", "instruction": "Think of a number.", "access": []},
           {"worker": "boss", "instruction": "Double $1 then.", "access": [1]},
           {"worker": "calc", "instruction": "6*7", "access": []}], "answer": "$2"}"""


def test_self_consistency_takes_what_the_agent_says_most_often(endpoint):
    replies = cycle(["41", "42.0", "40", "42", "42"])
    episode = play("self_consistency:boss", endpoint, lambda _: next(replies))
    assert len(episode.steps) == 5 and {run.step.worker for run in episode.steps.values()} == {"boss"}
    assert episode.answer in ("42", "42.0"), "equal numbers agree"
    assert len({text for _, text in asked()}) == 1 and "6*7?" in asked()[0][1]


def test_self_consistency_asks_as_often_as_its_name_and_the_limits_say(endpoint):
    for name, limits, calls in (("+samples=3", {}, 3), ("", {"max_steps": 2}, 2), ("", {"max_rounds": 1}, 1)):
        Endpoint.bodies = []
        episode = play(f"self_consistency{name}", endpoint, lambda _: "42", **limits)
        assert episode.answer == "42" and len(Endpoint.bodies) == calls


def test_self_consistency_without_a_reply_ends_as_failed(endpoint):
    episode = play("self_consistency", endpoint, lambda _: "  ")
    assert episode.answer is None and "no answer" in str(episode.rounds[-1].turn.error)


def test_with_the_whole_query_agents_read_it_and_steps_and_access_stay(endpoint):
    def reply(messages):
        return PLAN if "Workers" in messages[0]["content"] else "84"

    written = play("model:boss", endpoint, reply).rounds[0].turn
    episode = play("model:boss+whole_query", endpoint, reply)
    turn = episode.rounds[0].turn
    assert episode.answer == "84"
    assert [step.arguments["instruction"] for step in turn.steps[:2]] == ["6*7?", "6*7?"]
    assert turn.steps[2] == written.steps[2], "a tool is called as it was planned"
    assert [(step.worker, step.access) for step in turn.steps] == [(s.worker, s.access) for s in written.steps]


def test_fixed_policies_have_no_subtasks_to_leave_out(endpoint):
    with pytest.raises(UnknownOrchestrator, match="only checkpoints and model:AGENT"):
        play("fan_out+whole_query", endpoint, lambda _: "42")


@given(st.builds(TurnOptions, st.integers(1, 64), st.none() | st.booleans(), st.booleans(), whole_query=st.booleans()))
def test_options_are_read_as_they_are_written(options):
    assert OrchestratorName.parse(f"model:boss:plan{options}").options == options


def test_labels_say_what_is_sampled_and_what_is_left_out():
    assert label_orchestrator("self_consistency:boss+samples=7") == "Self-consistency, boss, 7 answers"
    assert label_orchestrator("model:boss+whole_query") == "boss as planner, no written subtasks"


def test_policies_are_baselines_and_checkpoints_and_the_oracle_are_not():
    names = ("direct:a", "router+who=log", "model:a", "oracle", "smollm2-reader+who=log", "job-1a2b3c@40")
    assert Counter(map(is_untrained, names)) == {True: 3, False: 3} and is_untrained("model:a")
