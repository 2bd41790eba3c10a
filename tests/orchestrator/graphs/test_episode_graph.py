"""Trace -> networkx, critical path and totals, on episodes written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.engine.episode import Episode, replay
from orchestrator.engine.events import (
    EpisodeEnded,
    EpisodeStarted,
    Event,
    StepEnded,
    StepStarted,
    TurnStarted,
    TurnTaken,
)
from orchestrator.graphs.episode_graph import ANSWER, episode_graph
from orchestrator.plan import Step, Turn
from orchestrator.traces.episode_totals import compute_totals, critical_path
from orchestrator.traces.step_counts import StepCounts, count_steps, describe_steps, find_tries
from pool_registry.actions import Observation, Status, Usage
from tests.orchestrator.support.engine import ALL, engine_kinds, step

__all__ = ["engine_kinds"]


def episode(*rounds: tuple[Turn, dict[int, float]], outcome: str | None = "answered", failed=()) -> Episode:
    """Each round: a turn that took one second, and the latencies of the steps that ended."""
    events: list[Event] = [EpisodeStarted("q", "p", "h", "o", {}, "2026-01-01T00:00:00")]
    at = 0.0
    for number, (turn, latencies) in enumerate(rounds, start=1):
        events += [TurnStarted(number, at), TurnTaken(number, turn, at + 1)]
        for k, seconds in latencies.items():
            status = Status.EXEC_ERR if k in failed else Status.OK
            events += [StepStarted(k, at + 1), StepEnded(k, Observation(status, 1, seconds), at + 1 + seconds)]
        at += 1 + max(latencies.values(), default=0.0)
    if outcome:
        events.append(EpisodeEnded(outcome, at, "x"))  # type: ignore[arg-type]
    return replay("e", events)


DIAMOND = (step(1), step(2, "$1", access=[1]), step(3, "", "agent", [1]), step(4, "$2", access=[2, 3]))


def test_steps_are_nodes_and_access_entries_edges():
    graph = episode_graph(episode((Turn(DIAMOND, "$4"), {1: 1.0, 2: 2.0, 3: 3.0, 4: 1.0})))
    assert set(graph) == {1, 2, 3, 4, ANSWER}
    assert set(graph.edges) == {(1, 2), (1, 3), (2, 4), (3, 4), (4, ANSWER)}
    assert [graph.nodes[k]["layer"] for k in (1, 2, 3, 4, ANSWER)] == [0, 1, 1, 2, 3]
    assert {k for k in (1, 2, 3, 4) if graph.nodes[k]["critical"]} == {1, 3, 4}


def test_an_edge_says_whether_the_step_used_what_it_may_see():
    from pool_registry.pool import Pool

    pool = Pool(name="p", workers=ALL)
    graph = episode_graph(episode((Turn(DIAMOND), {})), pool)
    used = {
        edge: data["used"]
        for *edge, data in ((a, b, d) for a, b, d in graph.edges(data=True))
        for edge in [tuple(edge)]
    }
    assert used == {(1, 2): True, (1, 3): True, (2, 4): True, (3, 4): False}
    assert (graph.nodes[1]["role"], graph.nodes[3]["role"]) == ("tool", "agent")


def test_every_round_lies_to_the_right_of_the_one_before():
    graph = episode_graph(
        episode(
            (Turn((step(1), step(2, "", access=[1]))), {1: 1, 2: 1}),
            (Turn((step(3),)), {3: 1}),
            (Turn(answer="$1 $3"), {}),
        )
    )
    assert [graph.nodes[k]["layer"] for k in (1, 2, 3, ANSWER)] == [0, 1, 2, 3]
    assert [graph.nodes[k]["lane"] for k in (1, 2, 3)] == [1, 1, 2]
    assert set(graph.predecessors(ANSWER)) == {1, 3}


def test_an_answer_that_came_to_nothing_is_no_node():
    failed = (Turn((step(1),), "$1"), {1: 1.0})
    assert ANSWER not in episode_graph(episode(failed, (Turn((step(2),)), {2: 1}), outcome="max_rounds", failed=[1]))
    assert ANSWER not in episode_graph(episode((Turn(error="no turn"), {}), outcome="max_rounds"))
    assert ANSWER in episode_graph(episode((Turn((step(1),), "$1"), {}), outcome=None))


def test_a_malformed_step_keeps_only_edges_from_earlier_steps():
    bad = (step(1, access=[2, 1, 7]), step(2, access=[1]))
    assert set(episode_graph(episode((Turn(bad), {}))).edges) == {(1, 2)}


def test_an_empty_episode_is_an_empty_graph():
    assert len(episode_graph(replay("e", []))) == 0
    assert compute_totals(replay("e", [])).speedup is None


def test_totals_and_critical_path_of_a_known_episode():
    known = episode(
        (Turn(DIAMOND, usage=Usage(10, 5, 0.1)), {1: 1.0, 2: 2.0, 3: 3.0, 4: 1.0}), (Turn(answer="$4"), {}), failed=[2]
    )
    assert critical_path(known) == [1, 3, 4]
    found = compute_totals(known)
    assert found.critical_path_s == pytest.approx(2 + 5)
    assert found.serial_s == pytest.approx(2 + 7)
    assert found.wall_s == pytest.approx(5.0) and found.speedup == pytest.approx(9 / 5)
    assert found.workers_speedup == pytest.approx(7 / 3), "planning does not count"
    assert (found.tokens_in, found.tokens_out, found.cost, found.steps, found.rounds) == (10, 5, 0.1, 4, 2)
    assert found.statuses == {"OK": 3, "EXEC_ERR": 1}


def test_the_critical_path_runs_through_every_round():
    known = episode(
        (Turn((step(1), step(2))), {1: 1.0, 2: 5.0}),
        (Turn((step(3, "$1", access=[1]), Step(4, "actor"))), {3: 2.0, 4: 1.0}),
    )
    assert critical_path(known) == [2, 3]


def test_a_rejected_call_and_its_other_tries_count_apart_from_the_steps():
    price, times = replace(step(1), need="a price"), replace(step(2, "$1", access=[1]), need="a product")
    trial = Turn(tuple(replace(step(k), need="a price") for k in (3, 4, 5)), trial=True)
    again = Turn((replace(step(6, "$4", access=[4]), need="a product"),), "$6")
    mended = episode(
        (Turn((price, times)), {1: 1, 2: 1}), (trial, {3: 1, 4: 1, 5: 1}), (again, {6: 1}), failed=[1, 2, 3, 5]
    )
    assert find_tries(mended) == {1, 2, 3, 5}
    assert compute_totals(mended).counts == StepCounts(steps=2, failed=0, tries=4)
    assert describe_steps(count_steps(mended)) == "2 steps, 4 other tries"
    given_up = episode((Turn((price, times)), {1: 1, 2: 1}), (trial, {3: 1, 4: 1, 5: 1}), failed=[1, 2, 3, 4, 5])
    assert describe_steps(count_steps(given_up)) == "2 steps (2 failed), 3 other tries"


def test_where_nothing_was_tried_again_every_step_counts():
    retried = episode((Turn((step(1),)), {1: 1}), (Turn((step(2),), "$2"), {2: 1}), failed=[1])
    assert describe_steps(count_steps(retried)) == "2 steps (1 failed)"
    assert describe_steps(count_steps(episode((Turn((step(1),), "$1"), {})))) == "1 step"


def test_totals_of_an_episode_in_flight():
    flying = episode((Turn((step(1), step(2))), {1: 1.0}), outcome=None)
    assert compute_totals(flying).speedup is None and compute_totals(flying).statuses == {"OK": 1, "PENDING": 1}
