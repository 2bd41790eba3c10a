"""Find figures of a query that no call of a plan holds.

A small model leaves a figure out or writes another one in its place, and the worker answers all the same: "perimeter of
a 12 by 7 rectangle" became `2 * pi * 12`. The plan may be right without it ("the 2 of us"), so this is a doubt alone.
Where a call takes one output twice it is more: "how much are 4 eclairs" became the price times the price.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from orchestrator.plan import Step, Turn
from pool_registry.actions import JsonValue, as_text

# A call may have a figure in smaller units: days for weeks, minutes for hours, metres for kilometres.
FACTORS = (1, 7, 12, 24, 60, 1000)

NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")  # from 2 on

_FIGURE = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_QUOTE = re.compile(r"\$[0-9]+")
_OPERATOR = re.compile(r"[-+*/^%]")
_ALONE = re.compile(rf"(?<!\w){_FIGURE.pattern}")  # not that of Q3 or H2O, which calls may spell otherwise


def list_unused_figures(query: str, steps: Sequence[Step]) -> list[float]:
    """The figures of the query that stand in no argument, also not in other units, as a factor of a percentage or as an
    hour of the afternoon. 0 and 1 are often only words ("1 dollar in francs")."""
    texts = [as_text(value) for step in steps for value in step.arguments.values()]
    held = {figure for text in texts for figure in _read_figures(_FIGURE, text)}
    return [figure for figure in _read_figures(_ALONE, query) if figure > 1 and not held & _list_forms(figure)]


def put_in_figure(query: str, turn: Turn) -> Turn:
    """The turn with the figure of the query in place of an output that a call takes twice; as it is where no call
    does, or where all figures of the query are in calculations already, or several are not."""
    place, name = next(((k, name) for k, step in enumerate(turn.steps) if (name := _find_repeated(step))), (0, ""))
    figures = _list_uncalculated(query, turn.steps)
    if not name or len(figures) != 1:
        return turn
    figure = figures.pop()
    value = int(figure) if figure.is_integer() else figure
    step = turn.steps[place]
    changed = replace(step, arguments={**step.arguments, name: value})
    text = f"{turn.text}\n\nStep {step.id} takes {value} of the query for its second {step.arguments[name]}."
    steps = (*turn.steps[:place], changed, *turn.steps[place + 1 :])
    return replace(turn, steps=steps, text=text, repairs=(*turn.repairs, "repeated_outputs"))


def _find_repeated(step: Step) -> str:
    """The argument that is the same output as an earlier one of its call; "" where there is none."""
    seen: set[str] = set()
    for name, value in step.arguments.items():
        if isinstance(value, str) and _QUOTE.fullmatch(value):
            if value in seen:
                return name
            seen.add(value)
    return ""


def _list_uncalculated(query: str, steps: Sequence[Step]) -> set[float]:
    """The figures of the query, also those in words, that are no number in a call and in no expression."""
    texts = [as_text(value) for step in steps for value in step.arguments.values() if _is_calculated(value)]
    held = {figure for text in texts for figure in _read_figures(_FIGURE, text)}
    words = {
        float(NUMBER_WORDS.index(word) + 2) for word in re.findall(r"[a-z]+", query.casefold()) if word in NUMBER_WORDS
    }
    figures = {*_read_figures(_ALONE, query), *words}
    return {figure for figure in figures if 1 < figure < inf and not held & _list_forms(figure)}


def _is_calculated(value: JsonValue) -> bool:
    """Whether an argument is a number or an expression, and not words such as "4 eclairs"."""
    return isinstance(value, int | float) or (isinstance(value, str) and _OPERATOR.search(value) is not None)


def _read_figures(pattern: re.Pattern[str], text: str) -> list[float]:
    """The figures in a text, those of dates and times one by one."""
    return [float(match.replace(",", "")) for match in pattern.findall(text)]


def _list_forms(figure: float) -> set[float]:
    share = figure / 100
    return {
        round(form, 9) for form in (*(figure * factor for factor in FACTORS), figure + 12, share, 1 + share, 1 - share)
    }
