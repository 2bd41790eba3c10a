"""Candidates of a need in the order of what is known of them; as they were where nothing is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.choice.choose_worker import Chooser
from orchestrator.choice.outcomes import Outcome
from orchestrator.reader.fill import BoundNeed, parse_fill
from orchestrator.reader.needs import Need, quote_question
from orchestrator.reader.order_candidates import order_candidates
from orchestrator.retrieval import sentence_vectors
from pool_registry.calls.live_pool import open_live_pool
from tests.orchestrator.choice.test_choose_worker import FixedRecord
from tests.orchestrator.support.endpoint import pool_of

NEED = Need("population of a country")
RANKED = [BoundNeed(NEED, "atlas", 0.62), BoundNeed(NEED, "census", 0.58)]


@pytest.fixture
def workers(monkeypatch):
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)
    return open_live_pool(pool_of("http://127.0.0.1:9", "atlas", "census")).workers


def test_without_outcomes_likeness_decides_and_no_choice_is_recorded(workers):
    assert order_candidates(RANKED, workers, Chooser("log", FixedRecord())) == RANKED


def test_a_worker_that_failed_at_such_needs_comes_after_one_that_served_them(workers):
    known = {"atlas": [Outcome(NEED.text, False)] * 3, "census": [Outcome(NEED.text, True)] * 3}
    ordered = order_candidates(RANKED, workers, Chooser("log", FixedRecord(known)))
    assert [item.worker for item in ordered] == ["census", "atlas"]
    turn = parse_fill('1. {"instruction": "Norway"}\n= $1', ordered[:1], 1)
    assert (turn.steps[0].choice.right, turn.steps[0].choice.of, turn.steps[0].choice.by) == (3, 3, "log")


def test_a_question_that_all_known_agents_get_wrong_is_put_to_none_of_them(workers):
    asked = [replace(bound, need=Need(quote_question("Who won?"))) for bound in RANKED]
    wrong = {name: [Outcome("Who won?", False)] * 12 for name in ("atlas", "census")}
    assert order_candidates(asked, workers, Chooser("log", FixedRecord(wrong))) == []
    assert len(order_candidates(RANKED, workers, Chooser("log", FixedRecord(wrong)))) == 2, "a tool may still do it"
    known_once = {"atlas": wrong["atlas"], "census": [Outcome("Who won?", False)]}
    assert len(order_candidates(asked, workers, Chooser("log", FixedRecord(known_once)))) == 2
