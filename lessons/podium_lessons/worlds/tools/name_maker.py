"""The names of a pool's workers and of their parameters: words that say what they are, or masks that say nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from podium_lessons.worlds.spelling import fill_text, to_name
from podium_lessons.worlds.tools.parameters import Parameter
from podium_lessons.worlds.word_banks import load_words

_PAIRS = frozenset({"start", "end", "name_a", "value_a", "name_b", "value_b", "left", "right"})


class NameMaker:
    """Draws names, no two of workers alike."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._words = load_words()
        self._names: set[str] = set()

    def copy(self) -> NameMaker:
        """One that has drawn the same names."""
        other = NameMaker(self._random)
        other._names = set(self._names)
        return other

    def take_name(self, name: str) -> bool:
        """Keep a name for a worker; False where another one has it."""
        is_free = name not in self._names
        self._names.add(name)
        return is_free

    def draw_name(self, natural: Sequence[str], masked: bool) -> str:
        """A name that no other worker of the pool has."""
        while True:
            name = self._mask_name() if masked else to_name(self._random.choice(natural))
            if self.take_name(name):
                return name
            masked = masked or self._random.random() < 0.5

    def name_roles(self, parameters: Sequence[Parameter], texts: Mapping[str, str], masked: bool) -> dict[str, str]:
        """A name for every parameter: what it is, or a masked one."""
        style = self._random.choice(("numbered", "letters", "words"))
        taken: set[str] = set()
        place = self._random.randrange(6)
        roles = {}
        for number, item in enumerate(parameters):
            bank = item.names or self._words.parameters[item.role]
            # pairs such as start and end take the same place of their banks
            pair = item.role in _PAIRS
            name = to_name(fill_text(bank[place % len(bank)] if pair else self._random.choice(bank), texts))
            if masked:
                name = self._mask_parameter(style, number)
            while name in taken:
                name = f"{name}_{len(taken) + 1}"
            taken.add(name)
            roles[item.role] = name
        return roles

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

    def _mask_parameter(self, style: str, number: int) -> str:
        if style == "numbered":
            return f"arg_{number + 1}"
        return "pqrstuvw"[number] if style == "letters" else self._make_up_word()

    def _make_up_word(self) -> str:
        return "".join(self._random.choices(self._words.syllables, k=self._random.choice((2, 2, 3))))
