"""What an evaluation leaves behind: one line per finished, graded episode in `jobs/<id>/results.jsonl`.

Everything that is told about an evaluation (figures.py, the Compare page, evaluations.jsonl) is computed
from these rows. A row is written once its episode is graded, in one write; a job that was killed goes on with
the samples that have no row yet.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

log = logging.getLogger(__name__)
RESULTS = "results.jsonl"
GENERATED = "suite"  # the source of every generated family: "ledger" and "ledger,atlas" draw the same tasks


class TaskKey(NamedTuple):
    """Which task: rows of two evaluations with equal keys are about the same query."""

    source: str
    family: str
    level: int
    split: str
    index: int  # type: ignore[assignment]  # tuple.index is not missed


class Slot(NamedTuple):
    """What is to be run, or was: one sample of one orchestrator on one task in one condition of the pool."""

    orchestrator: str
    condition: str
    task: TaskKey
    sample: int


class ResultRow(BaseModel):
    """One finished episode in figures.

    `condition` is seen, renamed, distractors, missing, flaky, priced, or `without:WORKER[,WORKER]`.
    `source` is "suite" for generated families and otherwise the name of the source. `episode` is the trace's id.
    `turns` counts turns, `turn_errors` those of them that were none. `depth` is how many steps had to wait for
    each other, `width` how many could run at once, at most. `statuses` counts steps by status, `failed_calls`
    those that were not OK, `workers` steps by the worker they called. Times in seconds, cost in US dollars.
    `at` is when the episode ended, in seconds since 1970, UTC.

    What follows is measured against the reference plan (evaluation/access_score.py) and None where the task has none:
    `access_precision`, `access_recall`, `matched_steps` (steps of the reference plan that the episode made,
    too), `oracle_steps`, `oracle_depth` (size of the reference plan) and `overshared_chars`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    orchestrator: str
    condition: str = "seen"
    source: str
    family: str
    level: int
    split: str
    index: int
    sample: int = 0
    query: str
    episode: str
    correct: bool
    outcome: str
    turns: int
    turn_errors: int
    steps: int
    depth: int
    width: int
    statuses: dict[str, int]
    failed_calls: int
    wall_s: float
    serial_s: float
    tokens_in: int
    tokens_out: int
    cost: float
    workers: dict[str, int]
    access_precision: float | None = None
    access_recall: float | None = None
    matched_steps: int | None = None
    oracle_steps: int | None = None
    oracle_depth: int | None = None
    overshared_chars: int | None = None
    at: float = 0.0

    @property
    def task_key(self) -> TaskKey:
        return TaskKey(self.source, self.family, self.level, self.split, self.index)

    @property
    def slot(self) -> Slot:
        return Slot(self.orchestrator, self.condition, self.task_key, self.sample)


def read_results(path: Path) -> list[ResultRow]:
    """The rows of a results file in the order in which they were written; none where there is no file.

    A line that a kill has torn is told to the log and left out. Of two rows of one slot the first counts.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    found: dict[Slot, ResultRow] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = ResultRow.model_validate_json(line)
        except ValidationError as error:
            log.warning("%s line %d is no result (%s); it is left out", path, number, str(error).splitlines()[0])
        else:
            found.setdefault(row.slot, row)
    return list(found.values())


def append_result(path: Path, row: ResultRow) -> None:
    """Write a row at the end of the file in one write: a kill loses it whole or not at all."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, row.model_dump_json().encode() + b"\n")
    finally:
        os.close(handle)


def repair_last_line(path: Path) -> None:
    """End a torn last line, so that what is appended next stands on a line of its own."""
    if path.exists() and (text := path.read_bytes()) and not text.endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")


def list_orchestrators(rows: Iterable[ResultRow]) -> list[str]:
    """Who was evaluated, in the order of the first rows."""
    return list(dict.fromkeys(row.orchestrator for row in rows))
