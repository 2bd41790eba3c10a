"""The episode loop: rounds, answers, limits, stop, orchestrators that misbehave, recursion."""

from __future__ import annotations

import asyncio
import time

import pytest

from orchestrator.engine.episode_loop import MAX_QUERY_CHARS
from orchestrator.engine.events import EpisodeStarted, ParentStep
from orchestrator.errors import InvalidQuery, OrchestratorError
from orchestrator.plan import Turn
from pool_registry.actions import Status, Usage
from pool_registry.errors import WorkerFault
from tests.orchestrator.support.engine import (
    ALL,
    STAGE,
    Events,
    Scripted,
    canary,
    codes,
    deep,
    engine_kinds,
    play_turns,
    step,
    worker,
)

__all__ = ["engine_kinds"]


def test_each_round_sees_what_came_back_before():
    seen = []

    def second(episode):
        seen.append(dict(episode.observations()))
        return Turn((step(2, "$1", "actor", [1]),))

    episode = play_turns(Turn((step(1),)), second, Turn(answer="it is $2"))
    assert [r.number for r in episode.rounds] == [1, 2, 3]
    assert seen[0][1].value == canary(1)
    assert canary(1) in STAGE.shown[2]
    assert episode.ended.outcome == "answered" and episode.answer == f"it is {canary(2)}"


def test_conductor_mode_is_one_turn_with_steps_and_answer():
    episode = play_turns(Turn((step(1), step(2, "$1", "agent", [1])), "$2"), max_rounds=1)
    assert episode.ended.outcome == "answered" and episode.answer == canary(2) and len(episode.rounds) == 1


def test_an_answer_keeps_the_type_of_what_it_quotes():
    assert play_turns(Turn((step(1),), "$1"), parts={1: ("number", 0.0)}).answer == 42.5
    assert play_turns(Turn(answer={"n": ["$$", 1]})).answer == {"n": ["$", 1]}


def test_a_round_that_is_no_turn_costs_a_round_and_the_episode_goes_on():
    episode = play_turns(Turn(error="no JSON", text="hm"), Turn((step(1),), "$1"))
    assert episode.answer == canary(1) and episode.rounds[0].turn.error == "no JSON"


def test_an_answer_that_quotes_a_failed_step_is_none_yet():
    episode = play_turns(Turn((step(1),), "$1"), Turn((step(2),), "$2"), parts={1: ("fault", 0.0)})
    assert codes(episode) == {1: "broken", 2: "OK"} and episode.answer == canary(2)


def test_a_turn_whose_answer_quotes_nothing_can_be_written_again():
    turn = Turn((step(1), step(2, "$1", "actor", [1])), "$7")
    episode = play_turns(turn, lambda e: Turn((step(e.next_step_id), step(2, "$1", "actor", [1])), "$2"), deadline_s=20)
    assert episode.answer == canary(2) and "$7" in episode.rounds[0].turn.error
    assert {run.state for run in episode.steps.values()} == {"OK"}


def test_step_numbers_used_twice_are_an_error_and_no_dead_end():
    started = time.perf_counter()
    episode = play_turns(Turn((step(1),)), Turn((step(1),), "$1"), max_rounds=2, deadline_s=20)
    assert episode.ended.outcome == "max_rounds" and time.perf_counter() - started < 5


class GivingUp(Scripted):
    """An orchestrator that does not recover from its mistakes."""

    gives_up = True


def unreadable(text: str) -> Turn:
    return Turn(error=text, text="hm")


@pytest.mark.parametrize(
    ("turns", "reason"),
    [
        ((unreadable("no JSON"), unreadable("no plan")), "no plan"),
        ((Turn((step(1, "x", "nobody"),)), Turn((step(2, "x", "somebody"),))), "somebody"),
        ((Turn((step(1),), "$1"), Turn((step(2),), "$2")), "quotes a step that failed"),
        ((Turn((step(1, "x", "nobody"),)), Turn((step(2),)), unreadable("no JSON")), "no JSON"),
    ],
)
def test_a_second_useless_turn_ends_the_episode(turns, reason):
    parts = {1: ("fault", 0.0), 2: ("fault", 0.0)}
    orchestrator = GivingUp(*turns, Turn(answer="too late"))
    episode = play_turns(orchestrator, parts=parts if "quotes" in reason else {}, max_rounds=6)
    assert episode.ended.outcome == "gave_up" and len(episode.rounds) == len(turns)
    assert "not asked again" in episode.ended.reason and reason in episode.ended.reason


