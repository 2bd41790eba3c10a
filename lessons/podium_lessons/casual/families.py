"""The four families in casual words: their own tasks, answers and reference plans, put as a person would type them.

A query in these words cannot be recognised: it says the same in too many ways.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from random import Random
from typing import Any, Generic, TypeVar

from orchestrator.plan import Turn
from podium_lessons.casual.casual_data import (
    AtlasWords,
    ForgeLetters,
    ForgeSum,
    ForgeWords,
    ItineraryWords,
    LedgerWords,
)
from podium_lessons.casual.spell import spell_day, spell_moment, spell_number, spell_percent, spell_quarter
from podium_lessons.families.atlas import PLURALS, Atlas, AtlasQuery
from podium_lessons.families.forge import LETTERS, Forge, ForgeQuery
from podium_lessons.families.itinerary import SPANS, STOPS, Itinerary, ItineraryQuery
from podium_lessons.families.joined import Joined
from podium_lessons.families.ledger import Ledger, LedgerQuery
from podium_lessons.lesson_data import FamilyData, load_lesson_data
from podium_lessons.wordings import Wordings, expand_choices
from trainer.errors import UnknownTask
from trainer.tasks.sources.source import SuiteSource
from trainer.tasks.suite import P, Suite
from trainer.tasks.verifier import Verifier

SMALL_LETTERS_SHARE = 0.15
WHOLE_SHARE = 0.35  # of atlas queries: those that name the figure by a verb or an adjective
LETTERED_SHARE = 0.35  # of forge queries: those that name their parts by letters first
SOURCE = "casual"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CasualQuery(Generic[P]):
    """What a query asks for, and the query."""

    parameters: P
    text: str


class CasualSuite(Suite[CasualQuery[P]], Generic[P]):
    """A family whose queries are put in casual words."""

    def __init__(self, family: Suite[P]) -> None:
        self.family = family
        self.name = f"casual_{family.name}"
        self.description = f"{family.description} In the words of a person."
        self.workers = family.workers
        self.levels = family.levels

    @abstractmethod
    def put(self, parameters: P, split: str, random: Random) -> str:
        """The query in casual words of this split."""

    def draw(self, level: int, split: str, random: Random) -> CasualQuery[P]:
        parameters = self.family.draw(level, split, random)
        return CasualQuery(parameters, self.put(parameters, split, random))

    def write(self, parameters: CasualQuery[P]) -> str:
        return parameters.text

    def read(self, query: str) -> CasualQuery[P] | None:  # noqa: ARG002
        return None

    def level_of(self, parameters: CasualQuery[P]) -> int:
        return self.family.level_of(parameters.parameters)

    def uses_new_words(self, parameters: CasualQuery[P]) -> bool:  # noqa: ARG002
        return False

    def solve(self, parameters: CasualQuery[P]) -> tuple[Verifier, Turn] | None:
        return self.family.solve(parameters.parameters)


class CasualLedger(CasualSuite[LedgerQuery]):
    @cached_property
    def words(self) -> LedgerWords:
        return load_lesson_data(self.name, LedgerWords)

    @cached_property
    def texts(self) -> Mapping[tuple[int, str], Wordings[str]]:
        return _group_texts(self.words)

    def put(self, parameters: LedgerQuery, split: str, random: Random) -> str:
        p = parameters
        gaps: dict[str, object] = {
            "company": p.companies[0],
            "other": p.companies[-1],
            "region": p.region,
            "regional": f"{p.region}ern",
            "quarter": spell_quarter(p.q, p.year, self.words.quarters, random),
        }
        if p.level == 1:
            gaps["percent"] = spell_percent(p.percent, random)
        else:
            nation = self.words.nations[p.desk]
            gaps["currency"] = random.choice((p.currency, *self.words.currencies[p.currency]))
            gaps["nation"], gaps["national"] = random.choice(nation.nations), random.choice(nation.adjectives)
        return _shrink_letters(_pick(self.texts[p.level, ""], split, random).format(**gaps), random)


class CasualAtlas(CasualSuite[AtlasQuery]):
    @cached_property
    def words(self) -> AtlasWords:
        return load_lesson_data(self.name, AtlasWords)

    @cached_property
    def texts(self) -> Mapping[tuple[int, str], Wordings[str]]:
        return _group_texts(self.words)

    @cached_property
    def wholes(self) -> Mapping[tuple[str, int], Wordings[str]]:
        return {
            (label, level): Wordings(map(expand_choices, texts))
            for label, levels in self.words.wholes.items()
            for level, texts in levels.items()
        }

    def put(self, parameters: AtlasQuery, split: str, random: Random) -> str:
        p = parameters
        texts = self.wholes.get((p.figure, p.level)) if random.random() < WHOLE_SHARE else None
        unit = PLURALS.get(p.unit, "")
        query = _pick(texts or self.texts[p.level, ""], split, random).format(
            country=p.places[0],
            other=p.places[-1],
            figure=random.choice(self.words.figures[p.figure]),
            unit=random.choice(self.words.units[unit]) if unit else "",
        )
        return _shrink_letters(query, random)


class CasualForge(CasualSuite[ForgeQuery]):
    @cached_property
    def words(self) -> ForgeWords:
        return load_lesson_data(self.name, ForgeWords)

    @cached_property
    def sum_wordings(self) -> Wordings[ForgeSum]:
        return Wordings([sum_words] for sum_words in self.words.queries)

    @cached_property
    def letter_wordings(self) -> Wordings[ForgeLetters]:
        return Wordings([letter_words] for letter_words in self.words.lettered)

    def put(self, parameters: ForgeQuery, split: str, random: Random) -> str:
        parts = [
            random.choice(self.words.parts[kind]).format(**dict(zip("abc", numbers, strict=False)))
            for kind, numbers in parameters.parts
        ]
        write = self._write_lettered if random.random() < LETTERED_SHARE else self._write_sum
        return _shrink_letters(write(parameters, parts, split, random), random)

    def _write_sum(self, p: ForgeQuery, parts: list[str], split: str, random: Random) -> str:
        words = _pick(self.sum_wordings, split, random)
        term = random.choice(self.words.terms)
        terms = [
            term.format(weight=weight, word=spell_number(weight), part=part)
            for weight, part in zip(p.weights, parts, strict=True)
        ]
        return words.whole.format(terms=words.between.join(terms), modulus=p.modulus)

    def _write_lettered(self, p: ForgeQuery, parts: list[str], split: str, random: Random) -> str:
        words = _pick(self.letter_wordings, split, random)
        marked = [words.mark.format(letter=letter) + part for letter, part in zip(LETTERS, parts, strict=False)]
        weights = [f"{weight}{letter}" for weight, letter in zip(p.weights, LETTERS, strict=False)]
        plus = random.choice((" + ", "+"))
        return words.whole.format(parts=words.between.join(marked), sum=plus.join(weights), modulus=p.modulus)


class CasualItinerary(CasualSuite[ItineraryQuery]):
    @cached_property
    def words(self) -> ItineraryWords:
        return load_lesson_data(self.name, ItineraryWords)

    @cached_property
    def texts(self) -> Mapping[tuple[int, str], Wordings[str]]:
        return _group_texts(self.words)

    def put(self, parameters: ItineraryQuery, split: str, random: Random) -> str:
        p = parameters
        gaps: dict[str, object] = dict(zip(STOPS, p.stops, strict=False)) | dict(zip(SPANS, p.spans, strict=False))
        for name, start in zip(("start", "later"), p.starts, strict=False):
            gaps[name], gaps[f"{name}_date"], gaps[f"{name}_time"] = spell_moment(start, random)
        if p.until:
            gaps["until"] = spell_day(date.fromisoformat(p.until), random)
        if p.level == 1:
            nation = self.words.nations[p.country]
            gaps["nation"], gaps["national"] = random.choice(nation.nations), random.choice(nation.adjectives)
        return _pick(self.texts[p.level, p.asks], split, random).format(**gaps)  # codes of airports keep their letters


CASUAL_SUITES: tuple[CasualSuite[Any], ...] = (
    CasualLedger(Ledger()),
    CasualAtlas(Atlas()),
    CasualForge(Forge()),
    CasualItinerary(Itinerary()),
)


def open_casual(argument: str = "") -> SuiteSource:
    """All four families or those named, and two of their queries in one as the fourth level. Raises UnknownTask."""
    there = {suite.family.name: suite for suite in CASUAL_SUITES}
    names = [name.strip() for name in argument.split(",") if name.strip()] or list(there)
    for name in names:
        if name not in there:
            raise UnknownTask(f"{SOURCE} has no family {name!r}; use some of: {', '.join(there)}")
    return SuiteSource(f"{SOURCE}:{argument}" if argument else SOURCE, [Joined(there[name]) for name in names])


def _group_texts(words: FamilyData) -> dict[tuple[int, str], Wordings[str]]:
    return {(query.level, query.asks): Wordings(map(expand_choices, query.texts)) for query in words.queries}


def _pick(wordings: Wordings[T], split: str, random: Random) -> T:
    return wordings[wordings.draw(split, random)]


def _shrink_letters(query: str, random: Random) -> str:
    return query.lower() if random.random() < SMALL_LETTERS_SHARE else query
