"""What an improvement came to: the report that decides whether a candidate may take a serving checkpoint's place.

`trainer improve` writes it, a deployment's promotion reads it, and the pages show it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pool_registry.atomic_write import write_atomically
from pool_registry.validation_words import describe_problems
from trainer.errors import TrainerError

FILE = "improvement.json"


class DamagedReport(TrainerError):
    """The report of an improvement cannot be read."""


class SuiteChange(BaseModel):
    """Right answers of the candidate and of the serving orchestrator on the same tasks, as shares in [0, 1].

    `better_by` is their paired difference, `low` and `high` its 95 % interval over tasks.
    """

    model_config = ConfigDict(frozen=True)

    suite: Literal["own", "old", "general"] = Field(
        description="own: held-out tasks of new traffic; old: held-out tasks of before; general: of other pools."
    )
    tasks: int
    before: float
    after: float
    better_by: float
    low: float
    high: float


class GuardedFigure(BaseModel):
    """A figure that must not get worse beyond a bound, such as the share of refused queries or the cost of a query."""

    model_config = ConfigDict(frozen=True)

    name: str
    unit: str
    before: float
    after: float
    bound: float = Field(description="The largest value of `after` that is allowed.")

    @property
    def holds(self) -> bool:
        return self.after <= self.bound


class ImprovementReport(BaseModel):
    """A candidate against the serving orchestrator, on one pool version, and whether it may be promoted."""

    model_config = ConfigDict(frozen=True)

    pool: str
    pool_version: int
    serving: str
    candidate: str
    suites: tuple[SuiteChange, ...]
    guarded: tuple[GuardedFigure, ...]
    hours: float
    promotable: bool
    reasons: tuple[str, ...] = Field(description="A sentence each: why it may be promoted, or why not.")
    stage: str = Field(default="", description="What was trained: a row of the table of trainer/improve/stages.py.")
    cost: float = Field(default=0.0, description="US dollars that its jobs spent.")
    worse: tuple[str, ...] = Field(default=(), description="Held-out queries that only the serving one got right.")
    jobs: tuple[str, ...] = Field(default=(), description="The jobs that learnt and measured.")


def write_report(folder: Path, report: ImprovementReport) -> Path:
    """Keep a report in a folder; returns its file."""
    file = folder / FILE
    write_atomically(file, report.model_dump_json(indent=2))
    return file


def read_report(folder: Path) -> ImprovementReport:
    """The report of a folder. Raises FileNotFoundError without one, DamagedReport where it cannot be read."""
    file = folder / FILE
    try:
        return ImprovementReport.model_validate_json(file.read_bytes())
    except ValidationError as error:
        problems = describe_problems(error)
        raise DamagedReport(f"{file} is damaged ({problems}); delete it, and improve the pool again") from error
