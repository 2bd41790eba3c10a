"""How the steps of a question are written in a project's file.

stem_price {flower}            a function of the project with what it takes: a gap, or $k for what step k gave
= {n} * ($1 + $2)              a sum
days {day} $1                  the days from one date to another
later $1 {n}                   the date n days later
larger {flower} $1 {flower2} $2     the name of the one with the larger number
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TypeAlias

from podium_lessons.everyday.step_writer import OPERATIONS

_GAP = re.compile(r"\{(\w+)\}")
_ARGUMENT = r"(\{\w+\}|\$\d+|-?[0-9][0-9.-]*)"
_LOOK_UP = re.compile(rf"([a-z][a-z0-9_]+) {_ARGUMENT}")
_SUM = re.compile(r"= ([-+*/(). 0-9$\w{}]+)")
_DAYS = re.compile(rf"days {_ARGUMENT} {_ARGUMENT}")
_LATER = re.compile(rf"later {_ARGUMENT} {_ARGUMENT}")
_LARGER = re.compile(rf"larger (\{{\w+\}}) {_ARGUMENT} (\{{\w+\}}) {_ARGUMENT}")


@dataclass(frozen=True, slots=True)
class LookUp:
    """A call of a function of the project."""

    tool: str
    argument: str


@dataclass(frozen=True, slots=True)
class Sum:
    """An expression over numbers, gaps and quotes."""

    expression: str


@dataclass(frozen=True, slots=True)
class Work:
    """Another piece of work (podium_lessons/everyday/worker.py), with the parts of its request."""

    work: str
    parts: tuple[tuple[str, str], ...]


PlannedCall: TypeAlias = LookUp | Sum | Work


def parse_call(text: str) -> PlannedCall:
    """The call that a step stands for. Raises ValueError."""
    if match := _SUM.fullmatch(text):
        _check_sum(match[1], text)
        return Sum(match[1].strip())
    if match := _DAYS.fullmatch(text):
        return Work("days_between", (("start", match[1]), ("end", match[2])))
    if match := _LATER.fullmatch(text):
        return Work("add_days", (("date", match[1]), ("days", match[2])))
    if match := _LARGER.fullmatch(text):
        names = ("first_name", "first", "second_name", "second")
        return Work("larger", tuple(zip(names, match.groups(), strict=True)))
    if match := _LOOK_UP.fullmatch(text):
        return LookUp(match[1], match[2])
    raise ValueError(f"{text!r} is no step: write TOOL {{gap}}, = SUM, days A B, later A N or larger A $1 B $2")


def _check_sum(expression: str, text: str) -> None:
    """Raises ValueError for anything but the four operations on numbers, gaps and quotes."""
    try:
        tree = ast.parse(re.sub(r"\{\w+\}|\$\d+", "x", expression).strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{text!r} is no sum: {error.msg}") from error
    known = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.USub, ast.Constant, ast.Name, ast.Load, *OPERATIONS)
    wrong = [node for node in ast.walk(tree) if not isinstance(node, known)]
    if wrong or any(isinstance(node, ast.Name) and node.id != "x" for node in ast.walk(tree)):
        raise ValueError(f"{text!r} is no sum: write + - * / and brackets over numbers, {{gap}} and $k")


def list_gaps(call: PlannedCall) -> list[str]:
    """The gaps of a call."""
    if isinstance(call, Work):
        return _GAP.findall(" ".join(value for _, value in call.parts))
    return _GAP.findall(call.argument if isinstance(call, LookUp) else call.expression)
