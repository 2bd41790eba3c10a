"""The words of casual queries: podium_lessons/data/tasks/casual_FAMILY.yaml, one file for each family.

podium_lessons/wordings.py explains [a|b], {gap} and the last text of each list. Spellings stand in the place of a gap.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from podium_lessons.lesson_data import MIN_TEXTS, FamilyData
from trainer.tasks.task_data import TaskData

Spellings = tuple[str, ...]


class NationWords(TaskData):
    """A country's names and its adjectives: Britain, the UK; British."""

    nations: Spellings = Field(min_length=1)
    adjectives: Spellings = Field(min_length=1)


class LedgerWords(FamilyData):
    """`currencies` spell one besides its code. `quarters` spell a quarter with {q}, {ordinal}, {year}, and with its
    first and last month: {first}, {last}, and in three letters {from}, {to}."""

    currencies: Mapping[str, Spellings]
    nations: Mapping[str, NationWords]
    quarters: Spellings = Field(min_length=2)


class AtlasWords(FamilyData):
    """`figures` spell what is asked for; `wholes` are texts that name it by a verb or an adjective, by label and
    level."""

    figures: Mapping[str, Spellings]
    units: Mapping[str, Spellings]
    wholes: Mapping[str, Mapping[int, Spellings]]


class ForgeSum(TaskData):
    """A query with {terms} and {modulus}; `between` stands between two terms."""

    whole: str
    between: str


class ForgeLetters(TaskData):
    """A query with {parts}, {sum} and {modulus}; `mark` names each part by its {letter}."""

    whole: str
    mark: str
    between: str


class ForgeWords(TaskData):
    """`parts` spell each computation with its numbers {a}, {b}, {c}; `terms` a part with its {weight}, which is {word}
    in letters."""

    parts: Mapping[str, Spellings]
    terms: Spellings = Field(min_length=MIN_TEXTS)
    queries: tuple[ForgeSum, ...] = Field(min_length=MIN_TEXTS)
    lettered: tuple[ForgeLetters, ...] = Field(min_length=MIN_TEXTS)


class ItineraryWords(FamilyData):
    """`nations` by the code of their country."""

    nations: Mapping[str, NationWords]
