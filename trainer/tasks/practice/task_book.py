"""A pool's own tasks: a task file that a person and `tasks make` write together.

What was made carries a mark of its content (`made`). A line without a mark, or one that was changed since, is a
person's and stays when tasks are made anew. What a person strikes, or deletes in an editor, is remembered beside the
file and never made again. Removing the file forgets everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

from pool_registry.atomic_write import lock_file, write_atomically
from trainer.errors import UnusableTasks
from trainer.tasks.sources.jsonl import (
    FileLine,
    SourceRun,
    TaskLine,
    compute_digest,
    compute_mark,
    parse_line,
    read_lines,
)
from trainer.tasks.suite import SPLITS
from trainer.tasks.task import normalize_query


class BookRecord(BaseModel):
    """What lies beside the task file: digests of the queries that were made last, and the lines that were struck."""

    made: list[str] = []
    struck: list[str] = []


@dataclass(frozen=True, slots=True)
class Merge:
    """What became of the file when tasks were made: how many are new, how many of a person's own stay, and how many
    were not written again because they had been struck."""

    made: int
    own: int
    struck: int


class ChangedTask(UnusableTasks):
    """Another edit of the same task was saved first. `based_on` is the digest of that: with it, yours replaces it."""

    def __init__(self, theirs: FileLine, yours: FileLine) -> None:
        self.based_on = theirs.digest
        super().__init__(
            "not saved, because somebody else has changed this task meanwhile. "
            f"Theirs: {theirs.raw}. Yours: {yours.raw}. Save again to put yours in its place, or cancel to keep theirs"
        )


class TaskBook:
    """The tasks in one file, and what is remembered about them. A file that is not there is a book without tasks."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._record_file = file.with_suffix(".book")
        self.journal_file = file.with_suffix(".questions")
        self.making_file = file.with_suffix(".making")
        self._lock_file = file.with_suffix(".lock")

    @property
    def files(self) -> tuple[Path, ...]:
        """What the book is kept in: the tasks, what is remembered about them, what agents wrote and answered, how the
        last making of tasks went, and which runs may become tasks."""
        return self.file, self._record_file, self.journal_file, self.making_file, self.file.with_suffix(".traffic")

    def read(self) -> list[FileLine]:
        """The lines of the file, those that are no tasks among them."""
        if not self.file.is_file():
            return []
        return read_lines(self.file.read_text(encoding="utf-8", errors="replace"), self.file.stem)

    def list_struck(self) -> list[FileLine]:
        """The lines that were struck, the last one first."""
        return read_lines("\n".join(reversed(self._read_record().struck)), self.file.stem)

    def find(self, query: str) -> FileLine:
        """The line of a query. Raises UnusableTasks."""
        return _find(self.read(), query)

    def strike(self, query: str, based_on: str = "") -> None:
        """Take one task out and remember it. Raises UnusableTasks when there is none, or it is not the one of the
        digest `based_on` any more."""
        with self._change() as (lines, record):
            gone = _find(lines, query)
            if based_on not in ("", gone.digest):
                raise UnusableTasks(f"not struck, because somebody else has changed it meanwhile to: {gone.raw}")
            lines.remove(gone)
            record.struck.append(gone.raw)

    def forget(self, queries: Collection[str], is_sent: Callable[[SourceRun], bool] = lambda _: False) -> int:
        """Take out every line of these queries, and every one that was made of a run that `is_sent` means, and remember
        none, nor of those that were struck. Returns how many."""
        keys = {normalize_query(query) for query in queries}
        with self._change() as (lines, record):
            struck = read_lines("\n".join(record.struck), self.file.stem)
            gone = [
                row
                for row in (*lines, *struck)
                if (row.task is not None and row.key in keys) or _is_made_of(row, is_sent)
            ]
            lines[:] = [row for row in lines if row not in gone]
            record.struck = [row.raw for row in struck if row not in gone]
        return len(gone)

    def restore(self, query: str) -> None:
        """Put a struck task back. Raises UnusableTasks."""
        with self._change() as (lines, record):
            back = _find(read_lines("\n".join(record.struck), self.file.stem), query)
            record.struck.remove(back.raw)
            _refuse_repeated(lines, [back])
            lines.append(back)

    def add(self, new: Sequence[TaskLine]) -> None:
        """Add tasks of a person's own. Raises UnusableTasks when a query is there already."""
        with self._change() as (lines, _):
            rows = [_write_own(line, self.file.stem) for line in new]
            _refuse_repeated(lines, rows)
            lines.extend(rows)

    def replace(self, query: str, line: TaskLine, based_on: str = "") -> None:
        """Put a task in the place of another. Raises UnusableTasks when that is gone, or the new query is taken, and
        ChangedTask when it is not the one of the digest `based_on` any more."""
        with self._change() as (lines, record):
            old = _find(lines, query)
            row = _write_own(line, self.file.stem, old.line)
            if based_on not in ("", old.digest) and row.raw != old.raw:
                raise ChangedTask(old, row)
            _refuse_repeated([other for other in lines if other is not old], [row])
            lines[lines.index(old)] = row
            if row.key != old.key:
                record.struck.append(old.raw)

    def replace_made(self, new: Sequence[TaskLine]) -> Merge:
        """Put new made tasks in place of those made before. A person's own stay, and what was struck stays out."""
        with self._change() as (lines, record):
            own = [row for row in lines if not row.is_made]
            there = {row.line.made.partition("-")[0] for row in lines if row.line is not None and row.line.made}
            deleted = {digest for digest in record.made if digest not in there}
            struck = {compute_digest(row.key) for row in read_lines("\n".join(record.struck), self.file.stem)}
            edited = {row.line.made.partition("-")[0] for row in own if row.line is not None and row.line.made}
            blocked = deleted | struck | edited | {compute_digest(row.key) for row in own if row.task}
            marked = [line.model_copy(update={"made": compute_mark(line)}) for line in new]
            kept = [line for line in marked if compute_digest(normalize_query(line.query)) not in blocked]
            lines[:] = [*own, *(_to_file_line(line, self.file.stem) for line in kept)]
            record.made = sorted(deleted | {compute_digest(normalize_query(line.query)) for line in kept})
            return Merge(len(kept), len(own), len(marked) - len(kept))

    def move(self, file: Path) -> None:
        """Move the tasks, and what is remembered about them, to another file."""
        with lock_file(self._lock_file):
            for place in reversed(self.files):
                if place.is_file():
                    place.rename(file.with_suffix(place.suffix))

    def _read_record(self) -> BookRecord:
        if not self.file.is_file() or not self._record_file.is_file():
            return BookRecord()
        try:
            return BookRecord.model_validate_json(self._record_file.read_bytes())
        except ValidationError as error:
            raise UnusableTasks(f"{self._record_file} is damaged ({error.title}); remove it to go on") from error

    @contextmanager
    def _change(self) -> Iterator[tuple[list[FileLine], BookRecord]]:
        """The lines and the record to be changed; both are written when the body succeeds, one process at a time."""
        with lock_file(self._lock_file):
            lines, record = self.read(), self._read_record()
            before = set(record.made)
            yield lines, record
            # A made task that the record names and the file lacks counts as deleted by a person. So a new one is
            # named only once it is in the file, in case this process ends between the writes.
            kept = [digest for digest in record.made if digest in before]
            self._write_record(record.model_copy(update={"made": kept}))
            write_atomically(self.file, "".join(f"{row.raw}\n" for row in lines))
            if len(kept) < len(record.made):
                self._write_record(record)

    def _write_record(self, record: BookRecord) -> None:
        write_atomically(self._record_file, record.model_dump_json())


