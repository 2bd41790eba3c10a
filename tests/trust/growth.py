"""How the time of some work grows with the length of what it is handed, from an eighth of its limit to the limit."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from contextlib import suppress

MOST_EXPONENT = 1.2  # of the length: 1 is linear, 2 is quadratic
UNSURE_S = 0.02  # what a long input adds less than this to holds nobody up, and is too short to be fitted
TRIES = 4  # the shortest time of them counts: a busy machine only adds
HALVINGS = (3, 2, 1, 0)  # of the limit
SHORT = 64  # a part of the limit, whose time is what the work takes anyway
# What a text is made of, over and over: words, and what makes patterns look at a character again and again.
SHAPES = {
    "sentences": "How much do 3 kilos of salmon cost? ",
    "words": "abc ",
    "one word": "a",
    "capitals": "A",
    "humps": "Ab",
    "names": "Old Chimney ",
    "half names": "Aa-",
    "apostrophes": "a' ",
    "quotes": "'",
    "escapes": '\\"',
    "hyphens": "a-",
    "dots": "a.",
    "figures": "1,",
    "thousands": "123,",
    "dates": "2025-",
    "joints": "a and ",
    "articles": "the a ",
    "brackets": "(",
    "references": "$1 ",
    "comments": "/* ",
    "spaces": " ",
    "blank lines": "\n",
    "lines": "a\n",
}


def write_text(shape: str, chars: int, opening: str = "") -> str:
    """A text of one of the SHAPES. It ends with a character that is in none of them."""
    return f"{opening}{SHAPES[shape] * (chars // len(SHAPES[shape]) + 1)}"[: chars - 1] + "§"


def fit_exponent(time_work: Callable[[int], float], limit: int) -> float:
    """The power of its length by which the time of some work grows; 0 where it is too short for anybody to notice.

    `time_work` returns the seconds of a length. Where they seem to grow too fast, they are taken again.
    """
    usual = time_work(limit // SHORT)
    if time_work(limit) - usual < UNSURE_S:
        return 0.0
    lengths = [limit >> halvings for halvings in HALVINGS]
    seconds = [math.inf] * len(lengths)
    exponent = math.inf
    for _ in range(TRIES):
        gc.collect()
        seconds = [min(least, time_work(length)) for least, length in zip(seconds, lengths, strict=True)]
        exponent = fit_slope([math.log(length) for length in lengths], [math.log(max(s, 1e-6)) for s in seconds])
        if exponent <= MOST_EXPONENT:
            break
    return exponent


def fit_slope(places: list[float], values: list[float]) -> float:
    """The slope of the line of least squares."""
    place, value = sum(places) / len(places), sum(values) / len(values)
    across = sum((x - place) * (y - value) for x, y in zip(places, values, strict=True))
    return across / sum((x - place) ** 2 for x in places)


def take_thread_time(work: Callable[[], object]) -> float:
    """The CPU seconds of this thread. That something is refused is an end like any other."""
    return _take_time(work, time.thread_time)


def take_process_time(work: Callable[[], object]) -> float:
    """The CPU seconds of this process, for work that is done in several threads."""
    return _take_time(work, time.process_time)


def _take_time(work: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    with suppress(Exception):
        work()
    return clock() - start
