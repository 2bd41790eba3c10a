"""The rows of finished evaluations, cached while their files do not change.

Everything on the Compare page that is about suites is computed from these rows by trainer/results/figures.py. What was
computed is kept, too: it depends on nothing but the rows and the question.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.checkpoints import read_job_name
from orchestrator.policies.labels import label_orchestrator
from studio.pages.compare.schema import EvaluationLine
from studio.pages.train.job_document import load_job_recipe
from studio.pages.train.progress import isoformat
from trainer.jobs.queue import JobRow, JobStore
from trainer.results.judge_agreement import describe_judges, list_judges
from trainer.results.rows import RESULTS, JudgeKey, ResultRow, Slot, list_orchestrators, read_results

T = TypeVar("T")
KEPT_ANSWERS = 64
KEPT_FILES = 64

Mark = tuple[int, int, int]


class NoResults(Exception):
    """There is nothing to compare; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows: evaluation jobs, and what of them. Empty fields do not restrict."""

    jobs: tuple[str, ...] = ()
    orchestrators: tuple[str, ...] = ()
    condition: str = ""
    family: str = ""
    level: int | None = None

    def holds(self, row: ResultRow) -> bool:
        return (
            (not self.condition or row.condition == self.condition)
            and (not self.family or row.family == self.family)
            and (self.level is None or row.level == self.level)
            and (not self.orchestrators or row.orchestrator in self.orchestrators)
        )


class ResultShelf:
    """Reads results.jsonl of jobs. Methods may be called from any thread."""

    def __init__(self, jobs: JobStore) -> None:
        self._jobs = jobs
        self._files: dict[str, tuple[Mark, list[ResultRow]]] = {}
        self._answers: dict[Hashable, Any] = {}
        self._lock = threading.Lock()

    def jobs(self) -> list[EvaluationLine]:
        """The jobs that have results or will have some, newest first, and what they measured."""
        return [self._describe_job(row) for row in self._jobs.all() if self._mark(row.id)[2] or _will_measure(row)]

    def newest(self) -> str | None:
        """The job that was evaluated last."""
        return next((row.id for row in self._with_results()), None)

    def rows(self, selection: Selection) -> list[ResultRow]:
        """The rows of a selection. Where several jobs measured the same, the newest counts.

        Raises NoResults when there are none, JobNotFound when a job does not exist.
        """
        merged = self.once("rows", selection.jobs, lambda: self._merge_rows(selection.jobs))
        if not merged:
            raise NoResults(
                "There is no evaluation yet. Start one with “New evaluation”."
                if not selection.jobs
                else f"No episode of {', '.join(selection.jobs)} has been graded yet."
            )
        kept = [row for row in merged if selection.holds(row)]
        if not kept:
            raise NoResults("No episode of these evaluations is of that kind. Take a filter away.")
        return kept

    def describe_judges(self, selection: Selection) -> list[str]:
        """A sentence about each judge that the figures of a selection rest on, by what is measured of it now."""
        return describe_judges(self.once(("judges", selection), selection.jobs, lambda: self._list_judges(selection)))

    def _list_judges(self, selection: Selection) -> list[JudgeKey]:
        return list_judges(self.rows(selection))

    def _merge_rows(self, jobs: Sequence[str]) -> list[ResultRow]:
        rows: dict[Slot, ResultRow] = {}
        for job in self._in_order(jobs):
            for row in self._of(job):
                rows[row.slot] = row
        return list(rows.values())

    def once(self, key: Hashable, jobs: Sequence[str], make: Callable[[], T]) -> T:
        """The result of `make`, cached under `key` until a file of the jobs changes."""
        whole = (key, tuple((job, self._mark(job)) for job in self._in_order(jobs)))
        with self._lock:
            if whole in self._answers:
                answer: T = self._answers[whole]
                return answer
        answer = make()
        with self._lock:
            while len(self._answers) >= KEPT_ANSWERS:
                self._answers.pop(next(iter(self._answers)))
            self._answers[whole] = answer
        return answer

    def _in_order(self, jobs: Iterable[str]) -> list[str]:
        """Order jobs from the oldest; without a choice take the newest that has results. Raises JobNotFound."""
        chosen = list(dict.fromkeys(jobs)) or [job for job in [self.newest()] if job]
        return [row.id for row in sorted(map(self._jobs.get, chosen), key=lambda row: row.created_at)]

    def _with_results(self) -> list[JobRow]:
        return [row for row in self._jobs.all() if self._mark(row.id)[2]]

    def _describe_job(self, row: JobRow) -> EvaluationLine:
        rows = self._of(row.id)
        recipe = load_job_recipe(self._jobs, row.id)
        orchestrators = list_orchestrators(rows)
        return EvaluationLine(
            id=row.id,
            title=recipe.title if recipe else "",
            pool=recipe.pool if recipe else "",
            name=row.name,
            state=row.state,
            message=row.message,
            created_at=isoformat(row.created_at),
            episodes=len(rows),
            orchestrators=orchestrators,
            labels={name: label_orchestrator(name) for name in orchestrators},
            label=read_job_name(row.id) or row.id,
            measures=row.kind == "evaluate",
            conditions=list(dict.fromkeys(result.condition for result in rows)),
            families=list(dict.fromkeys(result.family for result in rows)),
        )

    def _of(self, job: str) -> list[ResultRow]:
        mark = self._mark(job)
        with self._lock:
            cached = self._files.get(job)
            if cached is not None and cached[0] == mark:
                return cached[1]
        rows = read_results(self._path(job))
        with self._lock:
            self._files.pop(job, None)
            while len(self._files) >= KEPT_FILES:
                self._files.pop(next(iter(self._files)))
            self._files[job] = (mark, rows)
        return rows

    def _path(self, job: str) -> Path:
        return self._jobs.folder(job).path / RESULTS

    def _mark(self, job: str) -> Mark:
        """Return (inode, mtime in ns, size) of a job's results; zeros where it has none."""
        try:
            status = self._path(job).stat()
        except FileNotFoundError:
            return (0, 0, 0)
        return (status.st_ino, status.st_mtime_ns, status.st_size)


def _will_measure(row: JobRow) -> bool:
    return row.kind == "evaluate" and (row.active or row.state in ("queued", "failed"))
