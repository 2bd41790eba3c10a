"""Kind `world`: a tool of a generated world. What it does is its `shape`, and it does it on the world's table, which
follows from the domain and the seed in its configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Literal, TypeAlias

from pydantic import Field, field_validator

from podium_lessons.worlds.tables import Value, WorldTable, fold_name, make_table
from podium_lessons.worlds.world_data import list_worlds
from pool_registry.actions import JsonValue, as_text
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker, WorkerSpec
from pool_registry.workers.units import convert

Shape: TypeAlias = Literal[
    "get", "record", "list", "count", "total", "average", "top", "convert", "find_note", "note_about", "read_number",
    "days_between", "add_days", "larger", "threshold", "arithmetic", "action",
]  # fmt: skip
DIGITS = 6  # takes the noise off sums of floats
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")


class WorldConfig(StrictModel):
    """What a tool of a world does. `roles` says which parameter plays which role of the shape, and `spellings` what the
    choices of an enum stand for."""

    domain: str
    seed: int
    shape: Shape
    entity: str = ""
    field: str = ""
    units: tuple[str, ...] = ()  # get: the unit of the field and another one that the caller may choose
    over: str = ""  # total, average and top: the number field; `field` is then the one that refers to the argument
    topic: int = 0
    roles: dict[str, str] = Field(default_factory=dict)
    spellings: dict[str, str] = Field(default_factory=dict)
    arguments: dict[str, JsonValue]  # the JSON Schema of its arguments
    example: dict[str, JsonValue] = Field(default_factory=dict)  # arguments of a call that works

    @field_validator("domain")
    @classmethod
    def _is_there(cls, domain: str) -> str:
        if domain not in list_worlds():  # a pool may come from anywhere: this is no path
            raise ValueError(f"there is no domain {domain!r}")
        return domain


class World(Worker[WorldConfig]):
    """A tool of a generated world."""

    label = "World"
    summary = "A tool of a generated world: look-ups, totals, notes, conversions."
    icon = "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18 M3 12h18 M12 3c3 3 3 15 0 18 M12 3c-3 3-3 15 0 18"
    template = None  # training needs it; a person would not add it
    cacheable = True
    wording = ("domain", "seed", "roles", "spellings")
    Config = WorldConfig

    def __init__(self, spec: WorkerSpec, config: WorldConfig) -> None:
        super().__init__(spec, config)
        self.sample = config.example

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self.config.arguments

    async def call(self, call: Call) -> Reply:
        return Reply(run_shape(self.config, call.arguments))


def run_shape(config: WorldConfig, arguments: Mapping[str, JsonValue]) -> JsonValue:
    """The result of a call. Raises BadCall for an argument that means nothing here."""
    by_role = {role: arguments[name] for role, name in config.roles.items()}
    return _SHAPES[config.shape](make_table(config.domain, config.seed), config, by_role)


def _find(table: WorldTable, entity: str, argument: JsonValue) -> str:
    text = as_text(argument)
    name = table.find_name(entity, text)
    if name is None:
        raise BadCall(f"there is no {entity} {text[:60]!r}; they are called such as {table.names(entity)[0]}")
    return name


def _get(table: WorldTable, config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    value = table.value(config.entity, _find(table, config.entity, by_role["name"]), config.field)
    if "to" not in by_role:
        return value
    unit = config.spellings.get(as_text(by_role["to"]))
    if unit is None:
        raise BadCall(f"there is no unit {as_text(by_role['to'])[:60]!r}; use one of: {', '.join(config.spellings)}")
    return value if unit == "own" else round(convert(float(value), *config.units), DIGITS)


def _record(table: WorldTable, config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    field = config.spellings.get(as_text(by_role["field"]))
    if field is None:
        raise BadCall(f"there is no {as_text(by_role['field'])[:60]!r}; use one of: {', '.join(config.spellings)}")
    return table.value(config.entity, _find(table, config.entity, by_role["name"]), field)


def _members(table: WorldTable, config: WorldConfig, argument: JsonValue) -> list[str]:
    """The individuals that have the argument in the tool's field."""
    text = fold_name(as_text(argument))
    values = {
        fold_name(str(record[config.field])): record[config.field] for record in table.records[config.entity].values()
    }
    target = next(
        field.target
        for entity in table.data.entities
        if entity.name == config.entity
        for field in entity.fields
        if field.name == config.field
    )
    value: Value | None = table.find_name(target, as_text(argument)) if target else values.get(text)
    if value is None:
        raise BadCall(f"nothing is called {as_text(argument)[:60]!r} here; such as {min(map(str, values.values()))}")
    return table.members(config.entity, config.field, value)


