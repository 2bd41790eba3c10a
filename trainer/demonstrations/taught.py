"""What a teacher has shown so far: one line a task, so that a job that goes on has none shown again, and its cost.

A line is written once its episodes have ended and their traces are on disk. A task that a cap, a peer or a request to
stop cut off has a line too, which says what it cost, and is shown anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from pool_registry.actions import Usage
from pool_registry.calls.patience import Patience, never
from pool_registry.calls.spending import Spending
from pool_registry.strict_model import FrozenModel
from pool_registry.validation_words import describe_problems
from trainer.demonstrations.transcripts import Demonstration
from trainer.results.rows import append_line, repair_last_line
from trainer.tasks.task import Task

log = logging.getLogger(__name__)
TaskPlace = tuple[str, int]  # a query, and how many tasks before it have the same


class TaughtTask(FrozenModel):
    """What came of one task: `cost` in US dollars, whether the teacher `ended` all its trajectories, and solved it, and
    what is imitated, with the workers that it calls. `failure`: why the teacher could not be asked, "" where it could.
    """

    query: str
    place: int
    cost: float = 0.0
    ended: bool = False
    solved: bool = False
    recovered: bool = False
    failure: str = ""
    workers: tuple[str, ...] = ()
    demonstration: Demonstration | None = None


class TaughtTasks:
    """The account of a teacher. `file` holds the lines, none without one; `spent` is what the job's earlier rounds have
    cost; `settle` waits, in a thread, until traces are on disk."""

    def __init__(
        self,
        file: Path | None = None,
        max_cost: float | None = None,
        spent: float = 0.0,
        is_stopped: Callable[[], bool] = never,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._file, self._settle, self._is_stopped = file, settle, is_stopped
        self.patience = Patience(is_stopped)
        self.spending = Spending(max_cost=max_cost, exact=True, patience=self.patience)
        self._ended: dict[TaskPlace, TaughtTask] = {}
        if file is not None:
            repair_last_line(file)
            self._ended = {(row.query, row.place): row for row in read_taught(file) if row.ended}
            spent += sum_taught(file)
        self.spending.charge(Usage(cost=spent))

    @property
    def may_go_on(self) -> bool:
        """Whether one more trajectory may begin."""
        spending = self.spending
        return not (self._is_stopped() or spending.refused or spending.lost or spending.find_reached())

    def find(self, place: TaskPlace) -> TaughtTask | None:
        """What came of a task before; None where it is to be shown."""
        return self._ended.get(place)

    async def add(self, row: TaughtTask) -> None:
        """Keep a row. Raises OSError where it cannot be written."""
        if self._file is not None:
            await asyncio.to_thread(self._settle)
            append_line(self._file, row.model_dump_json())


def place_tasks(tasks: Sequence[Task]) -> list[TaskPlace]:
    """The tasks' names in the account: the same as long as queries stay in their order."""
    seen: Counter[str] = Counter()
    places = []
    for task in tasks:
        places.append((task.query, seen[task.query]))
        seen[task.query] += 1
    return places


def read_taught(file: Path) -> Iterator[TaughtTask]:
    """The lines of an account; one that a kill has torn is logged and left out."""
    if not file.is_file():
        return
    for number, line in enumerate(file.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            yield TaughtTask.model_validate_json(line)
        except ValidationError as error:
            log.warning("%s line %d cannot be read (%s); it is left out", file, number, describe_problems(error))


def sum_taught(file: Path) -> float:
    """What an account holds, in US dollars."""
    return sum(row.cost for row in read_taught(file))
