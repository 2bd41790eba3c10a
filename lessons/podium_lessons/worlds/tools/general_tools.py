"""The tools that every world may have: sums, days and dates, comparisons of numbers, and units."""

from __future__ import annotations

from collections.abc import Callable

from podium_lessons.worlds.tools.parameters import Parameter
from podium_lessons.worlds.tools.tool_maker import Tool, ToolMaker


def make_general_tool(shape: str, maker: ToolMaker) -> Tool:
    """A tool by its shape: calculate, arithmetic, days_between, add_days, larger, threshold or units."""
    return _MAKERS[shape](maker)


def _make_calculator(maker: ToolMaker) -> Tool:
    return maker.make_tool_of_kind("calculator", {"expression": "expression"})


def _make_arithmetic(maker: ToolMaker) -> Tool:
    spellings = {what: maker.random.choice(words) for what, words in maker.words.operations.items()}
    texts = {"operations": ", ".join(spellings.values())}
    parameters = [
        Parameter("left", "first number", 12.5, "number"),
        Parameter("operation", "what to do", spellings["subtract"], choices=tuple(spellings.values())),
        Parameter("right", "second number", 3, "number"),
    ]
    return maker.make_tool("arithmetic", maker.describe("arithmetic", texts), parameters, texts, spellings=spellings)


def _make_days_between(maker: ToolMaker) -> Tool:
    parameters = [Parameter("start", "ISO date", "2021-05-30"), Parameter("end", "ISO date", "2022-01-08")]
    return maker.make_tool("days_between", maker.describe("days_between", {}), parameters)


def _make_add_days(maker: ToolMaker) -> Tool:
    parameters = [
        Parameter("start", "ISO date", "2021-05-30", names=maker.words.parameters["date"]),
        Parameter("days", "how many days", 14, "number"),
    ]
    return maker.make_tool("add_days", maker.describe("add_days", {}), parameters)


def _make_larger(maker: ToolMaker) -> Tool:
    parameters = [
        Parameter("name_a", "first name", "north"), Parameter("value_a", "its number", 12.5, "number"),
        Parameter("name_b", "second name", "south"), Parameter("value_b", "its number", 9, "number"),
    ]  # fmt: skip
    return maker.make_tool("larger", maker.describe("larger", {}), parameters)


def _make_threshold(maker: ToolMaker) -> Tool:
    parameters = [Parameter("value", "the number", 12.5, "number"), Parameter("limit", "the limit", 10, "number")]
    return maker.make_tool("threshold", maker.describe("threshold", {}), parameters)


def _make_units(maker: ToolMaker) -> Tool:
    return maker.make_tool_of_kind("units", {"value": "value", "from": "from_unit", "to": "to_unit"})


_MAKERS: dict[str, Callable[[ToolMaker], Tool]] = {
    "calculate": _make_calculator, "arithmetic": _make_arithmetic, "days_between": _make_days_between,
    "add_days": _make_add_days, "larger": _make_larger, "threshold": _make_threshold, "units": _make_units,
}  # fmt: skip
