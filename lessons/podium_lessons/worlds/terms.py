"""Terms: what a query speaks of, with its words, its value from the table and the steps that find it.

"the harvest of T-12" is a term, and so is "the keeper of the row of T-12" or "the number of trees of row 3". A rule of
the grammar (rules/) makes a query out of one or several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from orchestrator.plan import Step
from orchestrator.quotes import references
from podium_lessons.worlds.spelling import fill_text, spell_out
from podium_lessons.worlds.tables import Value, WorldTable
from podium_lessons.worlds.tools.tool_maker import Tool
from podium_lessons.worlds.tools.toolkit import Toolkit
from podium_lessons.worlds.word_banks import WorldWords, load_words
from podium_lessons.worlds.worker import Shape
from podium_lessons.worlds.world_data import FieldData
from pool_registry.actions import JsonValue

TOP_SHARE = 0.25  # of chains: they start from the largest of a group
SAME_PHRASE = 0.85
PRONOUNS = frozenset(
    ("it", "its", "they", "them", "their", "he", "she", "his", "her", "this", "where", "which", "who", "what", "when")
)


@dataclass(slots=True)
class PlanDraft:
    """The steps of a plan as they are added. Access lists hold what the arguments quote, and nothing else."""

    steps: list[Step] = field(default_factory=list)

    def call(self, tool: Tool, need: str, by_role: Mapping[str, JsonValue], sees: tuple[int, ...] = ()) -> str:
        """Add a call and return the text that quotes its result."""
        arguments = {tool.roles[role]: value for role, value in by_role.items()}
        access = tuple(sorted({*references(arguments), *sees}))
        self.steps.append(Step(len(self.steps) + 1, tool.spec.name, arguments, access, need=need))
        return f"${len(self.steps)}"


@dataclass(frozen=True, slots=True)
class Term:
    """A value that a query speaks of. `text` is its noun phrase, `terse` a shorter one and `questions` whole questions
    for it alone; `emit` adds the steps that find it, `cost` of them, and returns what quotes the last one. `kind` is
    number, date or text. `name` says whom it is about, as the query writes it, and `phrase` what of it."""

    text: str
    terse: str
    value: JsonValue
    emit: Callable[[PlanDraft], str]
    cost: int
    kind: str
    questions: tuple[str, ...] = ()
    unit: str = ""
    name: str = ""
    phrase: str = ""


class TermMaker:
    """Draws terms on one world; the tools that they need are made on the way."""

    def __init__(self, toolkit: Toolkit, random: Random, lower: bool = False) -> None:
        self.toolkit = toolkit
        self.lower = lower  # the query is written in small letters throughout
        self.table: WorldTable = toolkit.table
        self.random = random
        self.words: WorldWords = load_words()
        self._phrases: dict[tuple[str, ...], str] = {}

    def draw(self, kind: str, cost: int, unit: str | None = None) -> Term | None:
        """A term of this kind that takes `cost` steps; None where the world has none. `kind` "" is any kind."""
        makers: list[Callable[[str, int, str | None], Term | None]] = [self._draw_chain, self._draw_chain]
        if cost == 1 and kind in ("number", ""):
            makers.append(self._draw_group)
        if cost == 1 and not kind:
            makers.append(lambda *_: self._draw_one_of_group())
        if cost == 2 and kind in ("number", ""):
            makers += [self._draw_note, self._draw_group]
        self.random.shuffle(makers)
        return next((term for make in makers if (term := make(kind, cost, unit)) is not None), None)

    def look_up(self, entity: str, name: str, data: FieldData) -> Term:
        """The value of a field of an individual that the query names."""
        return self.extend(self.name_term(name), entity, name, data)

    def refer(self, entity: str) -> tuple[str, FieldData] | None:
        """An entity and its field that refers to `entity`; None where nothing does."""
        back = [
            (source.name, data)
            for source in self.table.data.entities
            for data in source.fields
            if data.target == entity
        ]
        return self.random.choice(back) if back else None

    def draw_field(
        self, kind: str, uses: Callable[[str, FieldData], bool] | None = None
    ) -> tuple[str, FieldData] | None:
        """An entity and a field of it; fields that a tool of the pool knows already are drawn more often."""
        fields = [
            (entity.name, data)
            for entity in self.table.data.entities
            for data in entity.fields
            if _fits(data, kind) and (uses is None or uses(entity.name, data))
        ]
        covered = [item for item in fields if self.toolkit.covers("get", item[0], item[1].name)]
        bank = covered if covered and self.random.random() < 0.5 else fields
        return self.random.choice(bank) if bank else None

    def draw_phrase(self, phrases: tuple[str, ...]) -> str:
        """A phrase that can stand before "of". A query mostly calls one thing by one phrase."""
        fit = [phrase for phrase in phrases if not PRONOUNS & set(phrase.split())]
        phrase = self.random.choice(fit or phrases[:1])
        return self._phrases.setdefault(phrases, phrase) if self.random.random() < SAME_PHRASE else phrase

    def need(self, name: str, **texts: str) -> str:
        """The need of a step, from the bank."""
        return fill_text(self.words.needs[name], texts)

    def _draw_chain(self, kind: str, cost: int, unit: str | None) -> Term | None:
        """A field of an individual, or of whom its references lead to: one more step for each."""
        drawn = self.draw_field(kind, lambda _, data: unit is None or data.unit == unit)
        if drawn is None:
            return None
        entity, last = drawn
        path: list[tuple[str, FieldData]] = [(entity, last)]
        ranked = cost > 1 and self.random.random() < TOP_SHARE
        for _ in range(cost - 1 - ranked):
            back = self.refer(path[0][0])
            if back is None:
                return None
            path.insert(0, back)
        start = path[0][0]
        term = self._draw_top(start) if ranked else self.name_term(self.random.choice(self.table.names(start)))
        if term is None:
            return None
        for entity, data in path:
            term = self.extend(term, entity, str(term.value), data)
        return term

    def name_term(self, name: str) -> Term:
        """An individual, or a value, that the query names: no step is needed."""
        written = self.spell(name)
        return Term(written, written, name, lambda _: written.replace("$", "$$"), 0, "text", name=written)

    def spell(self, name: str) -> str:
        """A name as this query writes it."""
        return name.lower() if self.lower else name

    def extend(self, subject: Term, entity: str, name: str, data: FieldData, phrase: str = "") -> Term:
        """The value of a field of whom another term names."""
        phrase = phrase or self.draw_phrase(data.phrases)
        tool = self.toolkit.getter(entity, data.name)
        need = self.need("get", phrase=phrase, entity=spell_out(entity))

        def emit(draft: PlanDraft) -> str:
            by_role: dict[str, JsonValue] = {"name": subject.emit(draft)}
            if "field" in tool.roles:
                by_role["field"] = tool.spellings[data.name]
            if "to" in tool.roles:
                by_role["to"] = tool.spellings["own"]
            return draft.call(tool, need, by_role)

        texts = {"phrase": phrase, "x": subject.text}
        asks = tuple(text.replace("{x}", subject.text) for text in data.asks) if subject.cost <= 1 else ()
        return Term(
            fill_text(self._noun_phrase(subject), texts),
            fill_text(self._terse_phrase(subject), {"phrase": phrase, "x": subject.terse}),
            self.table.value(entity, name, data.name),
            emit,
            subject.cost + 1,
            _kind_of(data),
            asks,
            data.unit,
            subject.name,
            phrase,
        )

    def _noun_phrase(self, subject: Term) -> str:
        bank = self.words.noun_phrases
        return self.random.choice(bank[:3] if subject.cost else bank)

    def _terse_phrase(self, subject: Term) -> str:
        return self.words.terse_phrases[0] if subject.cost else self.random.choice(self.words.terse_phrases)

    def _draw_group(self, kind: str, cost: int, unit: str | None) -> Term | None:
        """The number of individuals with a value, or what they have in total or on average."""
        del kind
        drawn = self.draw_field("group", None)
        if drawn is None:
            return None
        entity, data = drawn
        numbers = [item for item in self._entity_numbers(entity) if unit is None or item.unit == unit]
        shape: Shape = "count" if unit is None else "total"
        if unit is None and numbers:
            shape = self.random.choice(("count", "total", "average"))
        if shape != "count" and not numbers:
            return None
        subject = self._group_subject(data, entity, cost)
        if subject is None:
            return None
        return self._group(shape, entity, data, subject, self.random.choice(numbers) if shape != "count" else None)

    def _draw_one_of_group(self) -> Term | None:
        return self._draw_top(self.random.choice(self.table.data.entities).name)

    def _draw_top(self, entity: str) -> Term | None:
        """The individual with the largest number of a group."""
        groups = [data for data in self.toolkit.entity(entity).fields if data.kind in ("reference", "choice")]
        numbers = self._entity_numbers(entity)
        if not groups or not numbers:
            return None
        data, over = self.random.choice(groups), self.random.choice(numbers)
        subject = self._group_subject(data, entity, 1)
        assert subject is not None, "a group of its own name needs no reference"
        members = self.table.members(entity, data.name, _as_value(subject.value))
        figures = sorted((float(self.table.value(entity, name, over.name)) for name in members), reverse=True)
        if len(figures) < 2 or figures[0] == figures[1]:
            return None
        texts = self.group_texts(entity, data, subject, over)
        tool = self.toolkit.grouping("top", entity, data.name, over.name)
        need = self.need("top", **texts)

        def emit(draft: PlanDraft) -> str:
            return draft.call(tool, need, {"target": subject.emit(draft)})

        winner = max(members, key=lambda name: float(self.table.value(entity, name, over.name)))
        text = fill_text(self.random.choice(self.words.tops), texts)
        asks = tuple(fill_text(ask, texts) for ask in self.words.top_asks)
        return Term(text, text.removeprefix("the "), winner, emit, 1, "text", asks)

    def group_texts(self, entity: str, data: FieldData, subject: Term, over: FieldData | None = None) -> dict[str, str]:
        """The gaps of texts about a group: {group} is "of row 3", or "whose variety is Cox"."""
        words = self.toolkit.entity(entity)
        target = spell_out(data.target) if data.target else self.draw_phrase(data.phrases)
        whose = (f"whose {target} is {subject.text}", f"with {subject.text} as {target}")
        return {
            "phrase": self.draw_phrase(over.phrases) if over else "",
            "entity": spell_out(entity),
            "plural": spell_out(words.plural),
            "x": subject.text,
            "target": target,
            "group": f"of {subject.text}" if data.target else self.random.choice(whose),
        }

    def _group_subject(self, data: FieldData, entity: str, cost: int) -> Term | None:
        """Name the owner of a group: an individual by its name, or by another one that refers to it."""
        if cost == 1:
            values = sorted({str(record[data.name]) for record in self.table.records[entity].values()})
            return self.name_term(self.random.choice(values))
        if not data.target:
            return None
        back = self.refer(data.target)
        assert back is not None, "the group's own field refers to it"
        source, item = back
        for _ in range(8):
            name = self.random.choice(self.table.names(source))
            if self.table.members(entity, data.name, self.table.value(source, name, item.name)):
                return self.extend(self.name_term(name), source, name, item)
        return None

    def _group(self, shape: Shape, entity: str, data: FieldData, subject: Term, over: FieldData | None) -> Term:
        members = self.table.members(entity, data.name, _as_value(subject.value))
        figures = [float(self.table.value(entity, name, over.name)) for name in members] if over else []
        value: JsonValue = len(members)
        if shape == "total":
            value = sum(figures)
        elif shape == "average":
            value = sum(figures) / len(figures)
        texts = self.group_texts(entity, data, subject, over)
        bank = {"count": self.words.counts, "total": self.words.totals, "average": self.words.averages}[shape]
        text = fill_text(self.random.choice(bank), texts)
        tool = self.toolkit.grouping(shape, entity, data.name, over.name if over else "")
        need = self.need(shape, **texts)

        def emit(draft: PlanDraft) -> str:
            return draft.call(tool, need, {"target": subject.emit(draft)})

        asks = tuple(fill_text(ask, texts) for ask in self.words.count_asks) if shape == "count" else ()
        return Term(text, text.removeprefix("the "), value, emit, subject.cost + 1, "number", asks,
                    over.unit if over else "", subject.name, texts["phrase"])  # fmt: skip

    def _draw_note(self, kind: str, cost: int, unit: str | None) -> Term | None:
        """The figure in a passage of the notes: find the passage, read the number."""
        del kind, cost
        topics = [place for place, note in enumerate(self.table.data.notes) if unit is None or note.unit == unit]
        if not topics:
            return None
        topic = self.random.choice(topics)
        data = self.table.data.notes[topic]
        name = self.random.choice(self.table.names(data.entity))
        phrase = self.draw_phrase(data.phrases)
        finder, reader = self.toolkit.note_finder(topic), self.toolkit.reader()
        written = self.spell(name)
        texts = {"phrase": phrase, "x": written, "entity": spell_out(data.entity)}

        def emit(draft: PlanDraft) -> str:
            by_role = {"name": written} if "name" in finder.roles else {"request": f"{phrase} {written}"}
            passage = draft.call(finder, self.need("note", **texts), by_role)
            if "instruction" not in reader.roles:
                return draft.call(reader, self.need("read"), {"text": passage})
            sees = (int(passage[1:]),)
            return draft.call(reader, self.need("read"), {"instruction": "the number in the passage"}, sees)

        asks = tuple(text.replace("{x}", written) for text in data.asks)
        return Term(
            fill_text(self.random.choice(self.words.noun_phrases), texts),
            fill_text(self.random.choice(self.words.terse_phrases), texts),
            self.table.notes[topic, name].figure, emit, 2, "number", asks, data.unit, written, phrase,
        )  # fmt: skip

    def _entity_numbers(self, entity: str) -> list[FieldData]:
        return [data for data in self.toolkit.entity(entity).fields if data.kind == "number"]


def _fits(data: FieldData, kind: str) -> bool:
    if kind == "group":
        return data.kind in ("reference", "choice")
    return not kind or _kind_of(data) == kind


def _kind_of(data: FieldData) -> str:
    return data.kind if data.kind in ("number", "date") else "text"


def _as_value(value: JsonValue) -> Value:
    assert isinstance(value, str | int | float), "terms about groups start from a name"
    return value
