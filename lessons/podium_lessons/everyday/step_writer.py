"""Writes the steps of a plan for the functions of a pool, with the value of every step.

A sum goes to a calculator where the pool has one, or is taken apart into calls of functions of two numbers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.plan import Step
from orchestrator.quotes import references, substitute
from podium_lessons.everyday.solve_asks import run_work
from pool_registry.actions import JsonValue

OPERATIONS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide"}
_QUOTE = re.compile(r"\$(\d+)((?:\.\w+|\[\d+\])*)")


@dataclass(frozen=True, slots=True)
class Function:
    """A worker of the pool: its name, what each part of a request is called, and what a step that calls it is for."""

    worker: str
    parameters: Mapping[str, str]
    need: str


@dataclass(slots=True)
class StepWriter:
    """The steps of one question. `functions` are those of the pool by the work that they do."""

    functions: Mapping[str, Function]
    steps: list[Step] = field(default_factory=list)
    values: dict[int, JsonValue] = field(default_factory=dict)  # by step

    def do(self, work: str, parts: Mapping[str, JsonValue]) -> str:
        """Add a step that does a piece of work. Returns its quote. Raises BadCall or WorkerFault."""
        self.add(work, parts)
        parts = {part: substitute(value, self.values) for part, value in parts.items()}
        self.values[len(self.steps)] = run_work(work, parts)
        return f"${len(self.steps)}"

    def add(self, name: str, parts: Mapping[str, JsonValue], need: str = "") -> None:
        """Add a step that calls a function; its value is the caller's to set."""
        function = self.functions[name]
        arguments = {function.parameters[part]: value for part, value in parts.items()}
        access = tuple(sorted(references(arguments)))
        self.steps.append(Step(len(self.steps) + 1, function.worker, arguments, access, need=need or function.need))

    def compute(self, expression: str) -> str:
        """Add the steps of a sum over numbers and quotes. Returns the quote of its result. Raises BadCall or
        WorkerFault."""
        if "evaluate" in self.functions:
            return self.do("evaluate", {"expression": expression})
        quotes: list[str] = []

        def mark(match: re.Match[str]) -> str:
            quotes.append(match[0])
            return f"quote_{len(quotes) - 1}"

        tree = ast.parse(_QUOTE.sub(mark, expression), mode="eval").body
        return str(self._take_apart(tree, quotes))

    def _take_apart(self, tree: ast.expr, quotes: list[str]) -> JsonValue:
        """Add a call for each operation. Returns the number, or what quotes it."""
        if isinstance(tree, ast.Constant):
            return read_number(str(tree.value))
        if isinstance(tree, ast.Name):
            return quotes[int(tree.id.removeprefix("quote_"))]
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.operand, ast.Constant):
            return read_number(f"-{tree.operand.value!s}")
        assert isinstance(tree, ast.BinOp), ast.dump(tree)
        work = OPERATIONS[type(tree.op)]
        left, right = self._take_apart(tree.left, quotes), self._take_apart(tree.right, quotes)
        if work in self.functions:
            return self.do(work, {"a": left, "b": right})
        return self.do("arithmetic", {"first": left, "operation": work, "second": right})


def read_number(text: JsonValue) -> JsonValue:
    """The number that a text is; any other text as it is."""
    if not isinstance(text, str) or not re.fullmatch(r"-?\d+(\.\d+)?", text):
        return text
    return float(text) if "." in text else int(text)
