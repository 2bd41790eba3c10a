"""Whatever a file holds, reading it ends in conversations, in sentences about its records, or in one sentence."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pool_registry.schemas.argument_schema import schema_problem
from tests.trainer.support.tool_use_files import BFCL_ANSWER, BFCL_QUESTION, GEMINI, HERMES, OPENAI, SHAREGPT, XLAM
from trainer.errors import UnusableTasks
from trainer.tasks.sources.files.reader import ReadOptions
from trainer.tasks.tool_use.places import read_tool_bytes
from trainer.tasks.tool_use.reader import read_record
from trainer.tasks.tool_use.recorded_pool import make_recorded_pool
from trainer.tasks.tool_use.tools import read_schema

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
RECORDS = [OPENAI, SHAREGPT, GEMINI, HERMES, XLAM, {**BFCL_QUESTION, **BFCL_ANSWER}]


@st.composite
def damaged_records(draw: st.DrawFn) -> object:
    """A right record with one of its parts, at any depth, replaced by some value."""
    record = json.loads(json.dumps(draw(st.sampled_from(RECORDS))))
    place, key = record, draw(st.sampled_from(sorted(record)))
    while isinstance(place[key], list | dict) and place[key] and draw(st.booleans()):
        place = place[key]
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    place[key] = draw(VALUES)
    return record


@settings(deadline=None, max_examples=300)
@given(damaged_records())
def test_a_damaged_record_is_a_conversation_or_a_sentence(record):
    try:
        name, conversation = read_record(record)
    except ValueError as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert name and all(schema_problem(dict(tool.parameters)) == "" for tool in conversation.tools)


@settings(deadline=None, max_examples=100)
@given(st.lists(damaged_records(), min_size=1, max_size=3))
def test_every_record_of_a_damaged_file_is_a_task_or_has_a_problem(records):
    content = "\n".join(map(json.dumps, records)).encode()
    data = read_tool_bytes(content, "this", ReadOptions())
    if data is not None:
        lines = make_recorded_pool(data, "shop").read.lines
        assert all((line.task is None) == bool(line.problems) for line in lines)


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=200) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused_in_a_sentence(content):
    try:
        read_tool_bytes(content, "this", ReadOptions())
    except UnusableTasks as error:
        assert "\n" not in str(error)


@settings(deadline=None, max_examples=200)
@given(VALUES)
def test_any_schema_becomes_one_or_is_refused(value):
    schema = read_schema(value)
    assert schema["type"] == "object" and isinstance(schema_problem(schema), str)


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ("dict", {"type": "object"}),
        ("float", {"type": "number"}),
        ("any", {}),
        ("String", {"type": "string"}),
        ("str, optional", {"type": "string"}),
        ("List[int]", {"type": "array", "items": {"type": "integer"}}),
        ("Optional[str]", {"type": "string"}),
        ("Tuple[int, int]", {"type": "array"}),
        ("Union[int, str]", {}),
        (["string", "null"], {"type": ["string", "null"]}),
    ],
)
def test_types_of_other_languages_are_those_of_json_schema(written, rule):
    assert read_schema({"x": {"type": written}})["properties"]["x"] == rule


def test_a_table_of_parameters_requires_those_without_a_default():
    table = {"type": {"type": "str"}, "n": {"type": "int", "default": 3}, "s": {"type": "str, optional"}}
    assert read_schema(table)["required"] == ["type"]


def test_a_property_may_be_marked_as_required_itself():
    schema = {"type": "dict", "properties": {"a": {"type": "int", "required": True}, "b": {"type": "int"}}}
    assert read_schema(schema)["required"] == ["a"]
    assert read_schema({"type": "object", "properties": None})["properties"] == {}
