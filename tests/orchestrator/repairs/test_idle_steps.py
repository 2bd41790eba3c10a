"""Steps of a plan that do nothing for the answer."""

from __future__ import annotations

import pytest

from orchestrator.plan import Step, Turn
from orchestrator.repairs.idle_steps import has_idle_step
from trainer.tasks.registry import open_source

PRICE = Step(1, "price", {"film": "Low Tide"})
SEARCH = Step(1, "search", {"query": "Egypt, railways"})


@pytest.mark.parametrize(
    ("steps", "answer", "is_idle"),
    [
        ((PRICE,), "$1", False),
        ((PRICE, Step(2, "price", {"film": "Comet Season"}), Step(3, "minus", {"a": "$1", "b": "$2"})), "$3", False),
        ((PRICE, Step(2, "price", {"film": "Low Tide"}), Step(3, "minus", {"a": "$1", "b": "$2"})), "$3", True),
        ((PRICE, Step(2, "times", {"a": "$1", "b": 2}, (1,))), "$1", True),
        ((PRICE, Step(2, "screen", {"film": "Low Tide"})), "$2", True),
        ((PRICE, Step(2, "screen", {"film": "Low Tide"})), "$1 and $2", False),
        ((SEARCH, Step(2, "reader", {"instruction": "the number"}, (1,))), "$2", False),
        ((PRICE, Step(2, "times", {"a": "$1", "b": "$1"}, (1,))), "$2", False),
    ],
)
def test_a_step_is_idle_that_repeats_a_call_or_is_used_by_none(steps, answer, is_idle):
    assert has_idle_step(Turn(steps, answer)) is is_idle


def test_two_workers_may_read_different_texts_with_one_instruction():
    instruction = {"instruction": "the number in the passage"}
    steps = (SEARCH, Step(2, "search", {"query": "Sudan"}), Step(3, "reader", instruction, (1,)))
    assert not has_idle_step(Turn((*steps, Step(4, "reader", instruction, (2,))), "$3 and $4"))
    assert has_idle_step(Turn((*steps, Step(4, "reader", instruction, (1,))), "$2, $3 and $4"))


@pytest.mark.medium
@pytest.mark.parametrize(
    ("source", "split"),
    [
        ("everyday", "train"),
        ("everyday:held_out", "test"),
        ("worlds:held_out", "test"),
        ("projects:held_out", "test"),
        ("ledger,atlas,forge,itinerary", "train"),
    ],
)
def test_right_plans_have_no_idle_step(source, split):
    tasks = [task for task in open_source(source).tasks(split, 200) if task.oracle_turn and task.oracle_turn.steps]
    idle = [task.query for task in tasks if has_idle_step(task.oracle_turn)]
    assert len(tasks) >= 100 and not idle, idle
