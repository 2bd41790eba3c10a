"""The tools of one pool: made when a query needs them, each cut, named and described by the draw.

A world's table can be reached in many ways. Which of them a pool offers, under which name, with which parameters and in
which words, is drawn once for the pool; its tasks then share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from podium_lessons.worlds.spelling import SPELLINGS, spell_out
from podium_lessons.worlds.tables import WorldTable
from podium_lessons.worlds.tools.general_tools import make_general_tool
from podium_lessons.worlds.tools.parameters import Parameter
from podium_lessons.worlds.tools.tool_maker import Tool, ToolMaker
from podium_lessons.worlds.word_banks import load_words
from podium_lessons.worlds.worker import Shape
from podium_lessons.worlds.world_data import ConverterData, EntityData, FieldData
from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

UNIT_SHARE = 0.3  # of the look-ups of a measure: the caller chooses the unit
MAX_RECORD_FIELDS = 3


class Toolkit:
    """The tools that one pool offers on one world, and what they cover."""

    def __init__(self, table: WorldTable, random: Random, held_out_words: bool) -> None:
        self.table = table
        self._random = random
        self._held_out = held_out_words
        self._maker = ToolMaker(table, random, held_out_words)
        self._tools: dict[tuple[str, ...], Tool] = {}  # by what they can do
        self._specs: list[WorkerSpec] = []
        self._entities = {entity.name: entity for entity in table.data.entities}

    def copy(self) -> Toolkit:
        """The same tools, to be added to apart."""
        other = Toolkit(self.table, self._random, self._held_out)
        other._maker, other._tools, other._specs = self._maker.copy(), dict(self._tools), list(self._specs)
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

    def find_worker(self, ability: tuple[str, ...]) -> str:
        """The name of the worker that can do this."""
        return self._tools[ability].spec.name

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
        """A tool that every world may have: calculate, days_between, add_days, larger, threshold, units,
        arithmetic."""
        return self._tools.get((shape,)) or self._keep((shape,), make_general_tool(shape, self._maker))

    def add_action(self, index: int) -> None:
        """A worker that no task calls."""
        action = self.table.data.actions[index]
        if self.covers("action", str(index)):
            return
        parameters = [Parameter(f"text_{place}", "", "", names=(name,)) for place, name in enumerate(action.parameters)]
        description = self._random.choice(action.descriptions)
        tool = self._maker.make_tool("action", description, parameters, names=(action.name,))
        self._keep(("action", str(index)), tool)

    def add_agent(self) -> None:
        """A general language model, which no reference plan calls. It lives at no address."""
        self._specs.append(self._maker.make_agent())

    def add_foreign(self, specs: Iterable[WorkerSpec]) -> None:
        """Add workers of another world, unless one has a name that is taken."""
        for spec in specs:
            if self._maker.names.take_name(spec.name):
                self._specs.append(spec)

    def make_pool(self) -> Pool:
        """Make a pool of all workers in a drawn order."""
        workers = self._random.sample(self._specs, len(self._specs))
        name = f"world-{self.table.data.name}-{self.table.seed}".replace("_", "-")[:48]
        return Pool(name=name, description=f"A generated world: {self.table.data.place}.", workers=tuple(workers))

    def _make_getter(self, entity: str, field: str) -> None:
        data = self.field(entity, field)
        texts = {
            **self._maker.draw_entity_texts(self._entities[entity]),
            "phrase": self._random.choice(data.phrases),
            "field": field,
        }
        description = self._maker.describe("get", texts)
        config: dict[str, JsonValue] = {"entity": entity, "field": field}
        parameters = [self._maker.draw_name_parameter(entity)]
        spellings: dict[str, str] = {}
        other = next((unit for unit in load_words().physical if data.unit in unit.words), None)
        if other is not None and self._random.random() < UNIT_SHARE:
            spellings = {"own": data.unit, "other": other.name}
            choices = tuple(self._random.sample(list(spellings.values()), 2))
            parameters.append(Parameter("to", "the unit of the answer", choices[0], choices=choices))
            config["units"] = [other.unit, other.to]
        elif data.unit and self._random.random() < 0.5:
            description = f"{description.rstrip('.')}, in {data.unit}."
        self._keep(
            ("get", entity, field), self._maker.make_tool("get", description, parameters, texts, config, spellings)
        )

    def _make_record(self, entity: str, fields: Sequence[str]) -> None:
        """One tool for several fields, which are told apart by an enum in one of several spellings."""
        spell = self._random.choice(SPELLINGS)
        phrases = {name: self._random.choice(self.field(entity, name).phrases) for name in fields}
        spellings = {name: spell(name, phrases[name]) for name in self._random.sample(fields, len(fields))}
        if len(set(spellings.values())) < len(fields):
            spellings = {name: name for name in fields}
        shown = [phrases[name] for name in spellings]
        texts = {
            **self._maker.draw_entity_texts(self._entities[entity]),
            "fields": f"{', '.join(shown[:-1])} or {shown[-1]}",
        }
        description = self._maker.describe("record", texts)
        choices = tuple(spellings.values())
        parameters = [
            self._maker.draw_name_parameter(entity),
            Parameter("field", "what to look up", choices[0], choices=choices),
        ]
        tool = self._maker.make_tool("record", description, parameters, texts, {"entity": entity}, spellings)
        self._keep(("record", entity), tool)
        for name in fields:
            self._tools["get", entity, name] = tool

    def _make_grouping(self, ability: tuple[str, ...], shape: Shape, entity: str, field: str, over: str) -> Tool:
        data = self.field(entity, field)
        examples = sorted({str(record[field]) for record in self.table.records[entity].values()})
        example = self._random.choice(examples)
        target = self._entities[data.target].name if data.target else data.phrases[0]
        texts = {
            **self._maker.draw_entity_texts(self._entities[entity]),
            "target": spell_out(target),
            "x": example,
            "field": over or field,
        }
        if over:
            texts["phrase"] = self._random.choice(self.field(entity, over).phrases)
        parameters = [Parameter("target", f"the {spell_out(target)}", example)]
        config: dict[str, JsonValue] = {"entity": entity, "field": field, "over": over}
        description = self._maker.describe(shape, texts)
        return self._keep(ability, self._maker.make_tool(shape, description, parameters, texts, config))

    def _make_note_finder(self, topic: int) -> Tool:
        note = self.table.data.notes[topic]
        texts = {
            **self._maker.draw_entity_texts(self._entities[note.entity]),
            "phrase": self._random.choice(note.phrases),
        }
        if self._random.random() < 0.5:
            parameters = [self._maker.draw_name_parameter(note.entity)]
            config: dict[str, JsonValue] = {"entity": note.entity, "topic": topic}
            description = self._maker.describe("note_about", texts)
            tool = self._maker.make_tool("note_about", description, parameters, texts, config)
            return self._keep(("note_about", str(topic)), tool)
        texts["phrases"] = ", ".join(item.phrases[0] for item in self.table.data.notes)
        example = f"{texts['phrase']} {texts['x']}"
        parameters = [Parameter("request", "key words with a name", example)]
        description = self._maker.describe("find_note", texts)
        return self._keep(("find_note",), self._maker.make_tool("find_note", description, parameters, texts))

    def _make_reader(self) -> Tool:
        if self._random.random() < 0.4 and self._is_plain():
            return self._keep(("read",), self._maker.make_tool_of_kind("extractor", {"instruction": "instruction"}))
        parameters = [Parameter("text", "the text to read", "A total of 12 were counted.")]
        description = self._maker.describe("read_number", {})
        return self._keep(("read",), self._maker.make_tool("read_number", description, parameters))

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
        parameters = [Parameter("value", f"how many {data.unit}", 120, "number")]
        spellings: dict[str, str] = {}
        if self._random.random() < 0.35:
            spellings = {"to": data.to, "from": data.unit}
            parameters.append(Parameter("to", "the unit of the result", data.to, choices=(data.to, data.unit)))
        description = self._maker.describe("convert", texts)
        tool = self._maker.make_tool("convert", description, parameters, texts, {"topic": index}, spellings)
        return self._keep(("convert", str(index)), tool)

    def _keep(self, ability: tuple[str, ...], tool: Tool) -> Tool:
        self._tools[ability] = tool
        self._specs.append(tool.spec)
        return tool
