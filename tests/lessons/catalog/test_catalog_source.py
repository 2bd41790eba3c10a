"""The source `catalog`: its plans are right, what it tests on it never teaches, and its words can be told apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.quotes import references
from podium_lessons.catalog.catalog_data import find_tool, list_fields, load_catalog
from podium_lessons.catalog.requests import ToolCall, draw_value, tells_places
from podium_lessons.catalog.source import open_catalog
from podium_lessons.catalog.values import TEXT_RULES
from tests.lessons.plans import answer_by
from trainer.errors import UnknownTask
from trainer.tasks.suite import make_random
from trainer.tasks.task import Task


def draw(split: str, count: int, level: int | None = None) -> list[Task]:
    return open_catalog().tasks(split, count, levels=(level,) if level else None)


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_every_reference_plan_is_right(split: str):
    for task in draw(split, 80):
        assert task.oracle_turn is not None and answer_by(task, task.oracle_turn), task.query


def test_any_other_argument_costs_the_answer():
    tasks = [task for task in draw("train", 60) if task.oracle_turn and task.oracle_turn.steps]
    for task in tasks:
        assert task.oracle_turn is not None
        first, *others = task.oracle_turn.steps
        name = next(iter(first.arguments))
        value = first.arguments[name]
        wrong = value + 1 if isinstance(value, int | float) else ["other"] if isinstance(value, list) else "other"
        steps = (replace(first, arguments={**first.arguments, name: wrong}), *others)
        assert not answer_by(task, replace(task.oracle_turn, steps=steps)), task.query


def test_calls_that_have_nothing_to_do_with_each_other_see_nothing_and_are_not_joined():
    tasks = [task for task in draw("train", 120, 3) if task.oracle_turn and not references_of(task)]
    assert len(tasks) > 40
    for task in tasks:
        assert task.oracle_turn is not None
        assert all(not step.access for step in task.oracle_turn.steps)
        assert references(task.oracle_turn.answer) == {step.id for step in task.oracle_turn.steps}


def references_of(task: Task) -> set[int]:
    """The steps whose outputs go into others."""
    steps = task.oracle_turn.steps if task.oracle_turn else ()
    return set().union(*(step.references for step in steps))


def test_fields_of_objects_are_quoted_where_a_tool_returns_one():
    tasks = [task for task in draw("train", 120) if task.oracle_turn]
    texts = [str((task.oracle_turn.answer, *(s.arguments for s in task.oracle_turn.steps))) for task in tasks]
    assert sum("$1." in text for text in texts) > 20


def test_no_tool_and_no_query_of_the_test_split_is_learnt():
    def tools(split: str) -> set[str]:
        return {tool.name for field in list_fields(split) for tool in load_catalog()[field]}

    assert not tools("train") & tools("test") and len(tools("train")) > 2 * len(tools("test"))
    queries = [{task.query for task in draw(split, 200)} for split in ("train", "validation", "test")]
    assert not queries[0] & queries[1] and not queries[0] & queries[2] and not queries[1] & queries[2]


def test_values_are_what_their_parameters_take():
    random = make_random("values")
    for tools in load_catalog().values():
        for tool in tools:
            for name, parameter in tool.parameters.items():
                assert not parameter.rule or parameter.rule in TEXT_RULES
                value = draw_value(parameter, name, random)
                assert isinstance(value, {"string": str, "integer": int, "number": int | float}[parameter.type])


def test_values_stand_alone_only_where_they_tell_what_they_are_for():
    span, grip = find_tool("get_daily_cases"), find_tool("get_grip_level")
    assert span is not None and grip is not None
    assert not tells_places(ToolCall(span, {}, {"start_date": "2024-01-01", "end_date": "2024-02-01"}))
    assert tells_places(ToolCall(grip, {}, {"vehicle_type": "SUV", "road_condition": "wet"}))


def test_an_unknown_argument_is_refused():
    with pytest.raises(UnknownTask, match="use catalog"):
        open_catalog("kitchen")
