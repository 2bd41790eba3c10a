"""Reads BFCL's rows of several turns: calls of classes as Python writes them, and functions that come later or never.

A turn may hold messages, or nothing where a function that was missing is offered now. Its calls are made one after
another. A turn in which nothing may be called is right as a refusal where the function that it needs is still missing;
any other asks the person for something, which no answer states.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orchestrator.reader.refusal import REFUSAL
from pool_registry.actions import JsonValue, storable
from pool_registry.python_source import parse_expression
from pool_registry.text import one_line, shorten
from trainer.tasks.tool_use.chat import read_chat
from trainer.tasks.tool_use.conversation import ChatTurn, Conversation, Tool, ToolCall
from trainer.tasks.tool_use.tools import read_call, read_tools

Record = Mapping[str, Any]
# What the suite itself says for the person in a turn without messages.
MORE_FUNCTIONS = "I have updated some more functions you can choose from. What about now?"
ASKS = "nothing may be called here: the person must be asked for what is missing, which no answer can state"


def is_multi_turn(record: Record) -> bool:
    """Whether a row's answers are lists of calls, one for each of its turns."""
    truth = record.get("ground_truth")
    return isinstance(truth, list) and any(isinstance(turn, list) for turn in truth)


def read_multi_turn(record: Record) -> Conversation:
    """The conversation of such a row. Raises ValueError saying what is wrong."""
    truth, rounds = record["ground_truth"], record.get("question")
    if not isinstance(rounds, list) or len(rounds) != len(truth):
        raise ValueError("question: there must be as many turns as in ground_truth")
    tools = {tool.name: tool for tool in read_tools(list(_list_called(record)))}
    missing = _read_missing(record.get("missed_function"))
    turns: list[ChatTurn] = []
    for place, (messages, calls) in enumerate(zip(rounds, truth, strict=True)):
        turns += read_chat({"messages": messages}).turns or [ChatTurn("user", MORE_FUNCTIONS)]
        lacks = tuple(name for start, names in missing.items() if place < start for name in names)
        turns += _read_turn(calls, tools) or [_write_no_call(lacks, place + 1 in missing)]
    return Conversation(tuple(tools.values()), tuple(turns))


def _list_called(record: Record) -> Iterator[object]:
    """The descriptions of the functions that a row calls."""
    names = {_name_function(text) for turn in record["ground_truth"] if isinstance(turn, list) for text in turn}
    functions = record.get("function")
    for row in functions if isinstance(functions, list) else ():
        if isinstance(row, Mapping) and row.get("name") in names:
            yield row


def _read_missing(value: object) -> dict[int, list[str]]:
    """The turns, from 0, at which functions that were missing until then are offered, with their names."""
    if not isinstance(value, Mapping):
        return {}
    return {int(turn): list(map(str, names)) for turn, names in value.items() if str(turn).isdecimal()}


def _write_no_call(lacks: tuple[str, ...], is_offered_next: bool) -> ChatTurn:
    if is_offered_next:
        return ChatTurn("assistant", REFUSAL, refuses=True, lacks=lacks)
    return ChatTurn("assistant", "", learn=False, problem=ASKS)


def _read_turn(calls: object, tools: Mapping[str, Tool]) -> list[ChatTurn]:
    """A turn for each call: in these rows a call may need what the one before it did."""
    if not isinstance(calls, list):
        raise ValueError("ground_truth: every turn must be a list of calls")
    return [ChatTurn("assistant", "", (_read_python_call(text, tools),)) for text in calls]


def _name_function(text: object) -> str:
    return str(text).partition("(")[0].strip()


def _read_python_call(text: object, tools: Mapping[str, Tool]) -> ToolCall:
    """A call such as grep(file_name='a.txt', pattern='x'). Raises ValueError."""
    shown = shorten(one_line(str(text)), 60)
    try:
        node = parse_expression(str(text))
        if not isinstance(node, ast.Call):
            raise TypeError("no call")
        arguments = {str(word.arg): _read_literal(word.value) for word in node.keywords}
        values = [_read_literal(value) for value in node.args]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        example = "grep(file_name='a.txt')"
        raise ValueError(f"ground_truth: {shown!r} is no call with plain values such as {example}") from error
    name = ast.unparse(node.func)
    return read_call({"name": name, "arguments": dict([*_name_values(name, values, tools), *arguments.items()])})


def _read_literal(node: ast.expr) -> JsonValue:
    value: JsonValue = storable(ast.literal_eval(node))
    return value


def _name_values(name: str, values: list[JsonValue], tools: Mapping[str, Tool]) -> Iterable[tuple[str, JsonValue]]:
    """Arguments without names, by the order in which the function's description lists them."""
    properties = tools[name].parameters.get("properties") if name in tools else None
    names = list(properties) if isinstance(properties, Mapping) else []
    if len(names) < len(values):
        raise ValueError(
            f"ground_truth: a call of {name} gives arguments without their names; give the descriptions of the "
            "functions as well (--answers multi_turn_func_doc)"
        )
    return zip(names, values, strict=False)
