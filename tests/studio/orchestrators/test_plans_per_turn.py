"""Plans per turn as the Run page offers them: in the orchestrator's name, and in the note below it."""

from __future__ import annotations

import pytest

from studio.orchestrators.choices import orchestrator_name, plan_counts, split_orchestrator_name
from studio.orchestrators.notes import vote_note


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("model", "solver", "plan", 4), "model:solver:plan+samples=4"),
        (("starter-grpo", None, "plan", 8), "starter-grpo+samples=8"),
        (("starter-grpo", None, "plan", 1), "starter-grpo"),
    ],
)
def test_the_plans_per_turn_stand_in_the_name_and_are_read_from_it(parts, name):
    assert orchestrator_name(*parts) == name
    assert split_orchestrator_name(name) == parts
    assert split_orchestrator_name(name.replace("+", " ")) == parts, "an address reads + as a space"


@pytest.mark.parametrize("policy", ["pipeline", "direct", "react", "oracle"])
def test_orchestrators_that_draw_no_plans_take_no_number(policy):
    assert "samples" not in orchestrator_name(policy, None, None, 4)
    assert vote_note(policy, 4) == ""


def test_the_note_says_what_several_plans_cost():
    assert "about 4 times the tokens" in vote_note("starter-grpo", 4)
    assert vote_note("starter-grpo", 1) == ""
    assert plan_counts(16) == [1, 4, 8, 16]
