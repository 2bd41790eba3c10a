"""How the queries of a family may be put, and which split uses which words.

Every level has several texts; a text may hold choices, "[What is|Give] the sum", each of which makes a wording of its
own. The last text is held out: it occurs in the test split only. That split draws from the last three texts, so that
two thirds of its tasks ask for unknown things in known words and one third in unknown words too. Training and
validation draw from all texts but the last, from each as often as from another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, product
from random import Random
from typing import Generic, TypeVar

from trainer.tasks.task import normalize_query

_GAP = re.compile(r"\{(\w+)\}")
TESTED = 3  # texts that the test split draws from, the held-out one among them

K = TypeVar("K")
T = TypeVar("T")


class Wordings(Generic[T]):
    """Wordings, numbered through, from groups of those that one text makes."""

    def __init__(self, groups: Iterable[Sequence[T]]) -> None:
        groups = list(groups)
        self._all: list[T] = [wording for group in groups for wording in group]
        ends = list(accumulate(map(len, groups)))
        self._spans = [(end - len(group), end) for group, end in zip(groups, ends, strict=True)]

    def __getitem__(self, number: int) -> T:
        return self._all[number]

    def __iter__(self) -> Iterator[T]:
        return iter(self._all)

    def draw(self, split: str, random: Random) -> int:
        """The number of a wording that this split uses."""
        spans = self._spans[-TESTED:] if split == "test" else self._spans[:-1]
        first, end = spans[random.randrange(len(spans))]
        return first if end == first + 1 else random.randrange(first, end)  # one draw less: test tasks stay the same

    def is_held_out(self, number: int) -> bool:
        """Whether no training draws this one."""
        return number >= self._spans[-1][0]


class Template:
    """A query with named gaps, `"Company {company} gives back ..."`, that can be filled and recognised.

    `gaps` gives the pattern of each gap; white space, case and a missing full stop do not matter when
    recognising, so that a person may edit a query and still be understood.
    """

    def __init__(self, text: str, gaps: Mapping[str, str]) -> None:
        self.text, self._gaps = text, gaps
        self._start = text.partition("{")[0].casefold()

    @staticmethod
    def gaps_in(text: str) -> set[str]:
        """The names of a text's gaps."""
        return set(_GAP.findall(text))

    def fill(self, **values: object) -> str:
        return self.text.format(**values)

    def match(self, query: str) -> dict[str, str] | None:
        """The gaps' contents when `query` is this template filled in, else None."""
        query = normalize_query(query)
        if not query.casefold().startswith(self._start):
            return None  # most are told apart by this, and their patterns never made
        match = self._pattern.fullmatch(query)
        return match.groupdict() if match else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # ASCII: without it "ſ" matches "s" when case does not matter, and nobody expects that in a gap
        return re.compile(_make_pattern(self.text, self._gaps), re.IGNORECASE | re.ASCII)


def make_templates(texts: Iterable[str], gaps: Mapping[str, str]) -> Wordings[Template]:
    """The wordings of texts whose gaps hold `gaps`."""
    return Wordings([Template(wording, gaps) for wording in expand_choices(text)] for text in texts)


def match_templates(kinds: Mapping[K, Wordings[Template]], query: str) -> tuple[K, int, dict[str, str]] | None:
    """Find the kind of a query, the number of its wording, and what its gaps hold; None for another query."""
    for kind, wordings in kinds.items():
        for number, template in enumerate(wordings):
            gaps = template.match(query)
            if gaps is not None:
                return kind, number, gaps
    return None


def expand_choices(text: str) -> list[str]:
    """A text with every choice made: "[a|b] c" gives "a c" and "b c"."""
    pieces = re.split(r"\[([^\]]*)\]", text)
    choices = [piece.split("|") if index % 2 else [piece] for index, piece in enumerate(pieces)]
    return ["".join(chosen) for chosen in product(*choices)]


def _make_pattern(text: str, gaps: Mapping[str, str]) -> str:
    pieces = _GAP.split(text.rstrip(".?"))
    return "".join(
        f"(?P<{piece}>{gaps[piece]})" if index % 2 else re.escape(piece) for index, piece in enumerate(pieces)
    )
