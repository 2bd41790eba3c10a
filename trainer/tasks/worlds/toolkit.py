"""The tools of one pool: made when a query needs them, each cut, named and described by the draw.

A world's table can be reached in many ways. Which of them a pool offers, under which name, with which parameters and in
which words, is drawn once for the pool; its tasks then share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.tasks.worlds.tables import WorldTable
from trainer.tasks.worlds.word_banks import list_held_out_texts, list_learnt_texts, load_words
from trainer.tasks.worlds.worker import Shape
from trainer.tasks.worlds.world_data import ConverterData, EntityData, FieldData

MAX_NAME = 40
MASKED_SHARE = 2 / 3  # of all names of workers
UNIT_SHARE = 0.3  # of the look-ups of a measure: the caller chooses the unit
MAX_RECORD_FIELDS = 3


@dataclass(frozen=True, slots=True)
class Tool:
    """A worker and how to call it. `roles` are the names of its parameters by the role that they play, `spellings` the
    choices of its enum by what they stand for."""

    spec: WorkerSpec
    roles: Mapping[str, str]
    spellings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter before it has a name. `choices` make it an enum."""

    role: str
    about: str
    example: JsonValue
    type: str = "string"
    choices: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # where they are not those of the role


class Toolkit:
    """The tools that one pool offers on one world, and what they cover."""

    def __init__(self, table: WorldTable, random: Random, held_out_words: bool) -> None:
        self.table = table
        self._random = random
        self._held_out = held_out_words
        self._words = load_words()
        self._names: set[str] = set()
        self._tools: dict[tuple[str, ...], Tool] = {}  # by what they can do
        self._specs: list[WorkerSpec] = []
        self._entities = {entity.name: entity for entity in table.data.entities}

    def copy(self) -> Toolkit:
        """The same tools, to be added to apart."""
        other = Toolkit(self.table, self._random, self._held_out)
        other._names, other._tools, other._specs = set(self._names), dict(self._tools), list(self._specs)
        return other

    @property
    def abilities(self) -> frozenset[tuple[str, ...]]:
        """What the tools can do."""
        return frozenset(self._tools)

    @property
    def specs(self) -> tuple[WorkerSpec, ...]:
        """The workers made so far."""
        return tuple(self._specs)

    def entity(self, name: str) -> EntityData:
        """The words of an entity."""
        return self._entities[name]

    def field(self, entity: str, name: str) -> FieldData:
        """The words of a field."""
        return next(field for field in self._entities[entity].fields if field.name == name)

    def covers(self, *ability: str) -> bool:
        """Whether a tool can do this already: ("get", entity, field), ("calculate",) ..."""
        return ability in self._tools

    def getter(self, entity: str, field: str) -> Tool:
        """The tool that knows a field of an individual: for it alone, or for several fields of a record."""
        ability = ("get", entity, field)
        if ability not in self._tools:
            others = [item.name for item in self._entities[entity].fields if not self.covers("get", entity, item.name)]
            others.remove(field)
            if others and self._random.random() < 0.35:
                self._make_record(
                    entity, [field, *self._random.sample(others, min(len(others), MAX_RECORD_FIELDS - 1))]
                )
            else:
                self._make_getter(entity, field)
        return self._tools[ability]

    def grouping(self, shape: Shape, entity: str, field: str, over: str = "") -> Tool:
        """The tool that lists, counts, adds up, averages or ranks the individuals with a value in a field."""
        ability = (shape, entity, field, over)
        return self._tools.get(ability) or self._make_grouping(ability, shape, entity, field, over)

    def note_finder(self, topic: int) -> Tool:
        """The tool that returns the passage on a topic."""
        own = self._tools.get(("note_about", str(topic)))
        return own or self._tools.get(("find_note",)) or self._make_note_finder(topic)

    def reader(self) -> Tool:
        """The tool that reads the number in a passage."""
        return self._tools.get(("read",)) or self._make_reader()

    def converter(self, index: int) -> Tool:
        """The tool for a conversion that only this domain has."""
        return self._tools.get(("convert", str(index))) or self._make_converter(index)

    def general(self, shape: str) -> Tool:
        """A tool that every world may have: calculate, days_between, add_days, larger, threshold, units."""
        tool = self._tools.get((shape,))
        if tool is None:
            make: Callable[[], Tool] = {
                "calculate": self._make_calculator, "arithmetic": self._make_arithmetic,
                "days_between": self._make_days_between, "add_days": self._make_add_days,
                "larger": self._make_larger, "threshold": self._make_threshold, "units": self._make_units,
            }[shape]  # fmt: skip
            tool = make()
        return tool

    def add_action(self, index: int) -> None:
        """A worker that no task calls."""
        action = self.table.data.actions[index]
        if self.covers("action", str(index)):
            return
        parameters = [
            _Parameter(f"text_{place}", "", "", names=(name,)) for place, name in enumerate(action.parameters)
        ]
        description = self._random.choice(action.descriptions)
        self._make(("action", str(index)), "action", description, (action.name,), parameters)

    def add_agent(self) -> None:
        """A general language model, which no reference plan calls. It lives at no address."""
        texts = self._words.test_agents if self._held_out else self._words.agents
        name = self._draw_name(("assistant", "chat", "agent", "writer"), masked=self._random.random() < MASKED_SHARE)
        config: dict[str, JsonValue] = {"base_url": "http://127.0.0.1:9/v1", "model": "none"}
        self._specs.append(
            WorkerSpec(name=name, kind="chat", description=self._random.choice(texts), config=config, retries=0)
        )

    def add_foreign(self, specs: Iterable[WorkerSpec]) -> None:
        """Workers of another world, unless one has a name that is taken."""
        for spec in specs:
            if spec.name not in self._names:
                self._names.add(spec.name)
                self._specs.append(spec)

    def make_pool(self) -> Pool:
        """All workers in an order of their own."""
        workers = self._random.sample(self._specs, len(self._specs))
        name = f"world-{self.table.data.name}-{self.table.seed}".replace("_", "-")[:48]
        return Pool(name=name, description=f"A generated world: {self.table.data.place}.", workers=tuple(workers))

    def _make_getter(self, entity: str, field: str) -> None:
        data = self.field(entity, field)
        texts = {**self._entity_texts(entity), "phrase": self._random.choice(data.phrases), "field": field}
        description = self._describe("get", texts)
        config: dict[str, JsonValue] = {"entity": entity, "field": field}
        parameters = [self._name_parameter(entity)]
        spellings: dict[str, str] = {}
        other = next((unit for unit in self._words.physical if data.unit in unit.words), None)
        if other is not None and self._random.random() < UNIT_SHARE:
            spellings = {"own": data.unit, "other": other.name}
            choices = tuple(self._random.sample(list(spellings.values()), 2))
            parameters.append(_Parameter("to", "the unit of the answer", choices[0], choices=choices))
            config["units"] = [other.unit, other.to]
        elif data.unit and self._random.random() < 0.5:
            description = f"{description.rstrip('.')}, in {data.unit}."
        self._make(("get", entity, field), "get", description, self._words.names["get"], parameters, texts, config,
                   spellings)  # fmt: skip

    def _make_record(self, entity: str, fields: Sequence[str]) -> None:
        """One tool for several fields, which are told apart by an enum in one of several spellings."""
        spell = self._random.choice(_SPELLINGS)
        phrases = {name: self._random.choice(self.field(entity, name).phrases) for name in fields}
        spellings = {name: spell(name, phrases[name]) for name in self._random.sample(fields, len(fields))}
        if len(set(spellings.values())) < len(fields):
            spellings = {name: name for name in fields}
        shown = [phrases[name] for name in spellings]
        texts = {**self._entity_texts(entity), "fields": f"{', '.join(shown[:-1])} or {shown[-1]}"}
        description = self._describe("record", texts)
        choices = tuple(spellings.values())
        parameters = [
            self._name_parameter(entity),
            _Parameter("field", "what to look up", choices[0], choices=choices),
        ]
        tool = self._make(("record", entity), "record", description, self._words.names["record"], parameters, texts,
                          {"entity": entity}, spellings)  # fmt: skip
        for name in fields:
            self._tools["get", entity, name] = tool

    def _make_grouping(self, ability: tuple[str, ...], shape: Shape, entity: str, field: str, over: str) -> Tool:
        data = self.field(entity, field)
        examples = sorted({str(record[field]) for record in self.table.records[entity].values()})
        example = self._random.choice(examples)
        target = self._entities[data.target].name if data.target else data.phrases[0]
        texts = {**self._entity_texts(entity), "target": spell_out(target), "x": example, "field": over or field}
        if over:
            texts["phrase"] = self._random.choice(self.field(entity, over).phrases)
        parameters = [_Parameter("target", f"the {spell_out(target)}", example)]
        config: dict[str, JsonValue] = {"entity": entity, "field": field, "over": over}
        return self._make(
            ability, shape, self._describe(shape, texts), self._words.names[shape], parameters, texts, config
        )

    def _make_note_finder(self, topic: int) -> Tool:
        note = self.table.data.notes[topic]
        texts = {**self._entity_texts(note.entity), "phrase": self._random.choice(note.phrases)}
        if self._random.random() < 0.5:
            parameters = [self._name_parameter(note.entity)]
            config: dict[str, JsonValue] = {"entity": note.entity, "topic": topic}
            description = self._describe("note_about", texts)
            return self._make(("note_about", str(topic)), "note_about", description, self._words.names["note_about"],
                              parameters, texts, config)  # fmt: skip
        texts["phrases"] = ", ".join(item.phrases[0] for item in self.table.data.notes)
        example = f"{texts['phrase']} {texts['x']}"
        parameters = [_Parameter("request", "key words with a name", example)]
        return self._make(("find_note",), "find_note", self._describe("find_note", texts),
                          self._words.names["find_note"], parameters, texts)  # fmt: skip

    def _make_reader(self) -> Tool:
        if self._random.random() < 0.4 and self._is_plain():
            return self._add_kind(("read",), "extractor", {"instruction": "instruction"})
        parameters = [_Parameter("text", "the text to read", "A total of 12 were counted.")]
        return self._make(("read",), "read_number", self._describe("read_number", {}),
                          self._words.names["read_number"], parameters)  # fmt: skip

    def _is_plain(self) -> bool:
        """Whether the first number of every passage is its figure, which is what the kind `extractor` reads."""
        from pool_registry.starter.workers.extractor import number

        firsts: dict[int, list[bool]] = {}
        for note in self.table.notes.values():
            firsts.setdefault(note.topic, []).append(number(note.text) == note.figure)
        return all(all(topic) for topic in firsts.values())

    def _make_converter(self, index: int) -> Tool:
        data: ConverterData = self.table.data.converters[index]
        texts = {"conversion": self._random.choice(data.phrases), "from": data.unit, "to": data.to,
                 "place": self.table.data.place}  # fmt: skip
        parameters = [_Parameter("value", f"how many {data.unit}", 120, "number")]
        spellings: dict[str, str] = {}
        if self._random.random() < 0.35:
            spellings = {"to": data.to, "from": data.unit}
            parameters.append(_Parameter("to", "the unit of the result", data.to, choices=(data.to, data.unit)))
        return self._make(("convert", str(index)), "convert", self._describe("convert", texts),
                          self._words.names["convert"], parameters, texts, {"topic": index}, spellings)  # fmt: skip

    def _make_calculator(self) -> Tool:
        return self._add_kind(("calculate",), "calculator", {"expression": "expression"})

    def _make_arithmetic(self) -> Tool:
        spellings = {what: self._random.choice(words) for what, words in self._words.operations.items()}
        texts = {"operations": ", ".join(spellings.values())}
        parameters = [
            _Parameter("left", "first number", 12.5, "number"),
            _Parameter("operation", "what to do", spellings["subtract"], choices=tuple(spellings.values())),
            _Parameter("right", "second number", 3, "number"),
        ]
        return self._make(("arithmetic",), "arithmetic", self._describe("arithmetic", texts),
                          self._words.names["arithmetic"], parameters, texts, {}, spellings)  # fmt: skip

    def _make_days_between(self) -> Tool:
        parameters = [
            _Parameter("start", "ISO date", "2021-05-30"), _Parameter("end", "ISO date", "2022-01-08")
        ]  # fmt: skip
        return self._make_plain("days_between", parameters)

    def _make_add_days(self) -> Tool:
        parameters = [
            _Parameter("start", "ISO date", "2021-05-30", names=self._words.parameters["date"]),
            _Parameter("days", "how many days", 14, "number"),
        ]
        return self._make_plain("add_days", parameters)

    def _make_larger(self) -> Tool:
        parameters = [
            _Parameter("name_a", "first name", "north"), _Parameter("value_a", "its number", 12.5, "number"),
            _Parameter("name_b", "second name", "south"), _Parameter("value_b", "its number", 9, "number"),
        ]  # fmt: skip
        return self._make_plain("larger", parameters)

    def _make_threshold(self) -> Tool:
        parameters = [_Parameter("value", "the number", 12.5, "number"), _Parameter("limit", "the limit", 10, "number")]
        return self._make_plain("threshold", parameters)

    def _make_units(self) -> Tool:
        roles = {"value": "value", "from": "from_unit", "to": "to_unit"}
        return self._add_kind(("units",), "units", roles)

    def _make_plain(self, shape: Shape, parameters: Sequence[_Parameter]) -> Tool:
        return self._make((shape,), shape, self._describe(shape, {}), self._words.names[shape], parameters)

    def _add_kind(self, ability: tuple[str, ...], kind: str, roles: Mapping[str, str]) -> Tool:
        """A worker of a kind that other pools have too."""
        name = self._draw_name(self._words.names[kind], masked=self._random.random() < MASKED_SHARE)
        spec = WorkerSpec(name=name, kind=kind, description=self._describe(kind, {}))
        return self._keep(ability, Tool(spec, roles, {}))

    def _make(
        self,
        ability: tuple[str, ...],
        shape: Shape,
        description: str,
        names: Sequence[str],
        parameters: Sequence[_Parameter],
        texts: Mapping[str, str] | None = None,
        config: Mapping[str, JsonValue] | None = None,
        spellings: Mapping[str, str] | None = None,
    ) -> Tool:
        """A worker of the kind `world`. `spellings` are the enum's choices by what they stand for."""
        masked = self._random.random() < MASKED_SHARE
        name = self._draw_name([fill_text(pattern, texts or {}) for pattern in names], masked)
        roles = self._name_roles(parameters, texts or {}, masked and self._random.random() < 0.5)
        rules = {roles[item.role]: _write_rule(item) for item in parameters}
        arguments = {"type": "object", "properties": rules, "required": list(rules), "additionalProperties": False}
        example = {roles[item.role]: item.example for item in parameters if item.example != ""}
        content = {
            **(config or {}), "domain": self.table.data.name, "seed": self.table.seed, "shape": shape, "roles": roles,
            "spellings": {text: what for what, text in (spellings or {}).items()},
            "arguments": arguments, "example": example,
        }  # fmt: skip
        spec = WorkerSpec(name=name, kind="world", description=description, config=content)
        return self._keep(ability, Tool(spec, roles, spellings or {}))

    def _keep(self, ability: tuple[str, ...], tool: Tool) -> Tool:
        self._tools[ability] = tool
        self._specs.append(tool.spec)
        return tool

    def _describe(self, shape: str, texts: Mapping[str, str]) -> str:
        texts_of_all = self._words.descriptions[shape]
        bank = list_held_out_texts(texts_of_all) if self._held_out else list_learnt_texts(texts_of_all)
        return _capitalize(fill_text(self._random.choice(bank), texts))

    def _entity_texts(self, entity: str) -> dict[str, str]:
        data = self._entities[entity]
        return {
            "entity": spell_out(data.name), "plural": spell_out(data.plural),
            "alias": self._random.choice((spell_out(data.name), *data.aliases)),
            "x": self._random.choice(self.table.names(entity)), "place": self.table.data.place,
        }  # fmt: skip

    def _name_parameter(self, entity: str) -> _Parameter:
        example = self._random.choice(self.table.names(entity))
        return _Parameter("name", f"the {spell_out(entity)}", example)

    def _name_roles(self, parameters: Sequence[_Parameter], texts: Mapping[str, str], masked: bool) -> dict[str, str]:
        """A name for every parameter: what it is, or a masked one."""
        style = self._random.choice(("numbered", "letters", "words"))
        taken: set[str] = set()
        place = self._random.randrange(6)
        roles = {}
        for number, item in enumerate(parameters):
            bank = item.names or self._words.parameters[item.role]
            # pairs such as start and end take the same place of their banks
            pair = item.role in _PAIRS
            name = _to_name(fill_text(bank[place % len(bank)] if pair else self._random.choice(bank), texts))
            if masked:
                name = self._mask_parameter(style, number)
            while name in taken:
                name = f"{name}_{len(taken) + 1}"
            taken.add(name)
            roles[item.role] = name
        return roles

    def _mask_parameter(self, style: str, number: int) -> str:
        if style == "numbered":
            return f"arg_{number + 1}"
        return "pqrstuvw"[number] if style == "letters" else self._make_up_word()

    def _make_up_word(self) -> str:
        return "".join(self._random.choices(self._words.syllables, k=self._random.choice((2, 2, 3))))

    def _draw_name(self, natural: Sequence[str], masked: bool) -> str:
        """A name that no other worker of the pool has."""
        while True:
            name = self._mask_name() if masked else _to_name(self._random.choice(natural))
            if name not in self._names:
                break
            masked = masked or self._random.random() < 0.5
        self._names.add(name)
        return name

    def _mask_name(self) -> str:
        pick = self._random.choice
        words = self._words
        return pick(
            (
                self._make_up_word,
                lambda: f"{pick(words.adjectives)}_{pick(words.nouns)}",
                lambda: f"{pick(words.nouns)}_{pick('abcdefghkmnpqrstuvwxyz')}",
                lambda: f"{pick(words.verbs)}_{pick(words.nouns)}",
                lambda: f"{self._make_up_word()}_{self._random.randint(1, 99)}",
                lambda: f"{pick(words.nouns)}{self._random.randint(1, 9)}",
            )
        )()


