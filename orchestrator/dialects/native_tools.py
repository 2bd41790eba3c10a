"""How an agent calls the tools that it is given: by its endpoint's own tool calling, under its own role.

It differs from `tool_calls`, which orchestrators write, in what the agent need not know: there are no access lists and
no quotes, arguments and answer are taken as they are written, and the system prompt is the agent's role.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.dialects.tool_calls import ToolCallsDialect, parse_calls
from orchestrator.plan import Step, Turn
from orchestrator.quotes import escape_value, substitute
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool

INSTRUCTIONS = """\
You may call functions; calls in one turn run in parallel, and their outputs come back to you.
Write each call as <tool_call>\n{"name": NAME, "arguments": {...}}\n</tool_call>
When you know the answer, write it without any call."""


class NativeToolsDialect(ToolCallsDialect):
    """`role` is the system prompt of the agent."""

    name = "native_tools"

    def __init__(self, role: str = "") -> None:
        self._role = role

    def system_prompt(self, pool: LivePool) -> str | None:
        return "\n\n".join(filter(None, (self._role, INSTRUCTIONS)))

    def tools(self, pool: LivePool) -> list[Mapping[str, JsonValue]] | None:
        return [
            {
                "type": "function",
                "function": {
                    "name": worker.spec.name,
                    "description": worker.spec.description,
                    "parameters": dict(worker.parameters),
                },
            }
            for worker in pool.workers.values()
        ]

    def call_arguments(self, step: Step) -> Mapping[str, JsonValue]:
        plain = substitute(step.arguments, {})  # no step is quoted: every dollar of theirs is doubled
        assert isinstance(plain, dict), "arguments are an object"
        return plain

    def _parse(self, text: str, first_id: int, workers: Sequence[str]) -> Turn:
        turn = parse_calls(text, first_id, takes_access=False)
        steps = tuple(replace(step, arguments=_escape(step.arguments)) for step in turn.steps)
        return replace(turn, steps=steps, answer=escape_value(turn.answer))


def _escape(arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: escape_value(value) for name, value in arguments.items()}
