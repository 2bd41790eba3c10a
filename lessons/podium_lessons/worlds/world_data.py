"""The words of a world: one YAML file for each domain, in data/worlds. The modules beside this one make tables, workers
and tasks out of them, as many as one wants.

A file holds words only. Figures, names of workers and the choice of wordings are drawn from a seed.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from podium_lessons.lesson_data import FOLDER as DATA
from trainer.tasks.task_data import TaskData, read_task_data

FOLDER = DATA / "worlds"
PLACEHOLDER = "{x}"  # stands for the individual that a question is about


class FieldData(TaskData):
    """One thing that a world knows about an entity.

    `phrases` complete "the ... of {x}" and name the field in descriptions and needs; the first one is its usual name.
    `asks` are whole questions about one individual, with {x} where its name goes. A `number` lies between `low` and
    `high` with `decimals`; `unit` is the word behind it. A `choice` is one of `choices`; a `reference` is an
    individual of the entity `target`; a `name` is a person's or a thing's name out of `choices`, each drawn once.
    """

    name: str = Field(pattern=r"^[a-z][a-z_]{1,30}$")
    kind: Literal["number", "date", "choice", "reference", "name"]
    phrases: tuple[str, ...] = Field(min_length=3)
    asks: tuple[str, ...] = Field(min_length=3)
    low: float = 0
    high: float = 0
    decimals: int = 0
    unit: str = ""
    choices: tuple[str, ...] = ()
    target: str = ""

    @model_validator(mode="after")
    def _is_complete(self) -> FieldData:
        if self.kind == "number" and self.high <= self.low:
            raise ValueError(f"{self.name}: a number needs low < high")
        if self.kind == "date" and not 1900 <= self.low < self.high <= 2100:
            raise ValueError(f"{self.name}: a date needs years: low < high")
        if self.kind in ("choice", "name") and len(self.choices) < 3:
            raise ValueError(f"{self.name}: a {self.kind} needs at least 3 choices")
        if (self.kind == "reference") != bool(self.target):
            raise ValueError(f"{self.name}: a reference, and nothing else, has a target")
        if any(text.count(PLACEHOLDER) != 1 for text in self.asks):
            raise ValueError(f"{self.name}: every question of asks holds {PLACEHOLDER} once")
        return self


class EntityData(TaskData):
    """A kind of thing with individuals: a tree, a nurse, a van. Individuals are called by `labels`: either at least 24
    names, or up to 4 patterns with # for a digit and @ for a capital letter ("van @-##"). `aliases` are other words for
    the kind itself."""

    name: str
    plural: str
    aliases: tuple[str, ...] = ()
    labels: tuple[str, ...] = Field(min_length=1)
    fields: tuple[FieldData, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _has_labels(self) -> EntityData:
        patterns = [label for label in self.labels if "#" in label or "@" in label]
        if patterns and len(patterns) != len(self.labels):
            raise ValueError(f"{self.name}: labels are names or patterns, not both")
        if not patterns and len(set(self.labels)) < 24:
            raise ValueError(f"{self.name}: at least 24 different labels, or patterns with # and @")
        return self


class ConverterData(TaskData):
    """A conversion that only this domain has: one `unit` is `factor` of `to`. `phrases` complete "converts ..."."""

    unit: str
    to: str
    factor: float = Field(gt=0)
    phrases: tuple[str, ...] = Field(min_length=3)


class NoteData(TaskData):
    """A sentence of the world's notes about one individual of `entity`, with {x} for its name and {v} for the figure
    that it tells: a whole number between `low` and `high`. `phrases` and `asks` are as in a field."""

    entity: str
    text: str
    phrases: tuple[str, ...] = Field(min_length=3)
    asks: tuple[str, ...] = Field(min_length=3)
    low: int
    high: int
    unit: str = ""

    @model_validator(mode="after")
    def _has_gaps(self) -> NoteData:
        if PLACEHOLDER not in self.text or "{v}" not in self.text:
            raise ValueError(f"a note holds {PLACEHOLDER} and {{v}}: {self.text!r}")
        return self


class ActionData(TaskData):
    """A worker of the domain that no task calls: it only stands in pools, to be told apart from the others.
    `descriptions` are at least 3 wordings; `parameters` the names of its arguments (all of them texts)."""

    name: str = Field(pattern=r"^[a-z][a-z_]{1,40}$")
    descriptions: tuple[str, ...] = Field(min_length=3)
    parameters: tuple[str, ...] = Field(min_length=1)


class WorldData(TaskData):
    """A domain. `beyond` are questions that belong to it and that none of its workers can answer. `held_out` domains
    are never learnt from."""

    name: str = Field(pattern=r"^[a-z][a-z_]{1,30}$")
    place: str  # "the orchard": where all this is, for queries and descriptions
    held_out: bool = False
    entities: tuple[EntityData, ...] = Field(min_length=2)
    converters: tuple[ConverterData, ...] = ()
    notes: tuple[NoteData, ...] = ()
    actions: tuple[ActionData, ...] = Field(min_length=4)
    beyond: tuple[str, ...] = Field(min_length=8)

    @model_validator(mode="after")
    def _targets_exist(self) -> WorldData:
        names = {entity.name for entity in self.entities}
        for entity in self.entities:
            missing = {item.target for item in entity.fields if item.target} - names
            if missing:
                raise ValueError(f"{entity.name} refers to {min(missing)!r}, which is no entity of {self.name}")
        if missing := {note.entity for note in self.notes} - names:
            raise ValueError(f"a note is about {min(missing)!r}, which is no entity of {self.name}")
        return self


@cache
def list_worlds() -> tuple[str, ...]:
    """The names of all domains that ship."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


@cache
def load_world(name: str) -> WorldData:
    """The words of a domain. Raises UnusableTasks with every place in its file that is wrong."""
    return read_world(FOLDER / f"{name}.yaml")


def read_world(path: Path) -> WorldData:
    """The words in a file. Raises UnusableTasks."""
    return read_task_data(path, WorldData)
