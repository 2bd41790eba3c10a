"""How the functions of a domain are cut for a pool: fields one by one or as records, under drawn names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from podium_lessons.composed.domain import IT, CalculationData, DomainData
from podium_lessons.composed.texts import choose, load_texts
from podium_lessons.composed.worker import ComposedConfig, Form
from pool_registry.actions import JsonValue
from pool_registry.worker import WorkerSpec

KIND = "composed"
RECORD_SHARE = 0.6  # of the kinds of things are looked up as records, the others field by field
SPLIT_SHARE = 0.3  # of the records are two
CHOICES_SHARE = 0.6  # of the calculations name the values of their choices in the schema, the others in a hint
EXAMPLE_SHARE = 0.3  # of the cards
HINTS = ("", "", "", "name of the {one}", "the {one}", "{one}, for example {name}")
RECORD_NAMES = (
    "get_{0}", "{0}_info", "look_up_{0}", "find_{0}", "{0}_details", "{0}", "fetch_{0}", "{0}_record", "show_{0}",
)  # fmt: skip
FIELD_NAMES = ("{1}", "get_{1}", "{0}_{1}", "{1}_of_{0}", "get_{0}_{1}")
GROUP_NAMES = ("{0}_by_{1}", "list_{0}", "find_{0}", "{0}_of_{1}", "search_{0}", "{0}_for_{1}", "get_{0}_by_{1}")
CALCULATION_NAMES = ("{0}", "{0}", "compute_{0}", "get_{0}", "estimate_{0}")
THING_PARAMETERS = ("{0}", "{0}", "{0}_name", "name", "which", "{0}_id")


@dataclass(frozen=True, slots=True)
class DomainFunction:
    """A function of a pool: its worker, and its configuration."""

    spec: WorkerSpec
    config: ComposedConfig


class FunctionCutter:
    """Draws the functions of a domain with the seed of its values."""

    def __init__(self, domain: DomainData, seed: int, split: str, random: Random) -> None:
        self._domain, self._seed, self._split, self._random = domain, seed, split, random
        self._names: set[str] = set()

    def cut(self) -> list[DomainFunction]:
        """All functions of the domain: every field in one of them, a list for every group, every calculation."""
        functions: list[DomainFunction] = []
        for kind, thing in self._domain.things.items():
            functions += [self._make_record(kind, fields) for fields in self._part(list(thing.fields))]
            for name, field in thing.fields.items():
                if field.group:
                    functions.append(self._make_group(kind, name))
        return functions + [self._make_calculation(data) for data in self._domain.calculations]

    def _part(self, fields: Sequence[str]) -> list[Sequence[str]]:
        """The fields of a kind, by the functions that give them."""
        if self._random.random() > RECORD_SHARE:
            return [[name] for name in fields]
        if len(fields) > 3 and self._random.random() < SPLIT_SHARE:
            return [fields[::2], fields[1::2]]
        return [fields]

    def _make_record(self, kind: str, fields: Sequence[str]) -> DomainFunction:
        thing, random = self._domain.things[kind], self._random
        if bare := len(fields) == 1:
            description = choose(thing.fields[fields[0]].descriptions, self._split, random)
            name = self._name(FIELD_NAMES, kind, fields[0])
        else:
            text = choose(load_texts()["records"], self._split, random)
            description = _fill_description(text, one=thing.one, fields=_list_fields(fields))
            name = self._name(RECORD_NAMES, kind)
        return self._make("record", kind, fields, name, description, {"thing": self._name_thing(kind)}, bare=bare)

    def _make_group(self, kind: str, field: str) -> DomainFunction:
        thing, random = self._domain.things[kind], self._random
        shared = thing.fields[field].gives.thing
        fields = [name for name in thing.fields if name != field]
        description = _fill_description(
            choose(load_texts()["groups"], self._split, random),
            one=thing.one, plural=thing.plural, field=_to_words(field), other=self._domain.things[shared].one,
            fields=_list_fields(fields),
        )  # fmt: skip
        name = self._name(GROUP_NAMES, thing.plural, field)
        parameter = random.choice((field, self._name_thing(shared)))
        return self._make("group", kind, fields, name, description, {"thing": parameter}, field=field)

    def _make_calculation(self, data: CalculationData) -> DomainFunction:
        name = self._name(CALCULATION_NAMES, data.name)
        description = choose(data.descriptions, self._split, self._random)
        parameters = {part: part for part in data.takes}
        return self._make("calculation", data.name, list(data.gives), name, description, parameters)

    def _make(
        self, form: Form, about: str, fields: Sequence[str], name: str, description: str, parameters: dict[str, str],
        field: str = "", bare: bool = False,
    ) -> DomainFunction:  # fmt: skip
        random = self._random
        choices = random.random() < CHOICES_SHARE
        things = self._list_things(form, about, field)
        example: dict[str, JsonValue] = {}
        if form != "calculation" and random.random() < EXAMPLE_SHARE:
            example = {parameters["thing"]: random.choice(self._domain.things[things["thing"]].names)}
        hints = {part: self._hint(kind) for part, kind in things.items()}
        if form == "calculation" and not choices:
            hints |= self._hint_choices(about)
        config = ComposedConfig(
            domain=self._domain.name, seed=self._seed, form=form, about=about, field=field, fields=tuple(fields),
            bare=bare or (form == "calculation" and len(fields) == 1), parameters=parameters,
            hints={part: hint for part, hint in hints.items() if hint}, choices=choices, example=example,
        )  # fmt: skip
        spec = WorkerSpec(name=name, kind=KIND, description=description, config=config.model_dump(mode="json"))
        return DomainFunction(spec, config)

    def _list_things(self, form: Form, about: str, field: str) -> dict[str, str]:
        """The parts of a request that are things, with their kinds."""
        if form == "record":
            return {"thing": about}
        if form == "group":
            return {"thing": self._domain.things[about].fields[field].gives.thing}
        takes = next(data.takes for data in self._domain.calculations if data.name == about)
        return {part: parameter.thing for part, parameter in takes.items() if parameter.thing}

    def _hint(self, kind: str) -> str:
        thing = self._domain.things[kind]
        return self._random.choice(HINTS).format(one=thing.one, name=self._random.choice(thing.names))

    def _hint_choices(self, calculation: str) -> dict[str, str]:
        takes = next(data.takes for data in self._domain.calculations if data.name == calculation)
        return {part: " or ".join(parameter.choice) for part, parameter in takes.items() if parameter.choice}

    def _name_thing(self, kind: str) -> str:
        return self._random.choice(THING_PARAMETERS).format(kind)

    def _name(self, forms: Sequence[str], *words: str) -> str:
        """A name that no other function of this domain has."""
        names = [_to_name(form.format(*map(_to_name, words))) for form in forms]
        free = [name for name in names if name not in self._names]
        name = self._random.choice(free) if free else f"{names[0]}_{len(self._names)}"
        self._names.add(name)
        return name


def _to_name(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", words.casefold()).strip("_")


def _to_words(name: str) -> str:
    return name.replace("_", " ")


def _list_fields(fields: Sequence[str]) -> str:
    words = [_to_words(name) for name in fields]
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def add_article(one: str) -> str:
    """A noun with its article."""
    return f"{'an' if one[:1].casefold() in 'aeiou' else 'a'} {one}"


def make_general(noun: str, one: str) -> str:
    """A noun phrase of a field for any thing of its kind: "price of a packet of a variety"."""
    return noun.replace(IT, add_article(one))


def _fill_description(text: str, **words: str) -> str:
    filled = text
    for key in ("one", "other"):
        if key in words:
            filled = re.sub(rf"\ba \{{{key}\}}", add_article(words[key]), filled)
    return filled.format(**words)