def test_failed_steps_alone_do_not_end_an_episode():
    """An orchestrator may look around: its workers fail, but it has not tried to answer yet."""
    turns = [Turn((step(1),)), Turn((step(2),)), Turn((step(3),)), Turn(answer="$3")]
    episode = play_turns(GivingUp(*turns), parts={1: ("fault", 0.0), 2: ("fault", 0.0)}, max_rounds=4)
    assert episode.answer == canary(3)


def test_in_the_last_round_the_limit_is_the_reason():
    episode = play_turns(GivingUp(unreadable("no JSON"), unreadable("no JSON")), max_rounds=2)
    assert episode.ended.outcome == "max_rounds"


def test_an_orchestrator_that_reads_its_mistakes_may_go_on():
    turns = [unreadable("no JSON"), unreadable("no plan"), Turn(answer=1)]
    assert play_turns(*turns, max_rounds=3).answer == 1


def test_rounds_are_limited():
    episode = play_turns(lambda e: Turn((step(e.next_step_id),)), max_rounds=3)
    assert episode.ended.outcome == "max_rounds" and len(episode.rounds) == 3 and "3 rounds" in episode.ended.reason


def test_steps_are_limited_over_the_whole_episode():
    def turn(episode):
        k = episode.next_step_id
        return Turn((step(k), step(k + 1)))

    episode = play_turns(turn, max_rounds=3, max_steps=3)
    assert codes(episode) == {1: "OK", 2: "OK", 3: "OK", 4: "max_steps", 5: "max_steps", 6: "max_steps"}


def test_the_deadline_covers_orchestrator_and_workers():
    def hang(_):
        return asyncio.sleep(3600)

    started = time.perf_counter()
    assert play_turns(hang, deadline_s=0.05).ended.outcome == "deadline"
    assert play_turns(Turn((step(1),)), parts={1: ("hang", 0)}, deadline_s=0.05).ended.outcome == "deadline"
    assert time.perf_counter() - started < 3


def test_an_alarm_that_rings_early_leaves_no_time_for_another_round(monkeypatch):
    ring = asyncio.BaseEventLoop.call_later
    monkeypatch.setattr(  # as uvloop, which rounds to milliseconds
        asyncio.BaseEventLoop,
        "call_later",
        lambda loop, delay, *call, **context: ring(loop, max(0.0, delay - 5e-4), *call, **context),
    )
    turns = (Turn((step(1),)), Turn(answer="too late"))
    for _ in range(5):
        episode = play_turns(*turns, parts={1: ("hang", 0)}, deadline_s=0.02)
        assert episode.ended.outcome == "deadline" and len(episode.rounds) == 1


def test_tokens_are_limited():
    spent = lambda e: Turn((step(e.next_step_id),), usage=Usage(300, 300))  # noqa: E731
    episode = play_turns(spent, max_tokens=1000)
    assert episode.ended.outcome == "max_tokens" and codes(episode) == {1: "OK", 2: "max_tokens"}


def test_cost_is_limited():
    priced = [worker("actor", price_call=0.6)]
    episode = play_turns(lambda e: Turn((step(e.next_step_id),)), workers=priced, max_cost=1.0)
    assert episode.ended.outcome == "max_cost" and len(episode.steps) == 2
    assert episode.usage.cost == pytest.approx(1.2)


def test_stop_ends_a_thinking_orchestrator_and_says_so():
    episode = play_turns(lambda _: asyncio.sleep(3600), stop_after=0.03)
    assert episode.ended.outcome == "stopped" and "user" in episode.ended.reason


def raising(error: BaseException):
    def turn(_):
        raise error

    return turn


@pytest.mark.parametrize(
    "turn",
    [
        Turn(error="endpoint is down", failed=True),
        raising(OrchestratorError("no such model")),
        raising(WorkerFault("refused", "the endpoint refused")),
        raising(KeyError("a bug \ud800")),
        raising(asyncio.CancelledError()),
        lambda _: None,
        lambda _: "text",
    ],
)
def test_an_orchestrator_that_fails_ends_the_episode_with_its_reason(turn):
    episode = play_turns(turn, deadline_s=20)
    assert episode.ended.outcome == "orchestrator_failed" and episode.ended.reason
    assert len(episode.rounds) == 1 and episode.ended.reason.encode()


def test_an_orchestrator_that_is_no_coroutine_fails_like_any_other():
    class Plain:
        name = "plain"

        def turn(self, episode):
            raise ValueError("at once")

    assert play_turns(Plain()).ended.outcome == "orchestrator_failed"


