"""Rules that calculate: a difference, a sum, an average, a ratio, a percentage, or a figure with a given number."""

from __future__ import annotations

from collections.abc import Callable

from podium_lessons.worlds.rules.answer import Answer
from podium_lessons.worlds.rules.calculate import calculate, read_figure, write_sum
from podium_lessons.worlds.rules.draw_terms import draw_alike, split_steps, split_steps_anyhow
from podium_lessons.worlds.terms import TermMaker

ROUND_NUMBERS = (5, 10, 15, 20, 25, 40, 50, 75, 100, 120, 150, 200, 250)


def ask_difference(maker: TermMaker, steps: int) -> Answer | None:
    """The larger of two figures less the smaller one."""
    terms = draw_alike(maker, split_steps(maker.random, steps - 1, 2))
    if terms is None:
        return None
    high, low = sorted(terms, key=read_figure, reverse=True)
    return calculate(maker, [high, low], "{0} - {1}", read_figure(high) - read_figure(low), "subtract")


def ask_sum(maker: TermMaker, steps: int) -> Answer | None:
    """The sum of two to four figures."""
    terms = draw_alike(maker, split_steps_anyhow(maker.random, steps - 1))
    if terms is None:
        return None
    return calculate(
        maker, terms, write_sum(len(terms)), sum(map(read_figure, terms)), "add" if len(terms) == 2 else ""
    )


def ask_average(maker: TermMaker, steps: int) -> Answer | None:
    """The average of two to four figures."""
    terms = draw_alike(maker, split_steps_anyhow(maker.random, steps - 1))
    if terms is None:
        return None
    mean = sum(map(read_figure, terms)) / len(terms)
    return calculate(maker, terms, f"({write_sum(len(terms))}) / {len(terms)}", mean)


def ask_ratio(maker: TermMaker, steps: int) -> Answer | None:
    """One figure divided by another."""
    terms = draw_alike(maker, split_steps(maker.random, steps - 1, 2))
    if terms is None or not read_figure(terms[1]):
        return None
    return calculate(maker, terms, "{0} / {1}", read_figure(terms[0]) / read_figure(terms[1]), "divide")


def ask_scale(maker: TermMaker, steps: int) -> Answer | None:
    """A percentage of a figure."""
    term = maker.draw("number", steps - 1)
    if term is None:
        return None
    percent = maker.random.choice((5, 8, 10, 12, 15, 20, 25, 30, 40, 60, 75, 80, 90))
    result = calculate(maker, [term], f"{{0}} * {percent} / 100", read_figure(term) * percent / 100)
    return Answer({**result.texts, "percent": str(percent)}, result.emit, result.verifier)


def ask_plus(maker: TermMaker, steps: int) -> Answer | None:
    """A figure and a number that the query names."""
    return _ask_with_number(maker, steps, "{0} + %s", lambda figure, number: figure + number, "add")


def ask_times(maker: TermMaker, steps: int) -> Answer | None:
    """A figure as often as the query says."""
    return _ask_with_number(maker, steps, "{0} * %s", lambda figure, number: figure * number, "multiply")


def _ask_with_number(
    maker: TermMaker, steps: int, formula: str, work: Callable[[float, int], float], operation: str
) -> Answer | None:
    term = maker.draw("number", steps - 1)
    if term is None:
        return None
    number = maker.random.randint(2, 12) if operation == "multiply" else maker.random.choice(ROUND_NUMBERS)
    result = calculate(maker, [term], formula % number, work(read_figure(term), number), operation, str(number))
    return Answer({**result.texts, "n": f"{number}", "unit": term.unit}, result.emit, result.verifier)
