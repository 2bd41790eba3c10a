"""Kind `everyday`: one ordinary piece of work (a conversion, a span of days, a percentage) under any argument names.

Everyday tasks build pools of other people's tools from it: the work is that of the built-in kinds, cut in another way.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field, field_validator

from pool_registry.actions import JsonValue
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.starter.workers import airports, clock, extractor, great_circle
from pool_registry.starter.workers.elements import molar_mass
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker
from pool_registry.workers import calendar
from pool_registry.workers.calculator import evaluate
from pool_registry.workers.search import load_index
from pool_registry.workers.units import convert

TEXT: Mapping[str, JsonValue] = {"type": "string", "minLength": 1, "maxLength": 2000}
NUMBER: Mapping[str, JsonValue] = {"type": "number"}
WHOLE: Mapping[str, JsonValue] = {"type": "integer"}
NUMBERS: Mapping[str, JsonValue] = {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 200}
ITEMS: Mapping[str, JsonValue] = {"type": "array", "maxItems": 200}
TEXTS: Mapping[str, JsonValue] = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 200}
MAX_REPLY_CHARS = 4000
FACTS = {  # what is asked for: the words that find its passage
    "capital": "Government Capital name",
    "population": "People and Society Population total",
    "area": "Geography Area total",
    "land area": "Geography Area land",
    "coastline": "Geography Coastline",
    "median age": "People and Society Median age total",
    "life expectancy": "People and Society Life expectancy at birth total population",
    "mean elevation": "Geography Elevation mean elevation",
    "gdp": "Economy GDP (official exchange rate)",
    "railways": "Transportation Railways total",
    "electricity consumption": "Energy Electricity consumption",
    "internet code": "Communications Internet country code",
}
TEXT_FACTS = ("capital", "internet code")
_QUANTITY = re.compile(
    r"(?P<value>[-+]?[0-9][0-9,]*(?:\.[0-9]+)?) ?(?P<source>.{1,60}?) (?:to|in|into) (?P<target>.{1,60})"
)


@dataclass(frozen=True, slots=True)
class Operation:
    """A piece of work: the schema of each part of a request, an example, and the function of the parts."""

    parts: Mapping[str, Mapping[str, JsonValue]]
    sample: Mapping[str, JsonValue]
    run: Callable[..., JsonValue]


class EverydayConfig(StrictModel):
    work: str = Field(description="One of the pieces of work that this kind knows.")
    names: dict[str, str] = Field(default_factory=dict, description="Part of the request: what its argument is called.")

    @field_validator("work")
    @classmethod
    def _is_there(cls, value: str) -> str:
        if value not in OPERATIONS:
            raise ValueError(f"there is no work {value!r}; use one of: {', '.join(OPERATIONS)}")
        return value


class Everyday(Worker[EverydayConfig]):
    label = "Everyday tool"
    summary = "One ordinary piece of work under argument names of your own."
    icon = "M5 5h14v14H5z M9 12h6 M12 9v6"
    template = None  # everyday tasks need it; a person would add the built-in kinds
    cacheable = True
    Config = EverydayConfig

    @property
    def operation(self) -> Operation:
        return OPERATIONS[self.config.work]

    @property
    def sample(self) -> Mapping[str, JsonValue]:  # type: ignore[override]
        return {self._name(part): value for part, value in self.operation.sample.items()}

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        parts = self.operation.parts
        return {
            "type": "object",
            "properties": {self._name(part): dict(rule) for part, rule in parts.items()},
            "required": [self._name(part) for part in parts],
            "additionalProperties": False,
        }

    async def call(self, call: Call) -> Reply:
        parts = {part: call.arguments[self._name(part)] for part in self.operation.parts}
        return Reply(await asyncio.to_thread(self.operation.run, **parts))

    def _name(self, part: str) -> str:
        return self.config.names.get(part, part)


def _choice(*values: str) -> Mapping[str, JsonValue]:
    return {"type": "string", "enum": list(values)}


def _arithmetic(first: float, operation: str, second: float) -> JsonValue:
    sign = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}[operation]
    return evaluate(f"({first!r}) {sign} ({second!r})")


def _divide(part: float, whole: float) -> float:
    if not whole:
        raise WorkerFault("math_error", "the whole must not be 0")
    return part / whole


def _convert_text(text: str) -> float:
    match = _QUANTITY.fullmatch(" ".join(text[:200].split()).rstrip("?. "))
    if match is None:
        raise BadCall("write the quantity and the other unit, such as: 5 miles to km")
    return convert(float(match["value"].replace(",", "")), match["source"], match["target"])


def find_passage(query: str) -> str:
    """Return the passage of the factbook that fits best. Raises WorkerFault when none does."""
    matches = load_index("starter:factbook").search(query, 1)
    if not matches:
        raise WorkerFault("no_hits", f"nothing matches {query[:120]!r}; use other words")
    return str(matches[0])[:MAX_REPLY_CHARS]


def read_fact(country: str, fact: str) -> JsonValue:
    """Return a figure or a name that the factbook has of a country."""
    passage = find_passage(f"{country} {FACTS[fact]}")
    return extractor.text(passage) if fact in TEXT_FACTS else extractor.number(passage)


def _pick_larger(first_name: str, first: float, second_name: str, second: float) -> str:
    return first_name if first >= second else second_name


def _pick_smaller(first_name: str, first: float, second_name: str, second: float) -> str:
    return first_name if first <= second else second_name


def _pick_name(names: list[str], numbers: list[float], choose: Callable[[list[float]], float]) -> str:
    """The name at the place of the number that is chosen. Raises BadCall where their counts differ."""
    if len(names) != len(numbers):
        raise BadCall(f"{len(names)} names and {len(numbers)} numbers: give as many")
    return names[numbers.index(choose(numbers))]


_COUNTRY_CODE = {**TEXT, "description": "ISO alpha-2, such as DE."}
_DATE = {**TEXT, "description": "ISO date, such as 2024-03-01."}
_TIME = {**TEXT, "description": "Such as 2025-04-20 21:30."}
_PLACE = {**TEXT, "description": "City, IATA code or time zone."}
_SIGNS = _choice("add", "subtract", "multiply", "divide")

OPERATIONS: dict[str, Operation] = {
    "evaluate": Operation({"expression": TEXT}, {"expression": "(3 + 4.5) / 2"}, evaluate),
    "arithmetic": Operation(
        {"first": NUMBER, "operation": _SIGNS, "second": NUMBER},
        {"first": 6, "operation": "multiply", "second": 7},
        _arithmetic,
    ),
    **{
        work: Operation({"a": NUMBER, "b": NUMBER}, {"a": 6, "b": 7}, lambda a, b, work=work: _arithmetic(a, work, b))
        for work in ("add", "subtract", "multiply", "divide")
    },
    "sum": Operation({"numbers": NUMBERS}, {"numbers": [1, 2.5, 3]}, lambda numbers: sum(numbers)),
    "mean": Operation({"numbers": NUMBERS}, {"numbers": [1, 2.5, 3]}, lambda numbers: sum(numbers) / len(numbers)),
    "percent_of": Operation(
        {"percent": NUMBER, "whole": NUMBER},
        {"percent": 15, "whole": 80},
        lambda percent, whole: percent * whole / 100,
    ),
    "share": Operation(
        {"part": NUMBER, "whole": NUMBER}, {"part": 12, "whole": 80}, lambda part, whole: 100 * _divide(part, whole)
    ),
    "convert": Operation(
        {"value": NUMBER, "from_unit": TEXT, "to_unit": TEXT},
        {"value": 10, "from_unit": "kg", "to_unit": "pounds"},
        convert,
    ),
    "convert_text": Operation({"text": TEXT}, {"text": "10 kg to pounds"}, _convert_text),
    "days_between": Operation(
        {"start": _DATE, "end": _DATE},
        {"start": "2024-03-01", "end": "2024-05-10"},
        lambda start, end: calendar.answer(f"days from {start} to {end}"),
    ),
    "add_days": Operation(
        {"date": _DATE, "days": WHOLE},
        {"date": "2024-03-01", "days": 45},
        lambda date, days: calendar.answer(f"{date} {'plus' if days >= 0 else 'minus'} {abs(days)} days"),
    ),
    "subtract_days": Operation(
        {"date": _DATE, "days": WHOLE},
        {"date": "2024-03-01", "days": 45},
        lambda date, days: calendar.answer(f"{date} {'minus' if days >= 0 else 'plus'} {abs(days)} days"),
    ),
    "weekday": Operation({"date": _DATE}, {"date": "2024-07-04"}, lambda date: calendar.answer(f"weekday of {date}")),
    "business_days": Operation(
        {"start": _DATE, "end": _DATE, "country": _COUNTRY_CODE},
        {"start": "2024-03-01", "end": "2024-03-15", "country": "PT"},
        lambda start, end, country: calendar.answer(f"business days from {start} to {end} in {country}"),
    ),
    "edge_business_day": Operation(
        {"which": _choice("first", "last"), "period": TEXT, "country": _COUNTRY_CODE},
        {"which": "last", "period": "Q2 2023", "country": "US"},
        lambda which, period, country: calendar.answer(f"{which} business day of {period} in {country}"),
    ),
    "next_business_day": Operation(
        {"date": _DATE, "country": _COUNTRY_CODE},
        {"date": "2024-12-24", "country": "DE"},
        lambda date, country: calendar.answer(f"next business day after {date} in {country}"),
    ),
    "is_holiday": Operation(
        {"date": _DATE, "country": _COUNTRY_CODE},
        {"date": "2025-04-21", "country": "BR"},
        lambda date, country: calendar.answer(f"is {date} a public holiday in {country}"),
    ),
    "next_holiday": Operation(
        {"date": _DATE, "country": _COUNTRY_CODE},
        {"date": "2024-05-01", "country": "DE"},
        lambda date, country: calendar.answer(f"next public holiday after {date} in {country}"),
    ),
    "local_time": Operation(
        {"time": _TIME, "place": _PLACE, "other": _PLACE},
        {"time": "2025-04-20 21:30", "place": "London", "other": "Tokyo"},
        lambda time, place, other: clock.answer(f"{time} in {place}, local in {other}"),
    ),
    "distance": Operation(
        {"origin": _PLACE, "destination": _PLACE},
        {"origin": "LIS", "destination": "GRU"},
        lambda origin, destination: great_circle.route_km(f"{origin} to {destination}"),
    ),
    "arrival": Operation(
        {"time": _TIME, "place": _PLACE, "minutes": NUMBER, "other": _PLACE},
        {"time": "2025-04-20 21:30", "place": "LIS", "minutes": 90, "other": "GRU"},
        lambda time, place, minutes, other: clock.answer(f"{time} at {place} plus {minutes} minutes, local at {other}"),
    ),
    "distance_miles": Operation(
        {"origin": _PLACE, "destination": _PLACE},
        {"origin": "LIS", "destination": "GRU"},
        lambda origin, destination: convert(great_circle.route_km(f"{origin} to {destination}"), "km", "miles"),
    ),
    "airport_fact": Operation(
        {"place": TEXT, "fact": _choice("country", "time zone", "elevation", "airport code")},
        {"place": "LIS", "fact": "time zone"},
        lambda place, fact: airports.answer(f"{fact} of {place}"),
    ),
    "country_fact": Operation(
        {"country": TEXT, "fact": _choice(*FACTS)}, {"country": "Mexico", "fact": "population"}, read_fact
    ),
    **{
        fact.replace(" ", "_"): Operation(
            {"country": TEXT}, {"country": "Mexico"}, lambda country, fact=fact: read_fact(country, fact)
        )
        for fact in FACTS
    },
    "find_passage": Operation({"query": TEXT}, {"query": "Mexico Geography Irrigated land"}, find_passage),
    "read_number": Operation(
        {"text": TEXT}, {"text": "Area: 12,300 sq km (2012)"}, lambda text: extractor.number(text)
    ),
    "read_text": Operation({"text": TEXT}, {"text": "Capital: Lima"}, lambda text: extractor.text(text)),
    "molar_mass": Operation({"formula": TEXT}, {"formula": "CuSO4+5H2O"}, lambda formula: molar_mass(formula)),
    "larger": Operation(
        {"first_name": TEXT, "first": NUMBER, "second_name": TEXT, "second": NUMBER},
        {"first_name": "Lima", "first": 3, "second_name": "Oslo", "second": 2},
        _pick_larger,
    ),
    "smaller": Operation(
        {"first_name": TEXT, "first": NUMBER, "second_name": TEXT, "second": NUMBER},
        {"first_name": "Lima", "first": 3, "second_name": "Oslo", "second": 2},
        _pick_smaller,
    ),
    "count": Operation({"items": ITEMS}, {"items": ["Lima", "Oslo"]}, lambda items: len(items)),
    "largest": Operation({"numbers": NUMBERS}, {"numbers": [1, 2.5, 3]}, lambda numbers: max(numbers)),
    "smallest": Operation({"numbers": NUMBERS}, {"numbers": [1, 2.5, 3]}, lambda numbers: min(numbers)),
    "name_of_largest": Operation(
        {"names": TEXTS, "numbers": NUMBERS},
        {"names": ["Lima", "Oslo"], "numbers": [3, 2]},
        lambda names, numbers: _pick_name(names, numbers, max),
    ),
    "name_of_smallest": Operation(
        {"names": TEXTS, "numbers": NUMBERS},
        {"names": ["Lima", "Oslo"], "numbers": [3, 2]},
        lambda names, numbers: _pick_name(names, numbers, min),
    ),
}


def run_operation(work: str, parts: Mapping[str, Any]) -> JsonValue:
    """Do a piece of work. Raises BadCall or WorkerFault."""
    return OPERATIONS[work].run(**parts)
