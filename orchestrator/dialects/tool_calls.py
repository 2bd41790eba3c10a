"""Dialect `tool_calls`: the chat template's own tool calling, parallel calls in one assistant turn.

Each worker is a function with an extra parameter `access`, so any API model can be an orchestrator or a
teacher. As text, a call is the block that open models write and that the chat adapter makes of an API's
structured calls:

    <tool_call>
    {"name": "sql", "arguments": {"query": "...", "access": []}}
    </tool_call>

Each output comes back as a message of the role tool with the call's id. A turn without calls is the answer. Prices are
written with dollars in prose, so an answer quotes a step only when it is nothing but `$k`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.dialects.base import MAX_TURN_STEPS, BaseDialect, build_step, load_json
from orchestrator.plan import Step, Turn
from orchestrator.quotes import WHOLE_QUOTE, escape
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import LivePool, LiveWorker

_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_ESCAPED = re.compile(rf"\${WHOLE_QUOTE.pattern}")
_TAG = re.compile(r"</?(?:tool_call|think)>")

ACCESS_PARAMETER: dict[str, JsonValue] = {
    "type": "array",
    "items": {"type": "integer"},
    "description": "Numbers of the earlier calls whose output this call may see. "
    "Calls are numbered 1, 2, 3 ... over the whole conversation; $k in an argument quotes call k.",
}

INSTRUCTIONS = """\
Call functions to solve the task. You may call several in one turn; those that do not depend on each other run in parallel.
- Calls are numbered 1, 2, 3 ... over the whole conversation, in the order in which you write them.
- A call sees only its arguments and the outputs of the calls listed in its `access` (earlier calls only).
- $k inside an argument is replaced by call k's output; k must be in that call's access. $$ is a dollar.
- Write each call as <tool_call>\n{"name": NAME, "arguments": {..., "access": []}}\n</tool_call>
- When you know the answer, write it without any call; write just $k to give call k's output as the answer."""  # noqa: E501


class ToolCallsDialect(BaseDialect):
    name = "tool_calls"
    calls_tools = True

    def instructions(self, pool: LivePool) -> str:
        return INSTRUCTIONS

    def tools(self, pool: LivePool) -> list[Mapping[str, JsonValue]] | None:
        return [_describe_function(worker) for worker in pool.workers.values()]

    def _parse(self, text: str, first_id: int, workers: Sequence[str]) -> Turn:
        turn = parse_calls(text, first_id)
        if not isinstance(turn.answer, str):
            return turn
        quoted = WHOLE_QUOTE.fullmatch(turn.answer) or _ESCAPED.fullmatch(turn.answer)
        return turn if quoted else replace(turn, answer=escape(turn.answer))

    def format(self, turn: Turn, workers: Sequence[str]) -> str:
        """Only the calls when a turn has both: in this dialect the answer is a turn of its own."""
        if not turn.steps:
            answer = as_text(turn.answer)
            return answer if _ESCAPED.fullmatch(answer) else answer.replace("$$", "$")
        return "\n".join(_format_call(step) for step in turn.steps)


def parse_calls(text: str, first_id: int, takes_access: bool = True) -> Turn:
    """The calls in a text, or the text around its thoughts as the answer, as it is written. Without `takes_access` an
    argument of that name is the tool's own."""
    visible = _THOUGHT.sub("", text)
    calls = [match.group(1) for match in _CALL.finditer(visible)]
    if len(calls) > MAX_TURN_STEPS:
        return Turn(error=f"a turn may hold {MAX_TURN_STEPS} calls at most", text=text)
    if calls:
        steps = (_parse_call(call, first_id + index, takes_access) for index, call in enumerate(calls))
        return Turn(tuple(steps), text=text)
    answer = visible.strip()
    if not answer:
        return Turn(error="the turn holds neither a call nor an answer", text=text)
    return Turn(answer=answer, text=text)


def _parse_call(call: str, step_id: int, takes_access: bool) -> Step:
    try:
        parsed = load_json(call.strip())
    except ValueError as error:
        return Step(step_id, "").with_problem(f"the call is not JSON: {error}")
    if not isinstance(parsed, Mapping):
        return Step(step_id, "").with_problem("a call must be an object with name and arguments")
    arguments = parsed.get("arguments", {})
    if isinstance(arguments, str):  # APIs send the arguments as JSON text
        try:
            arguments = load_json(arguments)
        except ValueError as error:
            return build_step(step_id, parsed.get("name"), {}, None).with_problem(f"arguments are not JSON: {error}")
    access = None
    if takes_access and isinstance(arguments, Mapping):
        access = arguments.get("access")
        arguments = {key: value for key, value in arguments.items() if key != "access"}
    return build_step(step_id, parsed.get("name"), arguments, access)


def _format_call(step: Step) -> str:
    call = {"name": step.worker, "arguments": {**step.arguments, "access": list(step.access)}}
    text = json.dumps(call, ensure_ascii=False)
    if _TAG.search(text):  # inside a string: must not read as structure
        text = text.replace("<", "\\u003c")
    return f"<tool_call>\n{text}\n</tool_call>"


def _describe_function(worker: LiveWorker) -> Mapping[str, JsonValue]:
    schema = dict(worker.parameters)
    properties = schema.get("properties")
    properties = dict(properties) if isinstance(properties, Mapping) else {}
    schema["properties"] = {**properties, "access": ACCESS_PARAMETER}
    return {
        "type": "function",
        "function": {"name": worker.spec.name, "description": worker.spec.description, "parameters": schema},
    }
