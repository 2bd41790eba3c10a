"""Turns the steps of a question into a plan for the functions of a pool, with the value of every step."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.quotes import renumber_quotes, substitute
from podium_lessons.everyday.step_writer import OPERATIONS, StepWriter, read_number
from podium_lessons.projects.calls import LookUp, PlannedCall, Sum
from podium_lessons.projects.worker import look_up
from pool_registry.actions import JsonValue, as_text


@dataclass(slots=True, kw_only=True)
class PlanWriter(StepWriter):
    """Writes the steps of one question. `functions` are those of the pool, by the name of a project's function or by
    the work that they do; `gaps` is what stands in the question's gaps."""

    project: str
    seed: int
    gaps: Mapping[str, str]

    def write(self, calls: Sequence[PlannedCall]) -> dict[int, int]:
        """Add the steps of all calls. Returns the step that gives the result of each call. Raises BadCall or
        WorkerFault where one gives nothing."""
        places: dict[int, int] = {}
        for number, call in enumerate(calls, start=1):
            self._write(call, places)
            places[number] = len(self.steps)
        return places

    def _write(self, call: PlannedCall, places: Mapping[int, int]) -> None:
        if isinstance(call, LookUp):
            argument = as_text(self._fill(call.argument, places))
            self.add(call.tool, {"thing": argument})
            self.values[len(self.steps)] = look_up(
                self.project, self.seed, call.tool, as_text(substitute(argument, self.values))
            )
        elif isinstance(call, Sum):
            self.compute(as_text(self._fill(call.expression, places)))
        else:
            self.do(call.work, {part: read_number(self._fill(value, places)) for part, value in call.parts})

    def _fill(self, text: str, places: Mapping[int, int]) -> JsonValue:
        return renumber_quotes(text.format_map(self.gaps), places)


def list_works(calls: Sequence[PlannedCall], works: Collection[str]) -> list[str]:
    """The pieces of work, besides look-ups, that a pool needs for the calls, where its sums are done by `works`."""
    names: list[str] = []
    for call in calls:
        if isinstance(call, Sum):
            names += list_sum_works(call.expression, works)
        elif not isinstance(call, LookUp):
            names.append(call.work)
    return list(dict.fromkeys(names))


def list_sum_works(expression: str, works: Collection[str]) -> list[str]:
    """The pieces of work for one sum."""
    for whole in ("evaluate", "arithmetic"):
        if whole in works:
            return [whole]
    tree = ast.parse(re.sub(r"[${}]", "_", expression), mode="eval")
    return [OPERATIONS[type(node.op)] for node in ast.walk(tree) if isinstance(node, ast.BinOp)]
