"""Turns the steps of a question into a plan for the functions of a pool, with the value of every step.

A sum goes to a calculator where the pool has one, or is taken apart into calls of functions of two numbers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.plan import Step, references, renumber_quotes, substitute
from podium_lessons.everyday.solve_asks import run_work
from podium_lessons.projects.calls import OPERATIONS, LookUp, PlannedCall, Sum
from podium_lessons.projects.worker import look_up
from pool_registry.actions import JsonValue, as_text

_QUOTE = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True)
class Function:
    """A worker of the pool: its name, what each part of a request is called, and what a step that calls it is for."""

    worker: str
    parameters: Mapping[str, str]
    need: str


@dataclass(slots=True)
class PlanWriter:
    """Writes the steps of one question. `functions` are those of the pool, by the name of a project's function or by
    the work that they do; `gaps` is what stands in the question's gaps."""

    project: str
    seed: int
    functions: Mapping[str, Function]
    gaps: Mapping[str, str]
    steps: list[Step] = field(default_factory=list)
    values: dict[int, JsonValue] = field(default_factory=dict)  # by step

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
            self._add(call.tool, {"thing": argument})
            self.values[len(self.steps)] = look_up(
                self.project, self.seed, call.tool, as_text(substitute(argument, self.values))
            )
        elif isinstance(call, Sum):
            self._write_sum(as_text(self._fill(call.expression, places)))
        else:
            self._do(call.work, {part: _read_number(self._fill(value, places)) for part, value in call.parts})

    def _fill(self, text: str, places: Mapping[int, int]) -> JsonValue:
        return renumber_quotes(text.format_map(self.gaps), places)

    def _write_sum(self, expression: str) -> None:
        if "evaluate" in self.functions:
            self._do("evaluate", {"expression": expression})
        else:
            self._take_apart(ast.parse(_QUOTE.sub(r"step_\1", expression), mode="eval").body)

    def _take_apart(self, tree: ast.expr) -> JsonValue:
        """Add a call for each operation. Returns the number, or what quotes it."""
        if isinstance(tree, ast.Constant):
            return _read_number(str(tree.value))
        if isinstance(tree, ast.Name):
            return f"${tree.id.removeprefix('step_')}"
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.operand, ast.Constant):
            return _read_number(f"-{tree.operand.value!s}")
        assert isinstance(tree, ast.BinOp), ast.dump(tree)
        work = OPERATIONS[type(tree.op)]
        left, right = self._take_apart(tree.left), self._take_apart(tree.right)
        if work in self.functions:
            self._do(work, {"a": left, "b": right})
        else:
            self._do("arithmetic", {"first": left, "operation": work, "second": right})
        return f"${len(self.steps)}"

    def _do(self, work: str, parts: Mapping[str, JsonValue]) -> None:
        self._add(work, parts)
        parts = {part: substitute(value, self.values) for part, value in parts.items()}
        self.values[len(self.steps)] = run_work(work, parts)

    def _add(self, name: str, parts: Mapping[str, JsonValue]) -> None:
        function = self.functions[name]
        arguments = {function.parameters[part]: value for part, value in parts.items()}
        access = tuple(sorted(references(arguments)))
        self.steps.append(Step(len(self.steps) + 1, function.worker, arguments, access, need=function.need))


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


def _read_number(text: JsonValue) -> JsonValue:
    """The number that a text is; any other text as it is."""
    if not isinstance(text, str) or not re.fullmatch(r"-?\d+(\.\d+)?", text):
        return text
    return float(text) if "." in text else int(text)
