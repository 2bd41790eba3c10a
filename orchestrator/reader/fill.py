"""Arguments: one line of JSON for each step of a plan, in the order of its needs, and the answer.

    1. {"route": "LHR to JFK"}
    2. {"value": "$1", "from_unit": "km", "to_unit": "mile"}
    = $2

Parsing is total: any text gives a turn or an error turn, never an exception.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.dialects.base import build_step, load_json
from orchestrator.plan import Step, Turn, WorkerChoice, renumber_step
from orchestrator.quotes import renumber_quotes
from orchestrator.reader.needs import Need
from orchestrator.reader.refusal import is_refusal
from pool_registry.actions import JsonValue, clean_text

ANSWER_MARK = "="
MAX_FILL_CHARS = 100_000

_STEP = re.compile(r"\s*([0-9]{1,3})\.\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BoundNeed:
    """A need and the worker that was chosen for it, with the likeness of both (1 is the same), and how it was chosen
    where a score of outcomes did."""

    need: Need
    worker: str
    likeness: float
    choice: WorkerChoice | None = None


def format_fill(steps: Sequence[Step], answer: JsonValue) -> str:
    """The arguments and the answer as a model writes them. The ids of the steps count from 1."""
    lines = [f"{step.id}. {json.dumps(dict(step.arguments), ensure_ascii=False)}" for step in steps]
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return "\n".join([*lines, f"{ANSWER_MARK} {text}"])


def parse_fill(text: str, bound: Sequence[BoundNeed], first_id: int) -> Turn:
    """The turn that these arguments make of the bound needs; its steps get ids from `first_id` on.

    A step sees what its need lists and what its arguments quote. Without an answer the last step is the answer.
    """
    text = clean_text(text[:MAX_FILL_CHARS])
    arguments, answer = _split_lines(text)
    refused = answer or text.strip()  # a refusal stands alone, without the mark of an answer, too
    if is_refusal(refused):
        return Turn(answer=refused, text=text)
    if not arguments:
        return Turn(error='no line of arguments, such as 1. {"instruction": "..."}', text=text)
    ids = {place: first_id + place - 1 for place in range(1, len(bound) + 1)}
    steps = [_build(place, item, arguments.get(place)) for place, item in enumerate(bound, start=1)]
    quoted: JsonValue = answer or f"${len(bound)}"
    if first_id != 1:
        steps, quoted = [renumber_step(step, ids) for step in steps], renumber_quotes(quoted, ids)
    return Turn(tuple(steps), quoted, text=text)


def _split_lines(text: str) -> tuple[dict[int, str], str]:
    """The JSON text of each step by its number, and the answer; "" without one."""
    arguments: dict[int, str] = {}
    answer = ""
    for line in text.splitlines():
        match = _STEP.fullmatch(line)
        if match:
            arguments.setdefault(int(match[1]), match[2])
        elif line.lstrip().startswith(ANSWER_MARK):
            answer = line.lstrip()[len(ANSWER_MARK) :].strip()
    return arguments, answer


def _build(place: int, item: BoundNeed, text: str | None) -> Step:
    problem = ""
    arguments: JsonValue = {}
    if text is None:
        problem = f"step {place} has no line of arguments"
    else:
        try:
            arguments = load_json(text)
        except ValueError as error:
            problem = f"the arguments of step {place} are not JSON: {error}"
    step = build_step(place, item.worker, arguments, item.need.access)
    step = replace(step, need=item.need.text, choice=item.choice)
    seen = {*step.access, *(k for k in step.references if k < place)}
    step = replace(step, access=tuple(sorted(seen)))
    return step.with_problem(problem) if problem else step
