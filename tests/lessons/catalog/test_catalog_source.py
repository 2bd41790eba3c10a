"""The source `catalog`: its plans are right, what it tests on it never teaches, and its words can be told apart."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from orchestrator.quotes import references
from podium_lessons.catalog.catalog_data import find_slots, find_tool, list_fields, load_asks, load_catalog
from podium_lessons.catalog.requests import ToolCall, draw_value, tells_places
from podium_lessons.catalog.source import open_catalog
from podium_lessons.catalog.values import TEXT_RULES
from tests.lessons.plans import answer_by
from trainer.errors import UnknownTask
from trainer.tasks.registry import open_source
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


@pytest.mark.parametrize(("argument", "split", "least"), [("", "train", 0.4), ("worded", "test", 0.9)])
def test_calls_are_asked_for_in_words_that_were_written_for_their_tool(argument, split, least):
    asks = load_asks(split)
    tasks = [task for task in open_catalog(argument).tasks(split, 200, levels=(1,)) if task.oracle_turn.steps]
    steps = [step for task in tasks for step in task.oracle_turn.steps]
    assert {step.worker for step in steps} <= set(asks)
    needs = [step.need for step in steps]
    assert {step.need for step in steps} >= {""}, "some are needed in the words of the list"
    assert sum(step.need in asks[step.worker].needs for step in steps) > len(needs) // 2
    pieces = [(task.query, asks[task.oracle_turn.steps[0].worker].asks) for task in tasks]
    assert sum(any(is_filled(text, query) for text in texts) for query, texts in pieces) >= least * len(pieces)


def is_filled(text: str, query: str) -> bool:
    """Whether a query has every word between the slots of a text."""
    return all(piece in query for piece in re.split(r"\{\w+\}", text))


def test_the_test_split_of_the_plain_source_is_asked_for_in_no_such_words():
    needs = [step.need for task in draw("test", 200, 1) if task.oracle_turn for step in task.oracle_turn.steps]
    assert len(needs) > 150 and not any(needs)


@pytest.mark.parametrize("split", ["train", "test"])
def test_asks_name_what_their_tool_takes(split):
    asks = load_asks(split)
    assert set(asks) == {tool.name for field in list_fields(split) for tool in load_catalog()[field]}
    for name, row in asks.items():
        tool = find_tool(name)
        assert tool is not None
        required = {key for key, parameter in tool.parameters.items() if parameter.required}
        assert all(required <= find_slots(text) <= set(tool.parameters) for text in row.asks)
        assert len(set(row.asks)) == len(row.asks)


def test_tasks_of_one_call_are_a_source_of_their_own():
    tasks = open_catalog("single").tasks("train", 60, levels=(2, 3))
    assert {task.ref.level for task in tasks} == {1}
    assert all(len(task.oracle_turn.steps) <= 1 for task in tasks)


def test_tasks_of_a_mixed_source_can_be_told_apart():
    tasks = open_source("catalog + catalog:single + catalog:worded").tasks("test", 120)
    assert len({task.ref for task in tasks}) == len(tasks)


def test_an_unknown_argument_is_refused():
    with pytest.raises(UnknownTask, match="use catalog"):
        open_catalog("kitchen")
