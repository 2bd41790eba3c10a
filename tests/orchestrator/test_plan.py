"""What `$k` means, what may see what, and that one bad step never sinks the round."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from orchestrator.plan import Step, Turn, check_turn, fit_arguments
from tests.orchestrator.support.engine import a_pool, canary, codes, engine_kinds, play_turns, step

__all__ = ["engine_kinds"]


def check(*steps: Step, answer: object = None, earlier: tuple[int, ...] = ()) -> Turn:
    return check_turn(Turn(steps, answer), a_pool(), earlier)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (Step(1, "nobody", {}), "use one of: actor"),
        (step(1, "$2"), "add 2 to access"),
        (step(1, access=[1]), "itself"),
        (step(1, access=[2]), "earlier"),
        (step(1, access=[9]), "earlier"),
        (step(1, access=[0]), "earlier"),
        (step(1, access=[-1]), "earlier"),
        (Step(1, "actor", {}), "text"),
        (Step(1, "actor", {"text": 3}), "text"),
        (Step(1, "actor", {"text": "a", "more": 1}), "more"),
        (Step(1, "number", {"value": "x"}), "value"),
        (Step(1, "number", {"value": math.nan}), ""),
        (Step(1, "number", {"value": object()}), ""),
    ],
)
def test_one_bad_step_is_told_what_to_change_and_never_sinks_the_round(bad, says):
    turn = check(bad, step(2))
    assert turn.error is None
    assert turn.steps[0].problem is not None and says in turn.steps[0].problem
    assert turn.steps[1].problem is None


def test_a_worker_that_the_pool_lacks_is_called_unknown():
    episode = play_turns(Turn((replace(step(1), worker="abacus"),), "$1"))
    assert codes(episode) == {1: "unknown_worker"}
    assert "there is no worker 'abacus'" in episode.steps[1].observation.error.message


def test_the_rest_of_the_round_runs():
    episode = play_turns(Turn((step(1, "$9"), step(2), step(3, "$1", access=[1]), step(4, "$2", access=[2])), "$4"))
    assert codes(episode) == {1: "malformed_step", 2: "OK", 3: "dependency_failed", 4: "OK"}
    assert episode.answer == canary(4)


def test_instruction_stands_for_the_one_string_parameter():
    turn = check(Step(1, "actor", {"instruction": "do"}), Step(2, "number", {"instruction": "do"}))
    assert turn.steps[0].arguments == {"text": "do"} and turn.steps[0].problem is None
    assert turn.steps[1].problem is not None


def test_arguments_with_quotes_are_checked_once_their_values_are_there():
    parts = {1: ("number", 0.0), 2: ("ok", 0.0)}
    steps = (
        step(1),
        step(2),
        Step(3, "number", {"value": "$1"}, (1,)),
        Step(4, "number", {"value": "$2"}, (2,)),
        Step(5, "number", {"value": "$1", "note": "$1"}, (1,)),
    )
    episode = play_turns(Turn(steps, "$3"), parts=parts)
    assert codes(episode) == {1: "OK", 2: "OK", 3: "OK", 4: "bad_arguments", 5: "OK"}
    assert episode.answer == {"value": 42.5}
    assert episode.steps[5].arguments == {"value": 42.5, "note": "42.5"}


def test_an_argument_of_another_type_is_read_and_the_step_says_how():
    episode = play_turns(Turn((Step(1, "number", {"value": "42"}), Step(2, "number", {"value": "x"})), "$1"))
    assert codes(episode) == {1: "OK", 2: "malformed_step"}
    assert episode.answer == {"value": 42} and episode.steps[1].step.arguments == {"value": "42"}
    assert episode.steps[1].observation.notes == ('value: "42" was read as 42',)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("42.5", 42.5),
        (" 7 ", 7),
        ("1,234.5", 1234.5),
        ("9007199254740993", 9007199254740993),
        ("1e3", 1000),
        ("1,5", "1,5"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("1e999", "1e999"),
        ("1_000", "1_000"),
        ("", ""),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_text_becomes_a_number_only_where_that_loses_nothing(text, number):
    schema = {"properties": {"value": {"type": "number"}, "any": True}}
    assert fit_arguments({"value": text, "any": text}, schema) == {"value": number, "any": text}


def test_an_answer_that_quotes_no_step_makes_the_turn_an_error_and_frees_its_numbers():
    turn = check(step(1), answer="$2")
    assert turn.error is not None and "$2" in turn.error and turn.steps == ()
    assert check(step(1), answer="$1").error is None
    assert check(answer="$5", earlier=(5,)).error is None


def test_a_number_that_is_taken_makes_the_turn_an_error():
    assert check(step(1), step(1)).error is not None
    assert check(step(3), earlier=(3,)).error is not None
