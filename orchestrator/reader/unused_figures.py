"""Find figures of a query that no call of a plan holds.

A small model leaves a figure out or writes another one in its place, and the worker answers all the same: "perimeter of
a 12 by 7 rectangle" became `2 * pi * 12`. The plan may be right without it ("the 2 of us"), so this is a doubt alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.plan import Step
from pool_registry.actions import as_text

# A call may have a figure in smaller units: days for weeks, minutes for hours, metres for kilometres.
FACTORS = (1, 7, 12, 24, 60, 1000)

_FIGURE = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_ALONE = re.compile(rf"(?<!\w){_FIGURE.pattern}")  # not that of Q3 or H2O, which calls may spell otherwise


def list_unused_figures(query: str, steps: Sequence[Step]) -> list[float]:
    """The figures of the query that stand in no argument, also not in other units, as a factor of a percentage or as an
    hour of the afternoon. 0 and 1 are often only words ("1 dollar in francs")."""
    texts = [as_text(value) for step in steps for value in step.arguments.values()]
    held = {figure for text in texts for figure in _read_figures(_FIGURE, text)}
    return [figure for figure in _read_figures(_ALONE, query) if figure > 1 and not held & _list_forms(figure)]


def _read_figures(pattern: re.Pattern[str], text: str) -> list[float]:
    """The figures in a text, those of dates and times one by one."""
    return [float(match.replace(",", "")) for match in pattern.findall(text)]


def _list_forms(figure: float) -> set[float]:
    share = figure / 100
    return {
        round(form, 9) for form in (*(figure * factor for factor in FACTORS), figure + 12, share, 1 + share, 1 - share)
    }
