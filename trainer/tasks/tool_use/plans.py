"""A conversation as a task: its query, the plan that its calls form, and the answer to which they lead.

Each request that was met with calls, or rightly refused, is a task: what the user had said until then is the query.
Calls of one turn run side by side. A later call quotes what an earlier one returned where it took its arguments from
there, and else comes after the calls of the turn before. The answer is what the last calls return; of one that
returns an object, the one field of it that the assistant's reply states.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain

from orchestrator.dialects.base import MAX_TURN_STEPS
from orchestrator.plan import Step
from orchestrator.prompt import write_query
from orchestrator.quotes import escape_value, select_field
from orchestrator.reader.refusal import REFUSAL
from pool_registry.actions import JsonValue, as_text
from trainer.tasks.sources.jsonl import RefusalRule, TaskLine, TextRule
from trainer.tasks.tool_use.conversation import ChatTurn, Conversation, ToolCall

MAX_LEAVES = 500  # of an output that are looked at
MAX_PATH = 8  # names and places in a quote, as in orchestrator.plan.REFERENCE
MIN_QUOTED_CHARS = 2  # shorter values are alike by chance
_NAME = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Request:
    """A query and the calls that met it, in rounds; `reply` is what the assistant said in the end, "" where nothing.
    `refuses` and `lacks` are as in ChatTurn; a `problem` says why the request makes no task."""

    query: str
    rounds: tuple[tuple[ToolCall, ...], ...]
    reply: str
    refuses: bool = False
    lacks: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call as a step makes it: the worker that stands for the tool, and what it returns; `is_recorded` is False where
    that is the call itself."""

    worker: str
    arguments: Mapping[str, JsonValue]
    output: JsonValue
    is_recorded: bool = True


def list_requests(conversation: Conversation) -> list[Request]:
    """The requests of a conversation that were met with calls, or rightly refused. A later one has the conversation
    before it in its query, as a served pool reads one."""
    requests: list[Request] = []
    texts: list[str] = []
    earlier: list[tuple[str, str]] = []
    rounds: list[tuple[ToolCall, ...]] = []
    reply = ""
    end: ChatTurn | None = None  # the turn that makes a request of what called nothing
    for turn in (*conversation.turns, None):
        if (rounds or end) and (turn is None or turn.speaker == "user"):
            question = "\n\n".join(filter(None, texts))
            query = write_query(question, earlier) if question else ""
            requests.append(_make_request(query, rounds, reply, end))
            earlier += [("user", question), *([("assistant", reply)] if reply else [])]
            texts, rounds, reply, end = [], [], "", None
        if turn is None:
            break
        if turn.speaker == "user":
            texts.append(turn.text)
        elif turn.calls:
            rounds.append(turn.calls)
        elif turn.refuses or turn.problem:
            end, reply = turn, turn.text
        elif rounds and turn.speaker == "assistant":
            reply = turn.text
    return requests


def _make_request(query: str, rounds: Sequence[tuple[ToolCall, ...]], reply: str, end: ChatTurn | None) -> Request:
    if end is None:
        return Request(query, tuple(rounds), reply)
    return Request(query, tuple(rounds), reply, end.refuses, end.lacks, end.problem)


def check_request(request: Request) -> None:
    """Raise ValueError where a request makes no task."""
    if request.problem:
        raise ValueError(request.problem)
    if not request.query:
        raise ValueError("the user says nothing before the first call")
    if sum(map(len, request.rounds)) > MAX_TURN_STEPS:
        raise ValueError(f"it makes more than {MAX_TURN_STEPS} calls, which are too many for a plan")