@pytest.mark.parametrize("query", ["", "  \n\t", "x" * (MAX_QUERY_CHARS + 1)])
def test_a_query_that_is_none_is_refused_before_anything_is_recorded(query):
    sink = Events()
    with pytest.raises(InvalidQuery):
        play_turns(Turn(answer="x"), query=query, sink=sink)
    assert sink.all() == []


def test_a_query_is_cleaned_of_what_cannot_be_stored():
    episode = play_turns(Turn(answer="x"), query="a\ud800b\x00c")
    assert episode.query == "a\ufffdb\ufffdc"


@pytest.mark.parametrize("odd", [float("nan"), deep(90), {1, 2}, object()], ids=lambda odd: type(odd).__name__)
def test_an_answer_that_is_no_json_is_an_error_of_its_turn(odd):
    episode = play_turns(Turn(answer=odd), Turn(answer="fine\ud800"))
    assert "cannot be kept" in episode.rounds[0].turn.error
    assert episode.answer == "fine\ufffd"


# Recursion


def descend(*turns, **changes):
    """Depth is told from the query: the outer orchestrator descends with `#1 inner`."""
    sink = Events()
    inner = Scripted(*turns)
    resolve = lambda name, query, pool: inner  # noqa: E731
    outer = [Turn((step(1, "inner", "inner"),), "$1")]
    return play_turns(*outer, resolve=resolve, sink=sink, **{"max_rounds": 1, **changes}), sink


def test_a_recursive_step_runs_an_episode_one_level_deeper_with_a_trace_of_its_own():
    episode, sink = descend(Turn((step(1),), "$1"))
    assert episode.answer == canary(1)
    inner_id = episode.steps[1].observation.episode
    started = sink.of[inner_id][0]
    assert isinstance(started, EpisodeStarted)
    assert (started.depth, started.parent) == (1, ParentStep(episode.id, 1))
    assert sink.of[inner_id][-1].type == "episode_ended"


def test_depth_is_limited():
    episode, sink = descend(Turn((step(1, "again", "inner"),), "$1"), max_depth=3)
    assert codes(episode) == {1: "max_rounds"} and len(sink.of) == 4
    deepest = max(events[0].depth for events in sink.of.values())
    assert deepest == 3
    innermost = next(events for events in sink.of.values() if events[0].depth == 3)
    assert any(
        getattr(event, "observation", None) and event.observation.error.code == "max_depth" for event in innermost
    )


def test_an_inner_episode_without_an_answer_is_a_failed_step_that_can_be_opened():
    episode, _ = descend(Turn((step(1),), "$1"), parts={1: ("fault", 0.0)})
    observation = episode.steps[1].observation
    assert observation.status is Status.EXEC_ERR and observation.episode and observation.error.code == "max_rounds"


def test_inner_and_outer_share_steps_tokens_and_deadline():
    many = Turn(tuple(step(k) for k in range(1, 6)), "$1")
    episode, sink = descend(many, max_steps=3)
    inner = sink.of[episode.steps[1].observation.episode]
    assert [e.observation.ok for e in inner if e.type == "step_ended"].count(True) == 2
    started = time.perf_counter()
    episode, _ = descend(lambda _: asyncio.sleep(3600), deadline_s=0.05)
    assert episode.ended.outcome == "deadline" and time.perf_counter() - started < 3


def test_an_inner_episode_counts_its_usage_once():
    episode, _ = descend(Turn((step(1),), "$1", usage=Usage(10, 5, 0.5)), max_tokens=16)
    assert episode.usage == Usage(10, 5, 0.5) and episode.ended.outcome == "answered"


def test_recursion_does_not_deadlock_with_one_slot_per_worker():
    one = [worker(spec.name, spec.kind, max_concurrency=1) for spec in ALL]
    turns = Turn((step(1, "deeper", "inner"), step(2)), "$2")
    started = time.perf_counter()
    episode, _ = descend(turns, workers=one, max_depth=3, deadline_s=20)
    assert episode.ended.outcome == "answered" and time.perf_counter() - started < 5


def test_without_a_way_to_resolve_names_a_recursive_step_fails_plainly():
    assert codes(play_turns(Turn((step(1, "x", "inner"),), "$1"), max_rounds=1)) == {1: "worker_raised"}


def test_the_shipped_recursive_worker_descends():
    pool_worker = worker("deeper", "orchestrator")
    inner = Scripted(Turn((step(1),), "$1"))
    name = {"text": "#1 x"}
    from orchestrator.plan import Step

    instruction = Step(1, "deeper", {"instruction": name["text"]})
    episode = play_turns(
        Turn((instruction,), "$1"), workers=[*ALL, pool_worker], resolve=lambda *_: inner, max_rounds=1
    )
    assert episode.answer == canary(1), codes(episode)
