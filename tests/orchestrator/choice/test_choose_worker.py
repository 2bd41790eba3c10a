"""Who serves a need: scores of outcomes, what price and latency take off, draws with their probabilities."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from orchestrator.choice.choose_worker import Chooser
from orchestrator.choice.describe_choice import describe_choice
from orchestrator.choice.outcomes import Outcome
from orchestrator.choice.scores import SCORES, Candidate
from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import OrchestratorName, TurnOptions, add_options
from orchestrator.policies.registry import explain_stay, goes_by_traces, orchestrator_factory
from orchestrator.retrieval import sentence_vectors
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.language_models.completion import Draw
from tests.orchestrator.support.endpoint import pool_of

NEED = "the capital of Norway"
CAPITALS = [f"the capital of country {number}" for number in range(6)]
SUMS = [f"add the numbers {number} and 7" for number in range(6)]


@dataclass(frozen=True)
class FixedRecord:
    """A record that a test writes."""

    known: dict[str, list[Outcome]] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)

    def outcomes(self, worker):
        return self.known.get(worker, [])

    def cost(self, worker):
        return self.costs.get(worker, 0.0)

    def wall_s(self, worker):
        return 0.0


def outcomes(*lists: tuple[list[str], bool]) -> tuple[Outcome, ...]:
    return tuple(Outcome(need, right) for needs, right in lists for need in needs)


def candidate(name: str, *lists: tuple[list[str], bool], likeness: float = 0.0, is_tool: bool = False) -> Candidate:
    return Candidate(name, "Answers questions.", is_tool, likeness, outcomes(*lists))


GEOGRAPHER = candidate("geographer", (CAPITALS, True), (SUMS, False))
ADDER = candidate("adder", (CAPITALS, False), (SUMS, True))


@pytest.fixture(autouse=True)
def _by_words(monkeypatch):
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)


def test_the_log_tells_workers_of_equal_records_apart_by_what_they_were_right_about():
    geographer, adder = SCORES["log"](NEED, [GEOGRAPHER, ADDER])
    assert geographer > 0.75 > 0.25 > adder
    assert SCORES["log"]("add the numbers 30 and 4", [GEOGRAPHER, ADDER])[0] < 0.3


def test_without_similar_outcomes_the_whole_record_decides():
    good, bad = SCORES["log"](
        "translate a poem", [candidate("good", (CAPITALS, True)), candidate("bad", (SUMS, False))]
    )
    assert good == pytest.approx(7 / 8) and bad == pytest.approx(1 / 8)


def test_a_tool_without_outcomes_keeps_its_likeness():
    assert SCORES["log"](NEED, [candidate("tool", likeness=0.6, is_tool=True)]) == [pytest.approx(0.6)]


def test_a_choice_takes_the_best_and_says_what_it_rests_on():
    (first, choice), _ = Chooser("log", FixedRecord()).order(NEED, [ADDER, GEOGRAPHER])
    assert first.worker == "geographer"
    assert (choice.probability, choice.by, choice.among, choice.right, choice.of) == (1.0, "log", 2, 6, 12)
    assert "6 of its 12 outcomes right; taken as the best" in describe_choice(choice)


def test_price_moves_a_choice_between_equals_but_not_from_right_to_wrong():
    twin = candidate("twin", (CAPITALS, True), (SUMS, False))
    dear = FixedRecord(costs={"geographer": 0.1})
    assert Chooser("log", dear).order(NEED, [GEOGRAPHER, twin])[0][0].worker == "twin"
    assert Chooser("log", dear).order(NEED, [GEOGRAPHER, ADDER])[0][0].worker == "geographer"


def test_draws_have_the_probability_that_the_trace_names():
    middling = candidate("middling", (CAPITALS[:4], True), (CAPITALS[4:], False))
    drawn = [
        Chooser("log", FixedRecord(), Draw(1.0, seed)).order(NEED, [GEOGRAPHER, middling])[0] for seed in range(900)
    ]
    counts = Counter(item.worker for item, _ in drawn)
    probability = {item.worker: choice.probability for item, choice in drawn}
    assert sum(probability.values()) == pytest.approx(1, abs=1e-3) and 0 < probability["middling"] < 0.5
    assert counts["middling"] / 900 == pytest.approx(probability["middling"], abs=0.04)
    again = Chooser("log", FixedRecord(), Draw(1.0, 5)).order(NEED, [GEOGRAPHER, middling])
    assert again == Chooser("log", FixedRecord(), Draw(1.0, 5)).order(NEED, [GEOGRAPHER, middling])


def test_the_score_is_part_of_an_orchestrators_name():
    assert OrchestratorName.parse("router+who=log").options == TurnOptions(who="log")
    assert add_options("smollm2-reader+who=log", TurnOptions(samples=4)) == "smollm2-reader+samples=4+who=log"
    assert goes_by_traces("smollm2-reader+who=log") and not goes_by_traces("smollm2-reader")
    assert "traces" in explain_stay("smollm2-reader+who=log")


def test_the_router_orders_by_the_score_that_its_name_asks_for():
    live = open_live_pool(pool_of("http://127.0.0.1:9", "adder", "geographer"))
    record = FixedRecord({item.worker: list(item.outcomes) for item in (ADDER, GEOGRAPHER)})
    router = orchestrator_factory("router+who=log", live, lambda: record)(None, None)
    (first, choice), _ = router._choose(NEED)
    assert (router.name, first, choice.of) == ("router+who=log", "geographer", 12)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("router+who=magic", "there is no score 'magic' to choose workers by; use +who= with cosine, log, predictor"),
        ("fan_out+who=log", "only `router`, `cascade` and readers take"),
        ("router+who=predictor", "choose workers by `log` or `cosine` instead"),
    ],
)
def test_a_score_that_cannot_be_used_is_refused_in_a_sentence(name, problem):
    live = open_live_pool(pool_of("http://127.0.0.1:9", "a", "b"))
    with pytest.raises(UnknownOrchestrator, match=problem.replace("+", r"\+").replace("`", ".")):
        orchestrator_factory(name, live, FixedRecord)(None, None)
