"""Asks: what a question needs done, in the parts of the work and free of any pool; and how they become steps.

An ask quotes an earlier one as `$k`. Where a pool lacks the tool for an ask, the ask has another way: a percentage is a
sum for the calculator, a fact about a country is a passage to find and to read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.plan import Step, Turn
from orchestrator.quotes import references, renumber_quotes, substitute
from podium_lessons.everyday.everyday_data import load_tools
from podium_lessons.everyday.worker import FACTS, TEXT_FACTS
from pool_registry.actions import JsonValue

DAYS = {"days": 1, "weeks": 7}


@dataclass(frozen=True, slots=True)
class Ask:
    """A piece of work with its parts, of which some say the same in two ways, for tools of two kinds. `instead` does
    the same by other work; in it, `$-1` is the ask before."""

    work: str
    parts: Mapping[str, JsonValue]
    instead: tuple[Ask, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A worker that does a piece of work, and the template of its arguments."""

    worker: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)


def evaluate(expression: str) -> Ask:
    """A sum for the calculator."""
    return Ask("evaluate", {"expression": expression})


def find_fact(country: str, fact: str) -> Ask:
    """A fact about a country: by a tool for that fact, or from a table of facts, or a passage is found and read."""
    read = "read_text" if fact in TEXT_FACTS else "read_number"
    table = Ask(
        "country_fact",
        {"country": country, "fact": fact},
        (Ask("find_passage", {"query": f"{country} {FACTS[fact]}"}), Ask(read, {"text": "$-1"})),
    )
    return Ask(fact, {"country": country}, (table,)) if fact in load_tools() else table


def convert_units(value: JsonValue, source: str, target: str) -> Ask:
    """A conversion."""
    text = Ask("convert_text", {"text": f"{value} {source} to {target}"})
    return Ask("convert", {"value": value, "from_unit": source, "to_unit": target}, (text,))


def add_days(day: str, number: int, unit: str = "days") -> Ask:
    """The date so many days or weeks after another. A tool that takes a span in words gets the question's own."""
    return Ask("add_days", {"date": day, "days": number * DAYS[unit], "span": f"{number} {unit}"})


def subtract_days(day: str, number: int, unit: str = "days") -> Ask:
    """The date so many days or weeks before another."""
    days = number * DAYS[unit]
    instead = (Ask("add_days", {"date": day, "days": -days}),)
    return Ask("subtract_days", {"date": day, "days": days, "span": f"{number} {unit}"}, instead)


def expand(asks: Sequence[Ask], works: Collection[str]) -> list[Ask] | None:
    """The asks with what these pieces of work can do, renumbered; None where something cannot be done."""
    calls: list[Ask] = []
    places: dict[int, int] = {}
    for number, ask in enumerate(asks, start=1):
        way = _choose_way(ask, works)
        if way is None:
            return None
        for call in way:
            parts = {part: _renumber(value, places, len(calls)) for part, value in call.parts.items()}
            calls.append(Ask(call.work, parts))
        places[number] = len(calls)
    return calls


def list_ways(ask: Ask) -> list[tuple[Ask, ...]]:
    """The ways to do an ask: directly, and by other work."""
    alone = (Ask(ask.work, ask.parts),)
    if not ask.instead:
        return [alone]
    return [alone, *(list_ways(ask.instead[0]) if len(ask.instead) == 1 else [ask.instead])]


def _choose_way(ask: Ask, works: Collection[str]) -> tuple[Ask, ...] | None:
    return next((way for way in list_ways(ask) if all(call.work in works for call in way)), None)


def _renumber(value: JsonValue, places: Mapping[int, int], last: int) -> JsonValue:
    if value == "$-1":
        return f"${last}"
    return renumber_quotes(value, places) if references(value) else value


def make_turn(calls: Sequence[Ask], uses: Mapping[str, ToolUse]) -> Turn:
    """The reference plan: a step for each call, and the last one as the answer."""
    steps = []
    for number, call in enumerate(calls, start=1):
        use = uses[call.work]
        access = references(dict(call.parts))
        arguments = {name: _fill(template, call.parts) for name, template in use.arguments.items()}
        steps.append(Step(number, use.worker, arguments, tuple(sorted(access)), need=load_tools()[call.work].need))
    return Turn(tuple(steps), f"${len(steps)}")


def _fill(template: JsonValue, parts: Mapping[str, JsonValue]) -> JsonValue:
    if not isinstance(template, str) or "{" not in template:
        return template
    if template.count("{") == 1 and template[0] == "{" and template[-1] == "}":
        return parts[template[1:-1]]
    return template.format(**parts)


def quote_results(parts: Mapping[str, JsonValue], results: Mapping[int, JsonValue]) -> dict[str, JsonValue]:
    """The parts with every `$k` replaced by the result of ask k."""
    return {part: substitute(value, results) for part, value in parts.items()}
