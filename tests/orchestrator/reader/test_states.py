"""What a reader is shown of the plan that failed, and which of its next plan is really called."""

from __future__ import annotations

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.plan import Step, Turn
from orchestrator.reader.cards import make_listing_format
from orchestrator.reader.conversation import STATES, open_conversation, reopen_conversation
from orchestrator.reader.states import STATE_CHARS, TriedPlan, format_states, go_on, join_last_plan
from pool_registry.actions import Observation, Status
from tests.orchestrator.support.engine import a_pool, canary, engine_kinds, play_turns, worker

__all__ = ["engine_kinds"]

FAILING = {2: ("fault", 0.0)}


def ask(k: int, text: str, need: str = "a need", access: tuple[int, ...] = ()) -> Step:
    return Step(k, "actor", {"text": text}, access, need=need)


def play(*turns: Turn) -> Episode:
    """An episode that ends after these turns. The call that begins with #2 fails."""
    return play_turns(*turns, parts=FAILING, max_rounds=len(turns))


def test_each_step_is_a_line_with_what_came_of_it():
    steps = (ask(1, "#1"), ask(2, "#2 $1", access=(1,)), ask(3, "#3 $2", access=(2,)))
    tried = join_last_plan(play(Turn(steps, "$3")))
    assert tried is not None and tried.steps == steps and tried.answer == "$3"
    first, second, third = format_states(tried).splitlines()
    assert first == f"1. returned {canary(1)}"
    assert second.startswith("2. failed: ") and third.startswith("3. failed: $2")


def test_an_answer_that_quotes_a_missing_part_has_a_line_too():
    tried = join_last_plan(play(Turn((Step(1, "number", {"value": 2}),), "$1.price")))
    assert tried is not None
    assert format_states(tried).splitlines() == ['1. returned {"value": 2}', "= there is no $1.price: $1 has value"]


def test_outputs_are_one_short_line_without_control_tokens():
    seen = Observation(Status.OK, "<|im_end|>\n" + "long " * 100)
    (line,) = format_states(TriedPlan((ask(1, "x"),), "$1", {1: seen})).splitlines()
    assert len(line) <= STATE_CHARS + len("1. returned ") and "<|im_end|>" not in line
    assert format_states(TriedPlan((ask(1, "x"),), "$1", {})) == "1. was not called"


def test_the_last_plan_takes_along_the_steps_that_it_goes_back_to():
    episode = play(
        Turn((ask(1, "#1"), ask(2, "#2"), ask(3, "#3")), "$2"), Turn((ask(4, "#2 again $3", access=(3,)),), "$4 $1")
    )
    tried = join_last_plan(episode)
    assert tried is not None
    assert [(item.id, item.arguments["text"], item.access) for item in tried.steps] == [
        (1, "#1", ()),
        (2, "#3", ()),
        (3, "#2 again $2", (2,)),
    ]
    assert tried.answer == "$3 $1" and set(tried.observations) == {1, 2, 3}


def test_there_is_no_plan_where_no_turn_could_be_read():
    assert join_last_plan(play(Turn(error="nonsense"))) is None


FIRST = Turn((ask(1, "#1"), ask(2, "#2 $1", access=(1,))), "$2")


def test_a_call_that_has_worked_is_quoted_and_not_made_again():
    turn = go_on(Turn((ask(1, "#1"), ask(2, "#4 $1", access=(1,))), "$2 of $1"), play(FIRST), ())
    assert turn is not None and turn.answer == "$3 of $1"
    assert [(item.id, item.arguments["text"], item.access) for item in turn.steps] == [(3, "#4 $1", (1,))]


def test_only_another_answer_is_a_turn_without_steps():
    turn = go_on(Turn((ask(1, "#1"),), "$1"), play(FIRST), ())
    assert turn is not None and (turn.steps, turn.answer) == ((), "$1")


@pytest.mark.parametrize(
    "turn",
    [
        FIRST,
        Turn((ask(1, "#1"), ask(2, "#2 $1", "in other words", (1,))), "$2"),  # the call that failed
        Turn((ask(1, "#1"), ask(2, "#5"), ask(3, "#2 $1", access=(1,))), "$3 $2"),
    ],
)
def test_a_plan_that_repeats_what_failed_is_nothing_new(turn):
    assert go_on(turn, play(FIRST), ()) is None


def test_the_same_answer_of_the_same_outputs_is_nothing_new():
    episode = play(Turn((Step(1, "number", {"value": 2}),), "$1.price"))
    again = Step(1, "number", {"value": 2})
    assert go_on(Turn((again,), "$1.price"), episode, ()) is None
    assert go_on(Turn((again,), "$1.value"), episode, ()) == Turn((), "$1.value")


def test_a_worker_with_effects_that_has_worked_is_not_called_in_other_words():
    turn = Turn((ask(1, "#1 in other words"),), "$1")
    assert go_on(turn, play(FIRST), ["actor"]) is None
    assert go_on(turn, play(FIRST), ["number"]) is not None


def test_a_worker_with_effects_that_was_cut_off_is_not_called_in_other_words():
    """What it had done by then nobody knows."""
    hanging = {1: ("hang", 0.0)}
    slow = worker("actor", timeout_s=0.05)
    episode = play_turns(Turn((ask(1, "#1"),), "$1"), parts=hanging, workers=(slow,), max_rounds=1)
    assert episode.observations()[1].status is Status.TIMEOUT
    turn = Turn((ask(1, "#4 in other words"),), "$1")
    assert go_on(turn, episode, ["actor"]) is None and go_on(turn, episode, ()) is not None


def test_the_conversation_goes_on_behind_the_last_plan():
    workers = a_pool().workers
    listing = make_listing_format("reader-turns")
    opening = open_conversation("a query", workers.values(), listing)
    tried = join_last_plan(play(FIRST))
    assert tried is not None
    messages = reopen_conversation(opening, tried, workers, listing)
    assert messages[: len(opening)] == opening
    assert [message.role for message in messages[len(opening) :]] == ["assistant", "user", "assistant", "user"]
    assert messages[2].content == "1. a need\n2. a need (1)"
    assert messages[-1].content == f"{STATES}\n{format_states(tried)}"
