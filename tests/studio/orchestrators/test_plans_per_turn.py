"""Plans per turn as the Run page offers them: in the orchestrator's name, and in the note below it."""

from __future__ import annotations

import pytest

from studio.orchestrators.choices import (
    OrchestratorParts,
    orchestrator_name,
    plan_counts,
    score_choices,
    split_orchestrator_name,
)
from studio.orchestrators.notes import score_note, vote_note


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("model", "solver", "plan", 4), "model:solver:plan+samples=4"),
        (("starter-grpo", None, "plan", 8), "starter-grpo+samples=8"),
        (("starter-grpo", None, "plan", 1), "starter-grpo"),
        (("router", None, "plan", 1, "predictor"), "router+who=predictor"),
        (("cascade", None, "plan", 1, "log"), "cascade+who=log"),
    ],
)
def test_the_plans_per_turn_stand_in_the_name_and_are_read_from_it(parts, name):
    assert orchestrator_name(*parts) == name
    assert split_orchestrator_name(name) == OrchestratorParts(*parts)
    assert split_orchestrator_name(name.replace("+", " ")) == OrchestratorParts(*parts), "an address reads + as a space"


@pytest.mark.parametrize("policy", ["pipeline", "direct", "react", "oracle"])
def test_orchestrators_that_draw_no_plans_take_no_number(policy):
    assert "samples" not in orchestrator_name(policy, None, None, 4)
    assert vote_note(policy, 4) == ""


def test_the_note_says_what_several_plans_cost():
    assert "about 4 times the tokens" in vote_note("starter-grpo", 4)
    assert vote_note("starter-grpo", 1) == ""
    assert plan_counts(16) == [1, 4, 8, 16]


def test_scores_are_offered_where_agents_are_chosen_and_a_link_may_name_another_one():
    assert "who" not in orchestrator_name("fan_out", None, None, 1, "log")
    assert [score for _, score in score_choices()] == ["", "log", "predictor"]
    assert ("cosine", "cosine") in score_choices("cosine")


@pytest.mark.medium
def test_the_note_says_what_a_score_goes_by(runtime):
    pool = runtime.store.pools.latest("starter").pool
    assert score_note(runtime.store.engine, pool, "") == ""
    assert "nothing tells them apart" in score_note(runtime.store.engine, pool, "log")
