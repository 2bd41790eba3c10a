"""Reads queries with the calls that are right: xLAM and APIGen, BFCL with its possible answers, and When2Call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice, product
from typing import Any

from orchestrator.reader.refusal import REFUSAL
from pool_registry.actions import JsonValue
from pool_registry.text import one_line, shorten
from trainer.tasks.tool_use.chat import read_chat
from trainer.tasks.tool_use.conversation import ChatTurn, Conversation, Tool, ToolCall
from trainer.tasks.tool_use.loose_json import load_objects
from trainer.tasks.tool_use.multi_turn import is_multi_turn, read_multi_turn
from trainer.tasks.tool_use.parts import read_text
from trainer.tasks.tool_use.tagged_calls import read_calls, take_tagged_calls
from trainer.tasks.tool_use.tools import read_call, read_tools

MAX_ALTERNATIVES = 32  # of a call: so many ways to write it are right at most
LEFT_OUT = ""  # among the possible values of an argument: it may be left out
NOTHING_FITS = "irrelevance"  # in the ids of the suite's rows in which no function serves the question
SOMETHING_FITS = "relevance"  # in the ids of rows in which any call is right
UNSAID = "a call is right here, and the suite does not say which, so that it makes no task"
CALLS_TOOL, NO_TOOL_FITS = "tool_call", "cannot_answer"  # kinds of replies in When2Call
CLASSES = "involved_classes"  # of a row whose functions are described elsewhere, if at all
NO_TRUTH = "it has no ground_truth; give the file of possible answers as well (--answers FILE)"


def read_xlam(record: Mapping[str, Any]) -> Conversation:
    """{"query": ..., "tools": [...], "answers": [calls]}, where lists may be text. Raises ValueError."""
    query = read_text(record.get("query"))
    answers = record.get("answers")
    if isinstance(answers, str):
        try:
            answers = load_objects(answers)
        except ValueError as error:
            raise ValueError("answers: this is no JSON; give a list of calls") from error
    if not isinstance(answers, list):
        raise ValueError("answers: give a list of calls")
    return _ask(query, read_tools(record.get("tools")), [read_call(call) for call in answers])


def read_bfcl(record: Mapping[str, Any]) -> Conversation:
    """{"question": [[messages]], "function": [...], "ground_truth": [{name: {argument: [values]}}]}, or lists of calls
    for each of several turns. Raises ValueError, also where the answers are in another file or are no calls."""
    if "question" not in record:
        raise ValueError("it has a ground_truth and no question; give the file of questions, and this one as --answers")
    if is_multi_turn(record):
        return read_multi_turn(record)
    truth = record.get("ground_truth", [] if NOTHING_FITS in _get_id(record) else None)
    if truth is None:
        raise ValueError(UNSAID if SOMETHING_FITS in _get_id(record) else NO_TRUTH)
    if not record.get("function"):
        raise ValueError("it offers no function, so that nothing of it can be replayed")
    turns = read_chat({"messages": _take_round(record["question"])}).turns
    tools = read_tools(record["function"])
    if not isinstance(truth, list):
        raise ValueError('ground_truth: give a list such as [{"get_stock": {"item": ["tea"]}}]')
    calls = tuple(_read_possible(call, tools) for call in truth)
    end = ChatTurn("assistant", "", calls) if calls else ChatTurn("assistant", REFUSAL, refuses=True)
    return Conversation(tools, (*turns, end))


def is_when2call(record: Mapping[str, Any]) -> bool:
    """Whether a record has a reply of each kind, and says which kind is right."""
    return {"question", "tools", "answers", "correct_answer"} <= record.keys()


def read_when2call(record: Mapping[str, Any]) -> Conversation:
    """{"question": ..., "tools": [...], "answers": {kind: reply}, "correct_answer": kind}. Raises ValueError."""
    kind, replies = record["correct_answer"], record["answers"]
    if not isinstance(replies, Mapping) or not isinstance(kind, str) or not isinstance(replies.get(kind), str):
        raise ValueError(f"answers: there is none of the kind {shorten(one_line(str(kind)), 40)}, which is right")
    query, tools, reply = read_text(record["question"]), read_tools(record["tools"]), replies[kind]
    if kind == CALLS_TOOL:
        return _ask(query, tools, take_tagged_calls(reply)[1] or read_calls(reply))
    refuses = kind == NO_TOOL_FITS
    end = ChatTurn("assistant", REFUSAL if refuses else reply, refuses=refuses)
    return Conversation(tools, (ChatTurn("user", query), end))


def _take_round(question: object) -> object:
    """The messages of a question of one turn. Raises ValueError where there are several."""
    rounds = question if isinstance(question, list) else [{"role": "user", "content": question}]
    if not rounds or not isinstance(rounds[0], list):
        return rounds
    if len(rounds) > 1:
        raise ValueError("it has several turns, and its ground_truth has no list of calls for each")
    return rounds[0]


def join_answers(records: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Records with the possible answers that stand elsewhere under the same id; those whose functions are classes, with
    the descriptions of functions that stand elsewhere."""
    rows = list(records)
    descriptions = [row for _, row in rows if _is_description(row)]
    joins = any(CLASSES in row for _, row in rows)
    answers = {_get_id(row): row["ground_truth"] for _, row in rows if "ground_truth" in row and "question" not in row}
    questions = {_get_id(row) for _, row in rows if "question" in row}
    for number, row in rows:
        if joins and _is_description(row):
            continue
        if CLASSES in row and "function" not in row:
            row = {**row, "function": descriptions}
        if "question" in row and "ground_truth" not in row and _get_id(row) in answers:
            yield number, {**row, "ground_truth": answers[_get_id(row)]}
        elif "question" in row or _get_id(row) not in questions:
            yield number, row


