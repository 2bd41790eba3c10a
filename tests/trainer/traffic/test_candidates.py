"""Candidates: what somebody said of recorded runs, with what has to be looked at before it teaches anything."""

from __future__ import annotations

from trainer.demonstrations.episode_task import Judgement
from trainer.traffic.accept import set_consent
from trainer.traffic.candidates import list_candidates

RIGHT, WRONG = Judgement(is_right=True, by="ann", place="page"), Judgement(by="ann", place="page")


def list_queries(store):
    return [candidate.query for candidate in list_candidates(store, "shop")]


def test_an_answer_that_nobody_judged_is_no_candidate(store, ask):
    ask("What is 6 * 7?")
    assert list_candidates(store, "shop") == []


def test_a_thumb_makes_a_candidate_that_says_who_judged_when_and_where(store, ask):
    ask("What is 6 * 7?", judgement=RIGHT, user="bob")
    (candidate,) = list_candidates(store, "shop")
    assert (candidate.answer, candidate.concern) == ("42", "") and candidate.split in ("train", "validation", "test")
    (evidence,) = candidate.evidence
    assert (evidence.kind, evidence.by, evidence.place, evidence.user) == ("right", "ann", "page", "bob")
    assert evidence.at >= store.traces.row(evidence.run).started_at


def test_a_wrong_answer_without_a_correction_needs_the_right_one(store, ask):
    ask("What is 6 * 7 + 1?", judgement=WRONG)
    (candidate,) = list_candidates(store, "shop")
    assert (candidate.answer, candidate.concern) == ("", "answer")


def test_a_correction_is_the_answer(store, ask):
    ask("What is 6 * 7 + 1?", judgement=Judgement(answer="43"))
    (candidate,) = list_candidates(store, "shop")
    assert (candidate.answer, candidate.concern, candidate.evidence[0].kind) == ("43", "", "corrected")


def test_a_corrected_plan_suggests_its_answer_until_somebody_judges_it(store, ask):
    first = ask("What is 6 * 7 + 1?", judgement=WRONG)
    ask("What is 6 * 7 + 1?", "6 * 7 + 1", corrects=first)
    (candidate,) = list_candidates(store, "shop")
    assert (candidate.answer, candidate.choices, candidate.concern) == ("", ("43",), "answer")


def test_two_answers_that_are_called_right_are_disputed_and_so_is_one_that_is_called_wrong(store, ask):
    ask("What is six times seven?", judgement=RIGHT)
    ask("What is six times seven?", judgement=Judgement(answer="43"))
    ask("How many are in a gross?", judgement=RIGHT)
    ask("How many are in a gross?", judgement=WRONG)
    one, other = list_candidates(store, "shop")
    assert (one.concern, one.answer, one.choices) == ("disputed", "", ("42",))
    assert (other.concern, other.answer, other.choices) == ("disputed", "", ("43", "42"))


def test_other_words_with_the_same_answer_are_one_candidate(store, ask):
    ask("What is the capital of France?", judgement=RIGHT)
    ask("What's France's capital city?", judgement=RIGHT)
    ask("what is the capital of  France", judgement=RIGHT)
    (candidate,) = list_candidates(store, "shop")
    assert len(candidate.also) == 1 and len(candidate.evidence) == 3


def test_near_duplicates_with_other_answers_share_a_group_and_a_split(store, ask):
    ask("Which lamps cost less than 20 euros?", judgement=RIGHT)
    ask("Which lamps cost more than 20 euros?", "6 * 8", judgement=RIGHT)
    one, other = list_candidates(store, "shop")
    assert one.group == other.group and one.split == other.split and one.answer != other.answer


def test_personal_data_is_marked(store, ask):
    ask("Mail 6 * 7 to ann.lee@example.com", judgement=RIGHT)
    (candidate,) = list_candidates(store, "shop")
    assert candidate.concern == "personal" and "an e-mail address (ann.lee@example.com)" in candidate.reason


def test_requests_of_clients_are_candidates_only_where_they_may_become_tasks(store, ask):
    served = ask("What is 6 * 7?", judgement=RIGHT, source="served", user="app")
    ask("What is 6 * 7?", corrects=served, source="served", judgement=RIGHT)
    assert list_queries(store) == []
    set_consent("shop", True)
    assert list_queries(store) == ["What is 6 * 7?"]
    set_consent("shop", False)
    assert list_queries(store) == []


def test_runs_of_evaluations_are_no_candidates(store, ask):
    ask("What is 6 * 7?", judgement=RIGHT, source="evaluation")
    assert list_queries(store) == []
