"""Questions that need figures alone: sums, lists of numbers, units, temperatures and molar masses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random

from podium_lessons.everyday.asks import Ask, convert_units, evaluate
from podium_lessons.everyday.everyday_data import load_money, load_sums, load_units
from podium_lessons.everyday.questions.question import EverydayQuestion, choose_bank, choose_text
from podium_lessons.everyday.solve_asks import run_work
from pool_registry.actions import JsonValue

_OPERATIONS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
_TWO_FIGURES = re.compile(r"\{(\w)\} ([-+*/]) \{(\w)\}")
_PERCENT_OF = re.compile(r"\{(\w)\} / 100 \* \{(\w)\}")
_SHARE = re.compile(r"\{(\w)\} / \{(\w)\} \* 100")
_MEAN = re.compile(r"\(\{\w\}(?: \+ \{\w\})+\) / (\d)")
_TOTAL = re.compile(r"\{\w\}(?: \+ \{\w\}){2,}")
_GAP = re.compile(r"\{(\w)\}")
IN_WORDS_SHARE = 0.15  # of measures: "two and a half km", and of those that have a name in the singular "half a mile"


def draw_sum(split: str, random: Random) -> EverydayQuestion:
    """A sum of one or several steps, in words or as a formula."""
    bank = choose_bank((*load_sums().sums, *load_money().sums), random)
    gaps = {gap: _draw_figure(span, random) for gap, span in bank.gaps.items()}
    ask = ask_for_sum(bank.expression, gaps)
    text = choose_text(bank.texts, split, random)
    return EverydayQuestion(text, {gap: _group_digits(figure, random) for gap, figure in gaps.items()}, (ask,))


def ask_for_sum(expression: str, gaps: Mapping[str, str]) -> Ask:
    """The work that a sum is: one call of a tool for sums of its form where a pool has one, else of a calculator."""
    sum_alone = evaluate(expression.format(**gaps))
    figures: dict[str, JsonValue] = {gap: _parse_figure(figure) for gap, figure in gaps.items()}
    if match := _TWO_FIGURES.fullmatch(expression):
        parts = {"first": figures[match[1]], "operation": _OPERATIONS[match[2]], "second": figures[match[3]]}
        return Ask("arithmetic", parts, (sum_alone,))
    if match := _PERCENT_OF.fullmatch(expression):
        return Ask("percent_of", {"percent": figures[match[1]], "whole": figures[match[2]]}, (sum_alone,))
    if match := _SHARE.fullmatch(expression):
        return Ask("share", {"part": figures[match[1]], "whole": figures[match[2]]}, (sum_alone,))
    numbers: list[JsonValue] = [figures[gap] for gap in _GAP.findall(expression)]
    if (match := _MEAN.fullmatch(expression)) and int(match[1]) == len(numbers):
        return Ask("mean", {"numbers": numbers}, (sum_alone,))
    if _TOTAL.fullmatch(expression):
        return Ask("sum", {"numbers": numbers}, (sum_alone,))
    return sum_alone


def draw_list(split: str, random: Random) -> EverydayQuestion:
    """The sum or the mean of a list of numbers."""
    bank = choose_bank(load_sums().lists, random)
    top = random.choice((20, 100, 1000))
    figures = [str(random.randint(1, top)) for _ in range(random.randint(3, 6))]
    if random.random() < 0.2:
        figures = [f"{random.uniform(1, top):.{random.choice((1, 2))}f}" for _ in figures]
    total = " + ".join(figures)
    expression = total if bank.work == "sum" else f"({total}) / {len(figures)}"
    ask = Ask(bank.work, {"numbers": [_parse_figure(figure) for figure in figures]}, (evaluate(expression),))
    last = random.choice((" and ", ", ", " and "))
    written = ", ".join(figures[:-1]) + last + figures[-1]
    return EverydayQuestion(choose_text(bank.texts, split, random), {"list": written}, (ask,))


def draw_units(split: str, random: Random) -> EverydayQuestion:
    """A measure in another unit."""
    group = random.choice(load_units().units.groups)
    source, target = (random.choice(unit) for unit in random.sample(group.units, 2))
    low, high = group.range
    value = str(random.randint(low, random.choice((high, max(low + 9, high // 10)))))
    if random.random() < 0.2:
        value += random.choice((".5", ".25", ".2"))
    written = _group_digits(value, random)
    if random.random() < IN_WORDS_SHARE:
        written, value = random.choice(sorted(load_units().units.amounts.items()))
    if random.random() < IN_WORDS_SHARE and source in load_units().units.singular:
        written, value = random.choice(sorted(load_units().units.parts.items()))
        source = load_units().units.singular[source]
    text = choose_text(load_units().units.texts, split, random)
    ask = convert_units(_parse_figure(value), source, target)
    return EverydayQuestion(text, {"v": written, "from": source, "to": target}, (ask,))


def draw_temperature(split: str, random: Random) -> EverydayQuestion:
    """A temperature on another scale."""
    source, target = (random.choice(unit) for unit in random.sample(load_units().units.temperatures, 2))
    value = random.randint(0 if source.startswith("K") else -40, 400)
    text = choose_text(load_units().units.temperature_texts, split, random)
    ask = convert_units(value, source, target)
    return EverydayQuestion(text, {"v": str(value), "from": source, "to": target}, (ask,))


def draw_molecule(split: str, random: Random) -> EverydayQuestion:
    """The mass of a molecule, or of an amount of it."""
    bank = choose_bank(load_units().molecules, random)
    formula, other = sorted(random.sample(load_units().formulas, 2), key=_weigh, reverse=True)
    if bank.asks not in ("heavier", "times_heavier"):
        formula = random.choice((formula, other))
    number = random.choice((str(random.randint(2, 90)), f"{random.uniform(0.1, 20):.1f}"))
    mass = Ask("molar_mass", {"formula": formula})
    masses = (mass, Ask("molar_mass", {"formula": other}))
    asks: dict[str, tuple[Ask, ...]] = {
        "mass": (mass,),
        "moles": (mass, evaluate(f"$1 * {number}")),
        "grams": (mass, evaluate(f"{number} / $1")),
        "heavier": (*masses, evaluate("$1 - $2")),
        "times_heavier": (*masses, evaluate("$1 / $2")),
    }
    gaps = {"formula": formula, "other": other, "n": number}
    return EverydayQuestion(choose_text(bank.texts, split, random), gaps, asks[bank.asks])


def _weigh(formula: str) -> float:
    """The molar mass."""
    return float(str(run_work("molar_mass", {"formula": formula})))


def _draw_figure(span: tuple[int, ...], random: Random) -> str:
    low, high, *decimals = span
    if decimals:
        return f"{random.uniform(low, high):.{random.choice((0, decimals[0]))}f}"
    small = high // 10  # half of the figures of a wide range are small
    return str(random.randint(low, random.choice((high, small)) if high > 99 and small > low else high))


def _parse_figure(figure: str) -> JsonValue:
    return float(figure) if "." in figure else int(figure)


def _group_digits(figure: str, random: Random) -> str:
    """A large figure with a thousands separator, now and then."""
    return f"{int(figure):,}" if figure.isdigit() and int(figure) > 999 and random.random() < 0.15 else figure
