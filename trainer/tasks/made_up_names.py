"""Names for workers and parameters that say nothing about them."""

from __future__ import annotations

from random import Random

_ONSETS = "b br c cl d dr f fl g gr h j k l m n p pl qu r s sk sp st t tr v w z".split()  # noqa: SIM905
_VOWELS = "a e i o u ai ea ia io oa ou".split()  # noqa: SIM905
_CODAS = ["", "", "", "l", "m", "n", "r", "s", "t", "x", "nd", "rk"]
_ADJECTIVES = "amber brisk calm dusty early faint grand hollow inner jolly keen lunar mild north".split()  # noqa: SIM905
_NOUNS = "anchor basin copper drawer ember ferry garden harbor island jacket kettle lantern meadow".split()  # noqa: SIM905


def make_up_name(random: Random, taken: set[str]) -> str:
    """A name for a worker or a parameter that says nothing about it, and is not in `taken`."""
    while True:
        style = random.random()
        if style < 0.6:
            name = "".join(_make_syllable(random) for _ in range(random.randint(2, 3)))
        elif style < 0.8:
            name = f"{random.choice(_ADJECTIVES)}_{random.choice(_NOUNS)}"
        else:
            name = f"{random.choice(_NOUNS)}_{random.choice('abcdefghkmnpqrstuvw')}{random.randint(1, 99)}"
        if name not in taken:
            return name


def _make_syllable(random: Random) -> str:
    return random.choice(_ONSETS) + random.choice(_VOWELS) + random.choice(_CODAS)