_VOWELS = frozenset("aeiou")
_CONSONANTS = ("uni", "use", "usu", "eu", "one", "once", "ura")  # spoken with a consonant
_PAIRS = frozenset({"start", "end", "name_a", "value_a", "name_b", "value_b", "left", "right"})
_SPELLINGS: tuple[Callable[[str, str], str], ...] = (
    lambda name, _: name,
    lambda name, _: name,
    lambda _, phrase: phrase,
    lambda _, phrase: _to_name(phrase),
    lambda name, _: name.upper(),
    lambda name, _: name.replace("_", "-"),
    lambda name, _: "".join(part.capitalize() if place else part for place, part in enumerate(name.split("_"))),
)


def _write_rule(parameter: _Parameter) -> dict[str, JsonValue]:
    rule: dict[str, JsonValue] = {"type": parameter.type}
    if parameter.choices:
        rule["enum"] = list(parameter.choices)
    if parameter.about:
        rule["description"] = parameter.about
    if parameter.example != "" and not parameter.choices:
        rule["examples"] = [parameter.example]
    return rule


def fill_text(template: str, texts: Mapping[str, str]) -> str:
    """A template with its gaps filled; {Phrase} is {phrase} with a capital letter, and "a" before a gap becomes "an"
    where the text asks for it. A gap without a text stays."""
    for key, text in texts.items():
        if text[:1].lower() in _VOWELS and not text.lower().startswith(_CONSONANTS):
            template = template.replace(f" a {{{key}}}", f" an {text}").replace(f"A {{{key}}}", f"An {text}")
        template = template.replace(f"{{{key}}}", text)
        if f"{{{key.capitalize()}}}" in template:
            template = template.replace(f"{{{key.capitalize()}}}", _capitalize(text))
    return template


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def spell_out(name: str) -> str:
    """The name of an entity or field as words."""
    return name.replace("_", " ")


def _to_name(text: str) -> str:
    """A text as the name of a worker or parameter."""
    name = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in text.casefold())
    name = "_".join(part for part in name.split("_") if part)
    return (name if name[:1].isalpha() else f"x_{name}")[:MAX_NAME].rstrip("_")
