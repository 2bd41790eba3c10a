"""The results of an evaluation: one line per finished, graded episode in `jobs/<id>/results.jsonl`.

Everything that is reported about an evaluation (figures.py, the Compare page, evaluations.jsonl) is computed from
these rows. A row is written once its episode is graded, in one write; a job that was killed continues with the
samples that have no row yet.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pool_registry.validation_words import describe_problems

log = logging.getLogger(__name__)
RESULTS = "results.jsonl"
GENERATED = "suite"  # the source of every generated family: "ledger" and "ledger,atlas" draw the same tasks


class TaskKey(NamedTuple):
    """The identity of a task: rows with equal keys are about the same query, also in two evaluations."""

    source: str
    family: str
    level: int
    split: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nothing uses


class Slot(NamedTuple):
    """The place of one episode in an evaluation: a sample of an orchestrator on a task in a condition of the pool."""

    orchestrator: str
    condition: str
    task: TaskKey
    sample: int


class JudgeKey(BaseModel):
    """A judge: its name, and a digest of its kind and configuration."""

    model_config = ConfigDict(frozen=True)

    name: str
    work: str = Field(pattern=r"^[0-9a-f]{16}$")


class ResultRow(BaseModel):
    """The figures of one finished episode.

    `condition` is one of trainer.tasks.task_conditions.CONDITIONS, or `without:WORKER[,WORKER]`. `origin` is who wrote
    the query: "made" by `tasks make`, "own" for a person; "" for generated ones, and in older results.
    `source` is "suite" for generated families and otherwise the name of the source. `episode` is the trace's id.
    `turns` counts turns, `turn_errors` those that could not be parsed. `depth` is the longest chain of steps that
    wait for each other, `width` the most steps that could run at once. `statuses` counts steps by status,
    `failed_calls` those that were not OK, `workers` steps by the worker they called. Times in seconds, cost in US
    dollars. `at` is when the episode ended, in seconds since 1970, UTC. `judge` is the worker that graded the
    answer, where one did.

    The following compare with the reference plan (evaluation/access_score.py) and are None where the task has none:
    `access_precision`, `access_recall`, `matched_steps` (steps of the reference plan that the episode made too),
    `oracle_steps`, `oracle_depth` (size of the reference plan) and `overshared_chars`.
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
    origin: Literal["made", "own", ""] = ""
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
    judge: JudgeKey | None = None

    @property
    def task_key(self) -> TaskKey:
        return TaskKey(self.source, self.family, self.level, self.split, self.index)

    @property
    def slot(self) -> Slot:
        return Slot(self.orchestrator, self.condition, self.task_key, self.sample)


def read_results(path: Path) -> list[ResultRow]:
    """Read the rows of a results file in the order in which they were written; none where there is no file.

    A line that a kill has torn is logged and left out. Of two rows of one slot the first counts.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    rows: dict[Slot, ResultRow] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = ResultRow.model_validate_json(line)
        except ValidationError as error:
            log.warning("%s line %d is not a result (%s); it is left out", path, number, describe_problems(error))
        else:
            rows.setdefault(row.slot, row)
    return list(rows.values())


def append_result(path: Path, row: ResultRow) -> None:
    """Append a row to a results file."""
    append_line(path, row.model_dump_json())


def append_line(path: Path, line: str) -> None:
    """Append a line in one write: a reader never sees half of it, and a kill loses all of it or nothing."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, f"{line}\n".encode())
    finally:
        os.close(handle)


def repair_last_line(path: Path) -> None:
    """End a torn last line, so that the next row starts on a line of its own."""
    if path.exists() and (text := path.read_bytes()) and not text.endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")


def list_orchestrators(rows: Iterable[ResultRow]) -> list[str]:
    """List the evaluated orchestrators in the order of their first rows."""
    return list(dict.fromkeys(row.orchestrator for row in rows))
