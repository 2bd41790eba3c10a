"""How likely an answer is right, by what a run knows of its plan."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.answer_chance import Evidence, find_calibration, judge_chance, read_evidence
from orchestrator.plan import OutOfDepth, Turn, Vote

READER = "smollm2-reader"
SHARES = st.none() | st.floats(0, 1)
EVIDENCE = st.builds(Evidence, SHARES, st.integers(0, 40), st.floats(0, 1))


def chance_of(evidence: Evidence) -> float:
    calibration = find_calibration(READER)
    assert calibration is not None
    return calibration.estimate(evidence)


@given(EVIDENCE, st.integers(0, 9), st.floats(0, 1))
def test_more_trouble_more_distance_and_less_agreement_make_no_answer_likelier(evidence, more, other):
    chance = chance_of(evidence)
    assert 0 < chance < 1
    assert chance_of(Evidence(evidence.share, evidence.troubles + more, evidence.distance)) <= chance
    further = max(evidence.distance, other)
    assert chance_of(Evidence(evidence.share, evidence.troubles, further)) <= chance
    if evidence.share is not None:
        fewer = min(evidence.share, other)
        assert chance_of(Evidence(fewer, evidence.troubles, evidence.distance)) <= chance


@given(EVIDENCE, st.floats(0, 1))
def test_no_answer_is_likelier_than_its_least_likely_worker(evidence, weakest):
    known = Evidence(evidence.share, evidence.troubles, evidence.distance, weakest)
    assert chance_of(known) == min(weakest, chance_of(evidence))


def test_the_evidence_counts_what_went_wrong_and_the_last_vote():
    split = Vote(5, 0, 0, 0, 2, {"4": 2, "5": 3})
    turns = [Turn(error="nothing to read"), Turn(vote=split, repairs=("other_words",))]
    assert read_evidence(turns, failed_steps=2, depth=OutOfDepth(0.3, 0.5)) == Evidence(0.4, 5, 0.3)
    assert read_evidence([Turn(vote=Vote(1, 0, 0, 0, 1, {"4": 1}))]) == Evidence(None, 0, 0.0)


def test_plans_that_agree_are_likely_right_and_those_that_do_not_are_unsure_in_words():
    agreeing = Vote(5, 0, 0, 0, 5, {"4": 5})
    likely = judge_chance(READER, Evidence(1.0), agreeing)
    assert likely is not None and likely.likely and likely.sentence == "Likely right (about 8 in 10)"
    split = Vote(5, 0, 0, 0, 1, {"1": 1, "2": 1, "3": 1, "4": 1, "5": 1})
    unsure = judge_chance(READER, Evidence(0.2), split)
    assert unsure is not None and unsure.unsure and unsure.sentence == "Unsure: 5 plans, 5 different answers"


def test_an_orchestrator_that_was_never_compared_gets_words_and_no_figure():
    vote = Vote(5, 0, 0, 0, 3, {"4": 3, "5": 2})
    for name in ("model:solver:plan", "starter-grpo", "smollm2-reader+without=all", "model:a+samples=no"):
        judged = judge_chance(name, Evidence(0.6), vote)
        assert judged is not None and judged.probability is None and judged.sentence == "3 of 5 plans agree", name
        assert judge_chance(name, Evidence(), None) is None
