"""Dialect `plan`: one JSON object. Short and easy to learn: the default of trained models.

    {"steps": [{"worker": "sql", "instruction": "...", "access": []},
               {"worker": "units", "arguments": {"value": "$1", ...}, "access": [1]}], "answer": "$2"}

Text around the object (reasoning, code fences) is ignored; the last object that is a turn counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.dialects.base import MAX_TURN_STEPS, BaseDialect, build_step, parse_answer, shorthand
from orchestrator.plan import Step, Turn
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool

_OBJECT = re.compile(r'\{\s*+"')
_DECODER = json.JSONDecoder()
_MAX_EFFORT = 10_000_000  # characters: about 50 ms

INSTRUCTIONS = """\
Write one JSON object and nothing else:
{"steps": [{"worker": NAME, "instruction": TEXT, "access": [STEP NUMBERS]}, ...], "answer": VALUE}
- Steps are numbered 1, 2, 3 ... over the whole conversation. Steps that do not depend on each other run in parallel.
- A worker sees only its instruction and the outputs of the steps listed in its "access" (earlier steps only).
- $k inside an instruction or argument is replaced by step k's output; k must be in that step's access. $$ is a dollar.
- Use "arguments": {...} instead of "instruction" for workers with several parameters.
- "answer" ends the conversation; it may quote a step, as in "$4". Leave it out to see the outputs first.
Example: {"steps": [{"worker": "a", "instruction": "find x", "access": []}, {"worker": "b", "instruction": "double $1", "access": [1]}], "answer": "$2"}"""  # noqa: E501


class PlanDialect(BaseDialect):
    name = "plan"

    def instructions(self, pool: LivePool) -> str:
        return INSTRUCTIONS

    def _parse(self, text: str, first_id: int, workers: Sequence[str]) -> Turn:
        document = _find_last_turn(text)
        if document is None:
            return Turn(error='no JSON object with "steps" or "answer" was found', text=text)
        steps = document.get("steps")
        steps = [] if steps is None else steps
        if not isinstance(steps, list) or len(steps) > MAX_TURN_STEPS:
            return Turn(error=f'"steps" must be a list of at most {MAX_TURN_STEPS} steps', text=text)
        if not steps and document.get("answer") is None:
            return Turn(error='a turn needs "steps" or an "answer"', text=text)
        parsed = tuple(_parse_step(item, first_id + index) for index, item in enumerate(steps))
        return replace(parse_answer(document.get("answer"), text), steps=parsed)

    def format(self, turn: Turn, workers: Sequence[str]) -> str:
        document: dict[str, JsonValue] = {}
        if turn.steps:
            document["steps"] = [_format_step(step) for step in turn.steps]
        if turn.has_answer:
            document["answer"] = turn.answer
        return json.dumps(document, ensure_ascii=False)


def _find_last_turn(text: str) -> dict[str, JsonValue] | None:
    """The last JSON object in `text` that has the keys of a turn. The work is bounded for any text."""
    turn: dict[str, JsonValue] | None = None
    effort, end = _MAX_EFFORT, 0
    for candidate in _OBJECT.finditer(text):
        if effort <= 0:
            break
        if candidate.start() < end:  # inside an object that was read already
            continue
        value, end, cost = _read(text, candidate.start())
        effort -= cost
        if isinstance(value, dict) and ("steps" in value or "answer" in value):
            turn = value
    return turn


def _read(text: str, start: int) -> tuple[JsonValue, int, int]:
    """The JSON value at `start`, its end, and about how many characters were read to find that there is none."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:  # creating the error counts the lines of the text before it
        return None, start + 1, max(1, error.pos - start) + error.pos // 16
    except (ValueError, RecursionError):
        return None, start + 1, 20_000
    return value, end, 0


def _parse_step(item: JsonValue, step_id: int) -> Step:
    if not isinstance(item, Mapping):
        return Step(step_id, "").with_problem("a step must be an object with worker, instruction and access")
    arguments = item.get("arguments")
    if arguments is None:
        arguments = {"instruction": item["instruction"]} if "instruction" in item else {}
    elif "instruction" in item and isinstance(arguments, Mapping):
        arguments = {"instruction": item["instruction"], **arguments}
    return build_step(step_id, item.get("worker"), arguments, item.get("access"))


def _format_step(step: Step) -> dict[str, JsonValue]:
    instruction = shorthand(step.arguments)
    what: dict[str, JsonValue] = (
        {"instruction": instruction} if instruction is not None else {"arguments": dict(step.arguments)}
    )
    return {"worker": step.worker, **what, "access": list(step.access)}
