"""Parsers are total and quick on any text; what a dialect writes it reads back."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.dialects import DIALECTS
from orchestrator.dialects.base import MAX_TURN_CHARS, MAX_TURN_STEPS
from orchestrator.engine.events import TurnTaken, dump_event, load_event
from orchestrator.plan import Step, Turn
from orchestrator.quotes import WHOLE_QUOTE, escape
from tests.trust.trials import choose_trials, count_trials

WORKERS = ["sql", "units", "solver"]
EVERY = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS.keys())


def parse(name: str, text: str) -> Turn:
    return DIALECTS[name].parse(text, 1, WORKERS)


def check_total(dialect, text: str) -> Turn:
    count_trials()
    turn = dialect.parse(text, 3, WORKERS)
    assert isinstance(turn, Turn)
    assert turn.error is not None or turn.steps or turn.has_answer
    assert [s.id for s in turn.steps] == list(range(3, 3 + len(turn.steps)))
    event = TurnTaken(1, turn, 0.0)
    assert load_event(dump_event(event)) == event, "whatever was parsed can be stored"
    return turn


FRAGMENTS = st.sampled_from(
    ['{"steps":', '{"answer":', "[", "]", "{", "}", '"', "'", "\\", ",", ":", "$1", "$$", "workers = [", "subtasks=[",
     "access: [", "<tool_call>", "</tool_call>", "<think>", "</think>", '{"worker":"sql","instruction":"x"}', "all",
     '"arguments":', '"access":', "1", "-1e999", "NaN", "9" * 30, "null", "true", "\x00", "\ud800", "\n", " " * 40]
)  # fmt: skip


@EVERY
@settings(max_examples=choose_trials(150), deadline=None)
@given(st.one_of(st.text(), st.lists(FRAGMENTS, max_size=40).map("".join)))
def test_any_text_is_a_turn_or_an_error(dialect, text):
    check_total(dialect, text)


@EVERY
@settings(max_examples=choose_trials(60), deadline=None)
@given(st.binary())
def test_any_bytes_read_as_text_are_a_turn_or_an_error(dialect, data):
    check_total(dialect, data.decode("utf-8", "surrogateescape"))
    check_total(dialect, data.decode("latin-1"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@EVERY
@settings(max_examples=choose_trials(100), deadline=None)
@given(
    st.fixed_dictionaries({}, optional={"worker": JSON, "instruction": JSON, "arguments": JSON, "access": JSON}), JSON
)
def test_fields_of_any_shape_are_marked_and_never_raise(dialect, fields, answer):
    plan = {"steps": [fields], "answer": answer}
    call = {"name": fields.get("worker"), "arguments": fields.get("arguments")}
    lists = [fields.get("worker")], [fields.get("instruction")], [fields.get("access")]
    check_total(dialect, json.dumps(plan))
    check_total(dialect, f"<tool_call>{json.dumps(call)}</tool_call>")
    check_total(dialect, "workers = {!r}\nsubtasks = {!r}\naccess = {!r}".format(*lists))


SIZE = MAX_TURN_CHARS
ADVERSARIAL = {
    "10 MB": "{" * 10_000_000,
    "brackets": "[" * SIZE,
    "braces": "{" * SIZE,
    "steps": '{"steps":' * (SIZE // 9),
    "steps in lists": '{"steps":[' * (SIZE // 10),
    "half objects": '{"a": 1' * (SIZE // 7),
    "objects": '{"a":1}' * (SIZE // 7),
    "strings": '{"' * (SIZE // 2),
    "gaps": "{ " * (SIZE // 2),
    "lines": '\n{"' * (SIZE // 3),
    "long string": '{"a": "' + '{"' * (SIZE // 2 - 10),
    "nul": "\x00" * SIZE,
    "surrogates": "\ud800" * SIZE,
    "calls": "<tool_call>" * (SIZE // 11),
    "thoughts": "<think>" * (SIZE // 7),
    "closed thoughts": "<think></think>" * (SIZE // 15),
    "labels": "workers = [ " * (SIZE // 12),
    "label gaps": "workers " * (SIZE // 8),
    "label space": "workers =" + " " * (SIZE - 9),
    "label signs": "workers" + ":=" * (SIZE // 2 - 4),
    "lists": "workers = " + "[" * 60_000 + "\nsubtasks = " + "[" * 60_000 + "\naccess = " + "[" * 60_000,
    "quotes": 'workers = ["' + "\\" * (SIZE - 20),
    "minus": "workers = [" + "-" * 60_000 + "1]\nsubtasks = ['a']\naccess = [[]]",
    "sums": "workers = [" + "1+" * 60_000 + "1]\nsubtasks = ['a']\naccess = [[]]",
    "digits": '{"answer": ' + "9" * (SIZE - 20) + "}",
    "numbers": '{"steps": [{"worker": "sql", "access": ["' + "9" * 5000 + '"]}]}',
    "dollars": '{"answer": "' + "$" * (SIZE - 20) + '"}',
    "deep answer": '{"answer": ' + "[" * 900 + "]" * 900 + "}",
    "deep arguments": '{"steps": [{"worker": "sql", "arguments": {"a": ' + "[" * 450 + "]" * 450 + "}}]}",
    "steps without end": '{"steps": [' + ",".join(["{}"] * 5000) + "]}",
}


@pytest.mark.medium
@EVERY
@pytest.mark.parametrize("name", ADVERSARIAL)
def test_the_worst_texts_are_read_in_linear_time(dialect, name):
    text = ADVERSARIAL[name]
    seconds = []
    for _ in range(2):
        started = time.perf_counter()
        turn = dialect.parse(text, 1, WORKERS)
        seconds.append(time.perf_counter() - started)
    check_total(dialect, text)
    assert min(seconds) < 5  # some 0.1 s; where time grows with the square it would be minutes
    assert len(turn.text) <= MAX_TURN_CHARS and len(turn.steps) <= MAX_TURN_STEPS


# What a dialect writes it reads back

text_ = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
tricky = text_ | st.sampled_from(
    ["$1", "$$", '{"a": 1}', "[1]", "<tool_call>x</tool_call>", "<think>", "'\"\\", "a\nb", " x "]
)
scalar = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | tricky
values = st.recursive(scalar, lambda v: st.lists(v, max_size=3) | st.dictionaries(text_, v, max_size=3), max_leaves=5)


@st.composite
def steps(draw: st.DrawFn) -> tuple[Step, ...]:
    made = []
    for k in range(1, draw(st.integers(0, 6)) + 1):
        access = draw(st.lists(st.integers(1, k - 1), unique=True)) if k > 1 else []
        arguments = draw(
            st.builds(lambda t: {"instruction": t}, tricky)
            | st.dictionaries(text_.filter(lambda key: key not in ("access", "instruction")), values, max_size=3)
        )
        made.append(Step(k, draw(st.sampled_from(WORKERS)), arguments, tuple(access)))
    return tuple(made)


def read_back(name: str, turn: Turn) -> Turn:
    dialect = DIALECTS[name]
    return dialect.parse(dialect.format(turn, WORKERS), 1, WORKERS)


@settings(max_examples=150, deadline=None)
@given(steps(), st.none() | values)
def test_plan_reads_back_what_it_writes(made, answer):
    if not made and answer is None:
        answer = "x"
    read = read_back("plan", Turn(made, answer))
    assert (read.steps, read.answer, read.error) == (made, answer, None)


@settings(max_examples=150, deadline=None)
@given(steps(), tricky | st.sampled_from(["$3", "$$3", "costs $$5"]))
def test_tool_calls_read_back_what_they_write(made, answer):
    if made:
        assert read_back("tool_calls", Turn(made)).steps == made
    elif answer.strip() and "<" not in answer:
        answer = answer.strip() if WHOLE_QUOTE.fullmatch(answer.strip()) else escape(answer.strip().replace("$$", "$"))
        assert read_back("tool_calls", Turn(answer=answer)).answer == answer


@settings(max_examples=150, deadline=None)
@given(steps().filter(bool))
def test_conductor_reads_back_what_it_writes(made):
    read = read_back("conductor", Turn(made, f"${made[-1].id}"))
    assert (read.steps, read.answer, read.error) == (made, f"${made[-1].id}", None)


# What models really write

PLAN = '{"steps": [{"worker": "sql", "instruction": "rows", "access": []}], "answer": "$1"}'
EXPECTED = (Step(1, "sql", {"instruction": "rows"}),)


@pytest.mark.parametrize(
    "text",
    [
        PLAN,
        f"Let me think.\n```json\n{PLAN}\n```\nDone.",
        f'First {{"steps": []}}, no: {PLAN}',
        "In LaTeX: " + "{x} " * 500 + PLAN,
        '{"a": ' * 200 + "oops " + PLAN,
        PLAN.replace('"access": []', '"access": null'),
    ],
)
def test_plan_finds_the_last_turn_in_any_talk(text):
    turn = parse("plan", text)
    assert (turn.steps, turn.answer) == (EXPECTED, "$1")


def test_tool_calls_take_apis_and_templates_alike():
    as_text = '<tool_call>{"name": "sql", "arguments": "{\\"query\\": \\"x\\", \\"access\\": [\\"1\\"]}"}</tool_call>'
    assert parse("tool_calls", as_text).steps == (Step(1, "sql", {"query": "x"}, (1,)),)
    two = '<think>{"name"}</think><tool_call>{"name": "sql"}<tool_call>{"name": "units"}'
    assert [s.worker for s in parse("tool_calls", two).steps] == ["sql", "units"]
    assert parse("tool_calls", "It costs $5 to $7.").answer == "It costs $$5 to $$7."
    assert parse("tool_calls", "$4").answer == "$4"


def test_conductor_takes_python_and_json_lists_and_the_word_all():
    text = "model_ids: [0, 'solver']\n**subtasks** = ['it\\'s $1', \"\\ud83d\\ude00\"]\naccess_list = [[], \"all\"]"
    turn = parse("conductor", text)
    assert [s.worker for s in turn.steps] == ["sql", "solver"]
    assert turn.steps[0].arguments == {"instruction": "it's $1"} and turn.steps[1].access == (1,)
    assert turn.answer == "$2"
    emoji = 'workers = [0]\nsubtasks = ["\\ud83d\\ude00"]\naccess = [[]]'
    assert parse("conductor", emoji).steps[0].arguments == {"instruction": "\U0001f600"}


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("plan", "I do not know", '"steps" or "answer"'),
        ("plan", "{}", '"steps" or "answer"'),
        ("plan", '{"steps": []}', '"answer"'),
        ("plan", '{"steps": {}}', "list"),
        ("plan", '{"answer": NaN}', "nan is not a JSON number"),
        ("plan", "x" * (MAX_TURN_CHARS + 1), "200,000 are allowed"),
        ("tool_calls", " ", "neither a call nor an answer"),
        ("tool_calls", "<think>hm</think>", "neither a call nor an answer"),
        ("conductor", "workers = [1]", "subtasks, access"),
        ("conductor", "workers = [1]\nsubtasks = []\naccess = []", "workers has 1, subtasks has 0"),
    ],
)
def test_a_text_without_a_turn_is_told_what_is_missing(name, text, says):
    assert says in parse(name, text).error


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ("3", "object with worker"),
        ('{"instruction": "x"}', "name of a worker"),
        ('{"worker": 3}', "name of a worker"),
        ('{"worker": "sql", "arguments": [1]}', "arguments must be an object"),
        ('{"worker": "sql", "access": "1"}', "list of step numbers"),
        ('{"worker": "sql", "access": "all"}', "list of step numbers"),
        ('{"worker": "sql", "access": [1.5]}', "list of step numbers"),
        ('{"worker": "sql", "access": [true]}', "list of step numbers"),
        ('{"worker": "sql", "arguments": {"a": 1e999}}', "not a JSON number"),
        ('{"worker": "sql", "arguments": {"a": %s}}' % ("[" * 70 + "]" * 70), "nested"),
    ],
)
def test_a_malformed_step_is_told_what_to_change(item, says):
    turn = parse("plan", '{"steps": [%s, {"worker": "sql", "instruction": "x"}]}' % item)
    assert says in turn.steps[0].problem and turn.steps[1].problem is None
