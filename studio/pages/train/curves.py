"""A job's metrics.jsonl as columns: followed as it grows, several rows of a step folded into one, long runs thinned."""

from __future__ import annotations

import itertools
import json
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pool_registry.actions import JsonValue
from studio.frame.document import PageDocument
from trainer.methods.advice import Row, number
from trainer.recipe import EVALUATE, WHO

MAX_POINTS = 2000
RECENT = 400  # rows that advice is given on
NO_CURVE = {"step", "at", "epoch", "num_tokens"}
COUNTED = ("demonstrations", WHO, EVALUATE)  # what counts its own progress beside the steps


class CurveColumns(PageDocument):
    """A job's metrics as columns: every series has a value, or None, for each of the steps."""

    steps: list[int]
    series: dict[str, list[float | None]]


@dataclass(slots=True)
class Columns:
    """Metric rows folded by step: several rows of a step become one point of each curve."""

    steps: list[int] = field(default_factory=list)
    series: dict[str, list[float | None]] = field(default_factory=dict)
    _places: dict[int, int] = field(default_factory=dict)

    def take(self, row: Row) -> None:
        """Add a row. Steps may come in any order; a later row wins."""
        step = whole(row.get("step"))
        if row.get("stage") in COUNTED:
            return
        place = self._places.get(step)
        if place is None:
            place = self._places[step] = len(self.steps)
            self.steps.append(step)
            for values in self.series.values():
                values.append(None)
        for key, value in row.items():
            if key not in NO_CURVE and isinstance(value, int | float) and not isinstance(value, bool):
                values = self.series.setdefault(key, [None] * len(self.steps))
                values[place] = round_figure(value)

    def document(self, most: int = MAX_POINTS) -> CurveColumns:
        """The columns in the order of the steps, at most `most` points long."""
        order = sorted(range(len(self.steps)), key=self.steps.__getitem__)
        steps = [self.steps[k] for k in order]
        series = {key: [values[k] for k in order] for key, values in self.series.items()}
        if len(steps) > most:
            thinned = {key: thin_out(values, most) for key, values in series.items()}
            return CurveColumns(steps=_thin_steps(steps, most), series=thinned)
        return CurveColumns(steps=steps, series=series)


def thin_out(values: Sequence[float | None], most: int) -> list[float | None]:
    """Keep at most `most` values: of each run of neighbours the lowest and the highest, in the order they came.

    A spike is never lost, which averaging or leaving out every other value would do.
    """
    kept: list[float | None] = []
    for first, last in _buckets(len(values), most):
        measured = [k for k in range(first, last) if values[k] is not None]
        if not measured:
            kept += [None, None]
            continue
        low = min(measured, key=lambda k: values[k] or 0.0)
        high = max(measured, key=lambda k: values[k] or 0.0)
        kept += [values[min(low, high)], values[max(low, high)]]
    return kept


def _thin_steps(steps: Sequence[int], most: int) -> list[int]:
    return [step for first, last in _buckets(len(steps), most) for step in (steps[first], steps[last - 1])]


def _buckets(count: int, most: int) -> list[tuple[int, int]]:
    """Yield `most // 2` runs of neighbours, each of at least two, that cover everything."""
    runs = max(1, min(most // 2, count // 2))
    edges = [count * k // runs for k in range(runs + 1)]
    return list(itertools.pairwise(edges))


@dataclass(slots=True)
class MetricsReader:
    """Follows metrics.jsonl: `poll` gives the rows that were added.

    A resumed job rewrites the file; then everything is read again from its start.
    """

    path: Path
    columns: Columns = field(default_factory=Columns)
    recent: deque[Row] = field(default_factory=lambda: deque(maxlen=RECENT))
    progress: dict[str, float] = field(default_factory=dict)  # of COUNTED: how many of how many
    inode: int = 0
    offset: int = 0

    @property
    def place(self) -> str:
        """The place where reading stopped; a viewer sends it back as `Last-Event-ID`."""
        return f"{self.inode}:{self.offset}"

    def poll(self) -> tuple[list[Row], bool]:
        """The new rows, and whether the file was rewritten, so that rows of earlier polls no longer count."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return [], False
        renewed = status.st_ino != self.inode or status.st_size < self.offset
        if renewed:
            self.columns, self.inode, self.offset = Columns(), status.st_ino, 0
            self.recent.clear()
        if status.st_size == self.offset:
            return [], renewed
        rows, self.offset = read_whole_lines(self.path, self.offset)
        for row in rows:
            self.columns.take(row)
            self.recent.append(row)
            for key in (f"{stage}/{which}" for stage in COUNTED for which in ("done", "total")):
                if key in row:
                    self.progress[key] = number(row[key])
        return rows, renewed

    def knows(self, place: str) -> int | None:
        """The offset that a viewer has reached, when it is one in this file."""
        inode, _, offset = place.partition(":")
        if inode != str(self.inode) or not offset.isascii() or not offset.isdigit() or int(offset) > self.offset:
            return None
        return int(offset)


def read_whole_lines(path: Path, offset: int) -> tuple[list[Row], int]:
    """The complete JSON lines from a byte offset on, and the offset behind them."""
    with path.open("rb") as file:
        file.seek(offset)
        text = file.read()
    end = text.rfind(b"\n") + 1
    rows: list[Row] = []
    for line in text[:end].splitlines():
        try:
            row = json.loads(line)
        except ValueError:  # torn by a kill in the middle of a write
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows, offset + end


def whole(value: JsonValue) -> int:
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else 0


def round_figure(value: float) -> float | None:
    """The value with five significant digits, which is more than a curve can show; None for NaN and infinity."""
    return float(f"{value:.5g}") if math.isfinite(value) else None