def plan_task(request: Request, rounds: Sequence[Sequence[PlannedCall]]) -> TaskLine:
    """The task of a request whose calls are made by workers."""
    if request.refuses:
        plan: dict[str, JsonValue] = {"steps": [], "answer": REFUSAL}
        return TaskLine(query=request.query, verifier=RefusalRule(kind="refusal"), plan=plan)
    steps: list[Step] = []
    outputs: dict[int, JsonValue] = {}
    before: list[int] = []
    for calls in rounds:
        first = len(steps) + 1
        for number, call in enumerate(calls, start=first):
            steps.append(_plan_step(number, call, before, {k: outputs[k] for k in range(1, first)}, request.query))
            outputs[number] = call.output
        before = list(range(first, len(steps) + 1))
    unrecorded = {number for number, call in enumerate(chain(*rounds), start=1) if not call.is_recorded}
    ends = _list_ends(steps, unrecorded)
    quotes, values = zip(*(_choose_value(k, outputs[k], request, len(ends) == 1) for k in ends), strict=True)
    document: dict[str, JsonValue] = {
        "steps": [
            {"worker": step.worker, "arguments": dict(step.arguments), "access": list(step.access)} for step in steps
        ],
        "answer": " and ".join(quotes),
    }
    rule = None if len(values) == 1 else TextRule(kind="states_all")
    return TaskLine(
        query=request.query, answer=values[0] if len(values) == 1 else list(values), verifier=rule, plan=document
    )


def _plan_step(
    number: int, call: PlannedCall, before: Sequence[int], outputs: Mapping[int, JsonValue], query: str
) -> Step:
    """The call as a step that quotes earlier outputs where its arguments come from there."""
    arguments: dict[str, JsonValue] = {}
    sources: set[int] = set()
    for name, value in call.arguments.items():
        source = _find_source(value, outputs, query)
        arguments[name] = source[1] if source else escape_value(value)
        sources |= {source[0]} if source else set()
    return Step(number, call.worker, arguments, tuple(sorted(sources or before)))


def _find_source(value: JsonValue, outputs: Mapping[int, JsonValue], query: str) -> tuple[int, str] | None:
    """The latest step that returned a value, and its quote; None where the query says it, or no step does."""
    text = as_text(value)
    if isinstance(value, bool) or len(text) < MIN_QUOTED_CHARS or text.casefold() in query.casefold():
        return None
    for number in sorted(outputs, reverse=True):
        for path, leaf in (("", outputs[number]), *_list_leaves(outputs[number])):
            if type(leaf) is type(value) and leaf == value:
                return number, f"${number}{path}"
    return None


def _list_ends(steps: Sequence[Step], unrecorded: AbstractSet[int]) -> list[int]:
    """The steps whose output no other step sees, and those that return their own call: that it was made is right."""
    seen = {k for step in steps for k in step.access}
    return [step.id for step in steps if step.id not in seen or step.id in unrecorded]


def _choose_value(number: int, output: JsonValue, request: Request, alone: bool) -> tuple[str, JsonValue]:
    """What of an output the answer is: its quote and its value."""
    stated = [(path, leaf) for path, leaf in _list_leaves(output) if alone and _is_stated(leaf, request)]
    if len({as_text(leaf) for _, leaf in stated}) == 1:
        path, leaf = stated[0]
        return f"${number}{path}", leaf
    is_plain = isinstance(output, str | int | float) and not isinstance(output, bool)
    return f"${number}", output if is_plain else as_text(output)


def _is_stated(leaf: JsonValue, request: Request) -> bool:
    """Whether the reply states a value that the query does not."""
    text = as_text(leaf)
    if isinstance(leaf, bool) or leaf is None or not text.strip():
        return False
    whole = re.compile(rf"(?<![\w.]){re.escape(text)}(?!\w|\.\d)", re.IGNORECASE)
    return whole.search(request.reply) is not None and whole.search(request.query) is None


def _list_leaves(value: JsonValue) -> list[tuple[str, JsonValue]]:
    """The texts and numbers inside an object or a list, with the paths that a quote has for them."""
    leaves = []
    for path, leaf in _walk(value, "", MAX_PATH):
        if select_field(value, path) == (leaf, ""):
            leaves.append((path, leaf))
        if len(leaves) >= MAX_LEAVES:
            break
    return leaves


def _walk(value: JsonValue, path: str, depth: int) -> Iterator[tuple[str, JsonValue]]:
    parts: list[tuple[str, JsonValue]] = []
    if isinstance(value, dict):
        parts = [(f".{name}", item) for name, item in value.items() if _NAME.fullmatch(name)]
    elif isinstance(value, list):
        parts = [(f"[{place}]", item) for place, item in enumerate(value[:MAX_LEAVES])]
    elif path and isinstance(value, str | int | float):
        yield path, value
    for step, item in parts if depth else ():
        yield from _walk(item, f"{path}{step}", depth - 1)