def count_splits(rows: Iterable[FileLine]) -> dict[str, int]:
    """The number of tasks in each split."""
    counts = Counter(row.task.ref.split for row in rows if row.task is not None)
    return {split: counts[split] for split in SPLITS}


def _to_file_line(line: TaskLine, family: str) -> FileLine:
    return parse_line(line.model_dump_json(exclude_none=True), family, 0)


def _is_made_of(row: FileLine, is_sent: Callable[[SourceRun], bool]) -> bool:
    return row.line is not None and row.line.run is not None and is_sent(row.line.run)


def _write_own(line: TaskLine, family: str, old: TaskLine | None = None) -> FileLine:
    """A line as a person's own, with the time since when it is one, the run that it was made of and the workers that it
    is run with: those of the line that it replaces, where there is one."""
    since = line.since or (old and old.since) or datetime.now(UTC)
    run = line.run or (old and old.run)
    workers = line.workers or (old and old.workers)
    kept = {"made": None, "since": since, "run": run, "workers": workers}
    return _to_file_line(line.model_copy(update=kept), family)


def _find(rows: Sequence[FileLine], query: str) -> FileLine:
    key = normalize_query(query)
    row = next((row for row in rows if row.task is not None and row.key == key), None)
    if row is None:
        raise UnusableTasks(f"there is no such task: {query[:200]!r}; the file has changed, look at it again")
    return row


def _refuse_repeated(lines: Sequence[FileLine], new: Sequence[FileLine]) -> None:
    """Raise UnusableTasks when a new line is no task, or its query is there already."""
    there = {row.key for row in lines if row.task}
    for row in new:
        if row.problems:
            raise UnusableTasks("; ".join(row.problems))
        if row.key in there:
            raise UnusableTasks(f"there is a task with this query already: {row.key[:200]!r}; edit that one")
        there.add(row.key)
