"""What is on file in a domain: values drawn from a seed, the same wherever they are looked up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from random import Random

from podium_lessons.composed.domain import CalculationData, ThingData, load_domain
from podium_lessons.projects.project_data import ValueData
from pool_registry.actions import JsonValue, as_text
from pool_registry.errors import BadCall
from trainer.tasks.suite import make_random

Record = Mapping[str, JsonValue]


@lru_cache(maxsize=64)
def draw_records(domain: str, seed: int) -> Mapping[str, Mapping[str, Record]]:
    """By kind and name, the fields of every thing."""
    data = load_domain(domain)
    return {
        kind: {name: _draw_record(domain, seed, kind, name, thing) for name in thing.names}
        for kind, thing in data.things.items()
    }


def _draw_record(domain: str, seed: int, kind: str, name: str, thing: ThingData) -> Record:
    return {
        field: _draw_value(domain, data.gives, name, make_random(f"{domain}/{seed}/{kind}/{name}/{field}"))
        for field, data in thing.fields.items()
    }


def _draw_value(domain: str, gives: ValueData, name: str, random: Random) -> JsonValue:
    """A value of a thing, which is never itself."""
    kind = load_domain(domain).things.get(gives.thing)
    return gives.draw(random, [other for other in kind.names if other != name] if kind else ())


def look_up(domain: str, seed: int, kind: str, written: JsonValue) -> Record:
    """The fields of a thing. Raises BadCall where there is no such thing."""
    return draw_records(domain, seed)[kind][find_name(domain, kind, written)]


def list_group(domain: str, seed: int, kind: str, field: str, written: JsonValue) -> list[Record]:
    """The things of a kind whose field is this thing, with their names. Raises BadCall where there is no such thing."""
    thing = find_name(domain, load_domain(domain).things[kind].fields[field].gives.thing, written)
    records = draw_records(domain, seed)[kind]
    return [{"name": name, **record} for name, record in records.items() if record[field] == thing]


def calculate(domain: str, seed: int, calculation: str, arguments: Mapping[str, JsonValue]) -> Record:
    """What a calculation gives: values that any other argument changes. Raises BadCall for a thing or a choice that
    there is not."""
    data = find_calculation(domain, calculation)
    exact: dict[str, JsonValue] = {}
    for name, parameter in data.takes.items():
        value = arguments[name]
        if parameter.thing:
            exact[name] = find_name(domain, parameter.thing, value)
        elif parameter.choice:
            exact[name] = _match(as_text(value), parameter.choice, name)
        else:
            exact[name] = float(value) if isinstance(value, int | float) else as_text(value).strip()
    written = json.dumps(exact, sort_keys=True)
    return {
        field: _draw_value(domain, result.gives, "", make_random(f"{domain}/{seed}/{calculation}/{field}/{written}"))
        for field, result in data.gives.items()
    }


def find_calculation(domain: str, name: str) -> CalculationData:
    """The calculation of this name. Raises StopIteration."""
    return next(data for data in load_domain(domain).calculations if data.name == name)


def find_name(domain: str, kind: str, written: JsonValue) -> str:
    """The name as it is on file, whatever its case. Raises BadCall."""
    thing = load_domain(domain).things[kind]
    return _match(as_text(written), thing.names, thing.one)


def _match(written: str, names: tuple[str, ...], kind: str) -> str:
    match = next((name for name in names if name.casefold() == written.strip().casefold()), None)
    if match is None:
        raise BadCall(f"there is no {kind} {written[:60]!r}")
    return match
