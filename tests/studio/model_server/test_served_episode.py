"""What a served answer says of itself in the field `podium`."""

from __future__ import annotations

from orchestrator.agreement import measure_agreement
from orchestrator.plan import Vote
from pool_registry.actions import NO_USAGE
from studio.model_server.served_episode import ServedAnswer


def test_an_answer_on_which_drawn_plans_disagree_says_so():
    agreement = measure_agreement(1, Vote(5, 0, 3, 0, 1, {"9": 1, "8": 1}))
    report = ServedAnswer("9", "stop", NO_USAGE, agreement=agreement).report("t")
    assert report["agreement"]["unsure"] and report["agreement"]["sentence"] == "Unsure: no two of 5 plans agree."


def test_an_answer_of_one_plan_says_nothing_of_agreement():
    assert ServedAnswer("9", "stop", NO_USAGE).report("t") == {"trace": "t", "ignored": {}}
