"""Advice on a training: what is seen in its figures and what to do about it, and how rows of figures are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pool_registry.actions import JsonValue
from trainer.results.statistics import mean

Level = Literal["alive", "degenerate", "tuning"]
Row = Mapping[str, JsonValue]
WINDOW = 10  # points that a statement about "now" is made from


@dataclass(frozen=True, slots=True)
class Advice:
    """`sentence` says what is seen, `action` what to do; `alarming` is what needs a person now."""

    level: Level
    sentence: str
    action: str = ""
    alarming: bool = False


@dataclass(frozen=True, slots=True)
class MetricRows:
    """The newest rows of a job's figures, and of its groups of episodes; `active` while it runs."""

    rows: Sequence[Row]
    groups: Sequence[Row] = ()
    active: bool = False

    def of_stage(self, stage: str) -> MetricRows:
        """The rows of one stage."""
        return MetricRows([row for row in self.rows if row.get("stage") == stage], self.groups, self.active)

    def all(self, key: str) -> list[float]:
        """The finite values of a figure, in order."""
        values = [row[key] for row in self.rows if key in row]
        return [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]

    def recent(self, key: str) -> list[float]:
        """Its newest values."""
        return self.all(key)[-WINDOW:]

    def last(self, key: str) -> JsonValue:
        """Its newest value, as it was written."""
        return next((row[key] for row in reversed(self.rows) if key in row), None)

    def recent_means(self, prefix: str) -> dict[str, float]:
        """The mean of each figure with this prefix, over the newest rows that have one of them."""
        measured = [row for row in self.rows if any(key.startswith(prefix) for key in row)][-WINDOW:]
        keys = sorted({key for row in measured for key in row if key.startswith(prefix)})
        return {key: mean([number(row.get(key)) for row in measured]) for key in keys}


def number(value: JsonValue) -> float:
    """A figure of a row; 0 where there is none."""
    return float(value) if isinstance(value, int | float) else 0.0