def _is_description(row: Mapping[str, Any]) -> bool:
    """Whether a record describes a function."""
    return isinstance(row.get("name"), str) and isinstance(row.get("parameters"), Mapping) and "question" not in row


def _get_id(row: Mapping[str, Any]) -> str:
    return str(row.get("id"))


def _ask(query: str, tools: tuple[Tool, ...], calls: Iterable[ToolCall]) -> Conversation:
    return Conversation(tools, (ChatTurn("user", query), ChatTurn("assistant", "", tuple(calls))))


def _read_possible(value: object, tools: Iterable[Tool]) -> ToolCall:
    """A call of {name: {argument: [every value that is right]}}: the first of each, and the other ways to write it."""
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ValueError(f"ground_truth: {shorten(one_line(str(value)), 60)} is no function with its arguments")
    ((name, arguments),) = value.items()
    if not isinstance(arguments, Mapping) or not all(isinstance(values, list) for values in arguments.values()):
        raise ValueError(f"ground_truth: the arguments of {shorten(str(name), 60)} must be lists of possible values")
    required = next((tool.parameters.get("required") for tool in tools if tool.name == name), None)
    needed = set(required) if isinstance(required, list) else set()
    choices = [_list_choices(values, argument in needed) for argument, values in arguments.items()]
    ways = [
        {argument: part[0] for argument, part in zip(arguments, way, strict=True) if part}
        for way in islice(product(*choices), MAX_ALTERNATIVES)
    ]
    return replace(read_call({"name": name, "arguments": ways[0]}), alternatives=tuple(ways[1:]))


def _list_choices(values: list[Any], is_needed: bool) -> list[tuple[JsonValue, ...]]:
    """The ways to write an argument, () where it is left out: that first, where it may be."""
    written: list[tuple[JsonValue, ...]] = [(_take_first(value),) for value in values if value not in (LEFT_OUT, None)]
    if LEFT_OUT in values and not is_needed:
        return [(), *written]
    return written or [(LEFT_OUT,) if is_needed else ()]


def _take_first(value: Any) -> JsonValue:
    """A possible value; inside an object, the first of each of its fields."""
    if isinstance(value, Mapping) and value and all(isinstance(inner, list) for inner in value.values()):
        firsts = {name: inner[0] if inner else None for name, inner in value.items()}
        return {name: _take_first(inner) for name, inner in firsts.items() if inner not in (LEFT_OUT, None)}
    return [_take_first(inner) for inner in value] if isinstance(value, list) else value
