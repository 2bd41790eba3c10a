"""The tables of a world: who is there, with which values, and what its notes say. All of it follows from a domain and a
seed, and nothing is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from random import Random
from typing import TypeAlias

from podium_lessons.worlds.world_data import EntityData, FieldData, WorldData, load_world
from trainer.tasks.suite import make_random

Value: TypeAlias = str | int | float
MIN_INDIVIDUALS = 12
MAX_INDIVIDUALS = 40
MAX_TARGETS = 16  # of what others refer to, so that several refer to the same
MAX_DRAWS = 4000
MAX_SAME_PATTERN = 200  # draws from one pattern; some hold few names
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence about one individual, and the figure in it. `topic` is the place of its wording in the domain."""

    topic: int
    name: str
    figure: int
    text: str


@dataclass(frozen=True, slots=True)
class WorldTable:
    """The individuals of every entity with their values, and the notes. `known_names` finds an individual by its name
    in small letters."""

    data: WorldData
    seed: int
    records: Mapping[str, Mapping[str, Mapping[str, Value]]]
    notes: Mapping[tuple[int, str], Note]
    known_names: Mapping[str, Mapping[str, str]]

    def names(self, entity: str) -> tuple[str, ...]:
        """The individuals of an entity."""
        return tuple(self.records[entity])

    def value(self, entity: str, name: str, field: str) -> Value:
        """What the world knows about an individual."""
        return self.records[entity][name][field]

    def members(self, entity: str, field: str, value: Value) -> list[str]:
        """The individuals whose field has this value."""
        return [name for name, record in self.records[entity].items() if record[field] == value]

    def find_name(self, entity: str, text: str) -> str | None:
        """The individual that a text names, in any case and with or without the entity's own name before it."""
        folded = fold_name(text)
        names = self.known_names[entity]
        return names.get(folded) or names.get(folded.removeprefix(f"{entity.replace('_', ' ')} "))


@lru_cache(maxsize=256)
def make_table(domain: str, seed: int) -> WorldTable:
    """The world of a domain and a seed. Raises UnusableTasks when the domain's file is malformed."""
    data = load_world(domain)
    random = make_random(f"world/{domain}/{seed}")
    targets = {field.target for entity in data.entities for field in entity.fields if field.target}
    taken: set[str] = set()
    names = {
        entity.name: _draw_names(entity, random, taken, is_target=entity.name in targets) for entity in data.entities
    }
    records = {entity.name: _fill(entity, names[entity.name], names, random) for entity in data.entities}
    known_names = {entity: {fold_name(name): name for name in there} for entity, there in names.items()}
    return WorldTable(data, seed, records, _write_notes(data, names, random), known_names)


def fold_name(text: str) -> str:
    """A name without case, an article before it and differences in white space."""
    return " ".join(text.casefold().split()).removeprefix("the ").strip(" .?!\"'")


def _draw_names(entity: EntityData, random: Random, taken: set[str], is_target: bool) -> list[str]:
    """Draw names for the individuals of an entity, none of which another entity of the world has."""
    count = random.randint(MIN_INDIVIDUALS, MAX_TARGETS if is_target else MAX_INDIVIDUALS)
    people = [len(field.choices) for field in entity.fields if field.kind == "name"]
    count = min([count, *(size for size in people if size >= MIN_INDIVIDUALS)])
    patterns = "#" in entity.labels[0] or "@" in entity.labels[0]
    pattern = random.choice(entity.labels)  # one world writes all its labels alike
    free = random.sample(entity.labels, len(entity.labels))
    drawn: list[str] = []
    for attempt in range(MAX_DRAWS):
        if len(drawn) == count or not (patterns or free):
            break
        if attempt > MAX_SAME_PATTERN:
            pattern = random.choice(entity.labels)
        name = _expand(pattern, random) if patterns else free.pop()
        if fold_name(name) not in taken:
            taken.add(fold_name(name))
            drawn.append(name)
    return drawn


def _expand(pattern: str, random: Random) -> str:
    """A label with a digit for each # and a capital letter for each @; a number does not begin with 0."""
    text = ""
    for mark in pattern:
        starts = not text[-1:].isdigit()
        text += (
            random.choice("123456789" if starts else "0123456789")
            if mark == "#"
            else (random.choice(LETTERS) if mark == "@" else mark)
        )
    return text


def _fill(
    entity: EntityData, names: list[str], there: Mapping[str, Sequence[str]], random: Random
) -> dict[str, dict[str, Value]]:
    columns = {field.name: _draw_values(field, len(names), there, random) for field in entity.fields}
    return {name: {field: values[row] for field, values in columns.items()} for row, name in enumerate(names)}


def _draw_values(field: FieldData, count: int, there: Mapping[str, Sequence[str]], random: Random) -> list[Value]:
    """A column of values; names are given to one individual each for as long as there are any."""
    if field.kind == "number":
        return [_draw_number(field, random) for _ in range(count)]
    if field.kind == "date":
        first = date(int(field.low), 1, 1)
        span = (date(int(field.high), 12, 31) - first).days
        return [(first + timedelta(days=random.randint(0, span))).isoformat() for _ in range(count)]
    if field.kind == "name":
        rounds = -(-count // len(field.choices))
        drawn = [name for _ in range(rounds) for name in random.sample(field.choices, len(field.choices))]
        return list(drawn[:count])
    choices: Sequence[Value] = there[field.target] if field.kind == "reference" else field.choices
    return [random.choice(choices) for _ in range(count)]


def _draw_number(field: FieldData, random: Random) -> Value:
    number = round(random.uniform(field.low, field.high), field.decimals)
    return number if field.decimals else int(number)


def _write_notes(data: WorldData, names: Mapping[str, list[str]], random: Random) -> dict[tuple[int, str], Note]:
    notes = {}
    for topic, note in enumerate(data.notes):
        for name in names[note.entity]:
            figure = random.randint(note.low, note.high)
            text = note.text.replace("{x}", name).replace("{v}", str(figure))
            notes[topic, name] = Note(topic, name, figure, text)
    return notes
