"""The tools of one pool as they are made: named, described and given parameters by the draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from podium_lessons.worlds.spelling import capitalize, fill_text, spell_out
from podium_lessons.worlds.tables import WorldTable
from podium_lessons.worlds.tools.name_maker import NameMaker
from podium_lessons.worlds.tools.parameters import Parameter, write_rule
from podium_lessons.worlds.word_banks import list_held_out_texts, list_learnt_texts, load_words
from podium_lessons.worlds.worker import Shape
from podium_lessons.worlds.world_data import EntityData
from pool_registry.actions import JsonValue
from pool_registry.worker import WorkerSpec

MASKED_SHARE = 2 / 3  # of all names of workers


@dataclass(frozen=True, slots=True)
class Tool:
    """A worker and how to call it. `roles` are the names of its parameters by the role that they play, `spellings` the
    choices of its enum by what they stand for."""

    spec: WorkerSpec
    roles: Mapping[str, str]
    spellings: Mapping[str, str]


class ToolMaker:
    """Makes the tools of one pool on one world."""

    def __init__(self, table: WorldTable, random: Random, held_out_words: bool, names: NameMaker | None = None) -> None:
        self.table = table
        self.random = random
        self.words = load_words()
        self.names = names or NameMaker(random)
        self._held_out = held_out_words

    def copy(self) -> ToolMaker:
        """One that has given the same names."""
        return ToolMaker(self.table, self.random, self._held_out, self.names.copy())

    def make_tool(
        self,
        shape: Shape,
        description: str,
        parameters: Sequence[Parameter],
        texts: Mapping[str, str] | None = None,
        config: Mapping[str, JsonValue] | None = None,
        spellings: Mapping[str, str] | None = None,
        names: Sequence[str] = (),
    ) -> Tool:
        """A worker of the kind `world`. `spellings` are the enum's choices by what they stand for, `names` what it may
        be called where that does not follow from its shape."""
        masked = self.random.random() < MASKED_SHARE
        name = self.names.draw_name(
            [fill_text(pattern, texts or {}) for pattern in names or self.words.names[shape]], masked
        )
        roles = self.names.name_roles(parameters, texts or {}, masked and self.random.random() < 0.5)
        rules = {roles[item.role]: write_rule(item) for item in parameters}
        arguments = {"type": "object", "properties": rules, "required": list(rules), "additionalProperties": False}
        example = {roles[item.role]: item.example for item in parameters if item.example != ""}
        content = {
            **(config or {}), "domain": self.table.data.name, "seed": self.table.seed, "shape": shape, "roles": roles,
            "spellings": {text: what for what, text in (spellings or {}).items()},
            "arguments": arguments, "example": example,
        }  # fmt: skip
        spec = WorkerSpec(name=name, kind="world", description=description, config=content)
        return Tool(spec, roles, spellings or {})

    def make_tool_of_kind(self, kind: str, roles: Mapping[str, str]) -> Tool:
        """A worker of a kind that other pools have too."""
        name = self.names.draw_name(self.words.names[kind], masked=self.random.random() < MASKED_SHARE)
        spec = WorkerSpec(name=name, kind=kind, description=self.describe(kind, {}))
        return Tool(spec, roles, {})

    def make_agent(self) -> WorkerSpec:
        """A general language model, which no reference plan calls. It lives at no address."""
        texts = self.words.test_agents if self._held_out else self.words.agents
        name = self.names.draw_name(
            ("assistant", "chat", "agent", "writer"), masked=self.random.random() < MASKED_SHARE
        )
        config: dict[str, JsonValue] = {"base_url": "http://127.0.0.1:9/v1", "model": "none"}
        return WorkerSpec(name=name, kind="chat", description=self.random.choice(texts), config=config, retries=0)

    def describe(self, shape: str, texts: Mapping[str, str]) -> str:
        """A description of a tool of this shape, in words of the split."""
        texts_of_all = self.words.descriptions[shape]
        bank = list_held_out_texts(texts_of_all) if self._held_out else list_learnt_texts(texts_of_all)
        return capitalize(fill_text(self.random.choice(bank), texts))

    def draw_entity_texts(self, entity: EntityData) -> dict[str, str]:
        """The gaps of texts about an entity; {alias} is another word for it, {x} the name of an individual."""
        return {
            "entity": spell_out(entity.name), "plural": spell_out(entity.plural),
            "alias": self.random.choice((spell_out(entity.name), *entity.aliases)),
            "x": self.random.choice(self.table.names(entity.name)), "place": self.table.data.place,
        }  # fmt: skip

    def draw_name_parameter(self, entity: str) -> Parameter:
        """The parameter that takes the name of an individual."""
        example = self.random.choice(self.table.names(entity))
        return Parameter("name", f"the {spell_out(entity)}", example)