def _list(table: WorldTable, config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    return list(_members(table, config, by_role["target"]))


def _count(table: WorldTable, config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    return len(_members(table, config, by_role["target"]))


def _figures(table: WorldTable, config: WorldConfig, by_role: Mapping[str, JsonValue]) -> list[float]:
    members = _members(table, config, by_role["target"])
    return [float(table.value(config.entity, name, config.over)) for name in members]


def _total(table: WorldTable, config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    return round(sum(_figures(table, config, by_role)), DIGITS)


def _average(table: WorldTable, config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    figures = _figures(table, config, by_role)
    if not figures:
        raise WorkerFault("nothing_there", f"{as_text(by_role['target'])} has none, so there is no average")
    return round(sum(figures) / len(figures), DIGITS)


def _top(table: WorldTable, config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    """The individual with the largest number; the first of several."""
    members = _members(table, config, by_role["target"])
    if not members:
        raise WorkerFault("nothing_there", f"{as_text(by_role['target'])} has none")
    return max(members, key=lambda name: float(table.value(config.entity, name, config.over)))


def _convert(table: WorldTable, config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    converter = table.data.converters[config.topic]
    target = config.spellings.get(as_text(by_role["to"]), "") if "to" in by_role else "to"
    if not target:
        raise BadCall(f"there is no unit {as_text(by_role['to'])[:60]!r}; use one of: {', '.join(config.spellings)}")
    factor = converter.factor if target == "to" else 1 / converter.factor
    return round(_number(by_role["value"]) * factor, DIGITS)


def _find_note(table: WorldTable, _config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    request = fold_name(as_text(by_role["request"]))
    words = set(re.findall(r"\w+", request))
    about = [note for note in table.notes.values() if _mentions(request, note.name)]
    if not about:
        return "No note fits."
    return max(about, key=lambda note: (len(words & _topic_words(table, note.topic)), len(note.name))).text


def _mentions(request: str, name: str) -> bool:
    folded = fold_name(name)
    return folded in request and re.search(rf"(?<!\w){re.escape(folded)}(?!\w)", request) is not None


def _topic_words(table: WorldTable, topic: int) -> set[str]:
    note = table.data.notes[topic]
    return set(re.findall(r"\w+", " ".join((note.text, *note.phrases)).casefold())) - {"x", "v", "the", "of", "a"}


def _note_about(table: WorldTable, config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    name = _find(table, config.entity, by_role["name"])
    return table.notes[config.topic, name].text


def _read_number(table: WorldTable, _config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    text = as_text(by_role["text"])[:4000]
    for entity in table.records:
        for name in table.names(entity):
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text, flags=re.IGNORECASE)
    match = _NUMBER.search(text)
    if match is None:
        raise BadCall("there is no number in this text")
    number = float(match.group().replace(",", ""))
    return int(number) if number.is_integer() else number


def _number(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        match = _NUMBER.fullmatch(as_text(value).strip())
        if match is None:
            raise BadCall(f"{as_text(value)[:60]!r} is not a number")
        return float(match.group().replace(",", ""))
    return float(value)


def _date(value: JsonValue) -> date:
    try:
        return date.fromisoformat(as_text(value).strip())
    except ValueError as error:
        raise BadCall(f"{as_text(value)[:60]!r} is not a date; write it as 2024-03-31") from error


def _days_between(_table: WorldTable, _config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    return abs((_date(by_role["end"]) - _date(by_role["start"])).days)


def _add_days(_table: WorldTable, _config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    try:
        return (_date(by_role["start"]) + timedelta(days=_number(by_role["days"]))).isoformat()
    except OverflowError as error:
        raise BadCall("that is too many days") from error


def _larger(_table: WorldTable, _config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    wins = _number(by_role["value_a"]) >= _number(by_role["value_b"])
    return by_role["name_a"] if wins else by_role["name_b"]


def _threshold(_table: WorldTable, _config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    return "yes" if _number(by_role["value"]) > _number(by_role["limit"]) else "no"


def _arithmetic(_table: WorldTable, config: WorldConfig, by_role: Mapping[str, JsonValue]) -> JsonValue:
    left, right = _number(by_role["left"]), _number(by_role["right"])
    kind = config.spellings.get(as_text(by_role["operation"]))
    if kind == "divide" and not right:
        raise WorkerFault("math_error", "division by zero")
    results: dict[str | None, Callable[[], float]] = {
        "add": lambda: left + right,
        "subtract": lambda: left - right,
        "multiply": lambda: left * right,
        "divide": lambda: left / right,
    }
    if kind not in results:
        raise BadCall(f"use one of: {', '.join(config.spellings)}")
    return round(results[kind](), DIGITS)


def _act(_table: WorldTable, _config: WorldConfig, _by_role: Mapping[str, JsonValue]) -> JsonValue:
    return "done"


_SHAPES: dict[Shape, Callable[[WorldTable, WorldConfig, Mapping[str, JsonValue]], JsonValue]] = {
    "get": _get, "record": _record, "list": _list, "count": _count, "total": _total, "average": _average, "top": _top,
    "convert": _convert, "find_note": _find_note, "note_about": _note_about, "read_number": _read_number,
    "days_between": _days_between, "add_days": _add_days, "larger": _larger, "threshold": _threshold,
    "arithmetic": _arithmetic, "action": _act,
}  # fmt: skip
