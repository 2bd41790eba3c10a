"""Grammars of a reader's passes: which lines they accept, and that whatever they accept follows the schemas."""

from __future__ import annotations

import json
import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.grammars.reader_grammars import fill_grammar, needs_grammar
from orchestrator.quotes import references
from tests.orchestrator.support.grammar_walk import accepts, walk

ROUTE = {"type": "object", "properties": {"route": {"type": "string"}}, "required": ["route"]}
CONVERT = {
    "type": "object",
    "properties": {
        "value": {"type": "number"},
        "unit": {"enum": ["km", "mile"]},
        "round": {"type": "boolean"},
        "digits": {"type": "integer"},
    },
    "required": ["value", "unit"],
}


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("1. distance between two airports", True),
        ("1. distance between two airports\n2. convert kilometers to miles (1)", True),
        ("1. a\n2. b\n3. sum of both, in words (1, 2)", True),
        ("1. convert (1)", False),
        ("1. a\n2. b (2)", False),
        ("1. a\n3. b", False),
        ("1. a\n", False),
        ("1. ", False),
        ("a", False),
    ],
)
def test_needs_are_numbered_lines_that_name_earlier_ones(text, accepted):
    assert accepts(needs_grammar(3), text) is accepted


def test_no_more_needs_than_steps():
    assert accepts(needs_grammar(2), "1. a\n2. b")
    assert not accepts(needs_grammar(2), "1. a\n2. b\n3. c")


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ('1. {"route": "LHR to JFK"}\n2. {"value": "$1", "unit": "km"}\n= $2', True),
        ('1. {"route": "LHR to JFK"}\n2. {"value": 1.5, "unit": "$1", "digits": 3}\n= $2 of $1', True),
        ('1. {"route": "$$5 \\"to\\" $x"}\n2. {"value": -3, "unit": "km", "round": true}\n= it is $$2', True),
        ('1. {"route": "a"}\n2. {"value": "$1[*].km", "unit": "km"}\n= $1[*].name and $2', True),
        ('1. {"route": "$1"}\n2. {"value": 1, "unit": "km"}\n= $2', False),
        ('1. {"route": "a"}\n2. {"value": "$2", "unit": "km"}\n= $2', False),
        ('1. {"route": "a"}\n2. {"value": "$12", "unit": "km"}\n= $2', False),
        ('1. {"route": "a"}\n2. {"value": "5", "unit": "km"}\n= $2', False),
        ('1. {"route": "a"}\n2. {"value": 1, "unit": "foot"}\n= $2', False),
        ('1. {"route": "a"}\n2. {"value": 1}\n= $2', False),
        ('1. {"route": "a"}\n2. {"value": 1, "unit": "km", "other": 1}\n= $2', False),
        ('1. {"route": "a"}\n2. {"value": 1, "unit": "km"}\n= $3', False),
        ('1. {"route": "a"}\n2. {"value": 1, "unit": "km"}', False),
    ],
)
def test_arguments_follow_the_schemas_and_quote_earlier_lines(text, accepted):
    assert accepts(fill_grammar([ROUTE, CONVERT]), text) is accepted


def test_a_worker_without_parameters_and_no_worker_at_all():
    assert accepts(fill_grammar([{"type": "object"}]), "1. {}\n= $1")
    assert accepts(fill_grammar([]), "= no worker can do this")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.sampled_from([ROUTE, CONVERT]), min_size=1, max_size=4))
def test_every_accepted_reply_can_be_read(seed, schemas):
    *lines, answer = walk(fill_grammar(schemas), Random(seed)).split("\n")
    assert answer.startswith("= ") and references(answer) <= set(range(1, len(schemas) + 1))
    for number, (line, schema) in enumerate(zip(lines, schemas, strict=True), 1):
        arguments = json.loads(line.removeprefix(f"{number}. "))
        assert set(schema["required"]) <= arguments.keys() <= schema["properties"].keys()
        assert references(arguments) <= set(range(1, number))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_every_accepted_list_of_needs_can_be_read(seed, steps):
    lines = walk(needs_grammar(steps), Random(seed)).split("\n")
    assert 1 <= len(lines) <= steps
    for number, line in enumerate(lines, 1):
        match = re.fullmatch(rf"{number}\. ([^()]+?)(?: \(([0-9, ]+)\))?", line)
        assert match is not None
        assert all(1 <= int(k) < number for k in (match[2] or "").split(", ") if k)


def test_a_refusal_takes_the_place_of_a_plan():
    assert accepts(needs_grammar(2, "No worker"), "No worker") and accepts(needs_grammar(2, "No worker"), "1. a")
    grammar = fill_grammar([ROUTE], ["No worker: a", "No worker"])
    assert accepts(grammar, "No worker: a") and accepts(grammar, '1. {"route": "x"}\n= $1')
    assert not accepts(grammar, '1. {"route": "x"}\n= No worker: b'[:17] + "\n") and not accepts(grammar, "= yes")
