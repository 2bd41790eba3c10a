"""Reads tasks as people have them at hand: files of any encoding and format, and what is pasted from a spreadsheet.

Rows of other forms are written as lines of a task file, and those are read: so each is a task, or has problems with its
number, wherever it comes from. The command `tasks`, the Tasks panel and the source `file:` read with this.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pool_registry.pool import Pool
from pool_registry.text import one_line, shorten
from trainer.errors import UnusableTasks
from trainer.tasks.sources.files.cells import write_fields
from trainer.tasks.sources.files.columns import REMEDY, ColumnChooser, Columns
from trainer.tasks.sources.files.encoding import UTF8, read_bytes
from trainer.tasks.sources.files.formats import TOO_DEEP, read_rows
from trainer.tasks.sources.files.kinds import ACCEPTED, PARQUET
from trainer.tasks.sources.files.rows import Row, Rows, Source
from trainer.tasks.sources.jsonl import (
    MAX_FILE_BYTES,
    FileLine,
    TaskLine,
    collect_tasks,
    make_source,
    parse_line,
    refuse_repeated,
)
from trainer.tasks.sources.source import TaskList

_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)
LISTED_PROBLEMS = 20  # more wrong lines than right ones, and more than these, are no list of tasks with slips in it


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a person says about a file; "" for what is to be found out."""

    encoding: str = ""
    query_column: str = ""
    answer_column: str = ""


@dataclass(frozen=True, slots=True)
class ReadTasks:
    """The lines of a file, tasks and others. `form` is a sentence on how it was read, `unit` what the lines' numbers
    count; `columns` are all that there are, `chosen` those of tasks; neither, for lines of a task file."""

    form: str
    unit: str
    lines: list[FileLine]
    columns: tuple[str, ...] = ()
    chosen: Columns | None = None

    def list_lacking_workers(self, pool: Pool) -> list[str]:
        """The names of the workers that plans of the tasks call and a pool lacks."""
        tasks = (line.task for line in self.lines if line.task is not None)
        return sorted({name for task in tasks for name in task.list_missing_workers(pool)})


def read_task_file(file: Path, options: ReadOptions = ReadOptions()) -> ReadTasks:
    """The tasks of a file. Raises UnusableTasks where it cannot be read at all, and UnclearColumns."""
    try:
        size = file.stat().st_size
    except OSError:
        size = 0  # read_bytes says why
    if size > MAX_FILE_BYTES:
        raise UnusableTasks(f"{file} has more than {MAX_FILE_BYTES:,} bytes; split it into several files")
    return read_tasks(read_bytes(file), str(file), file.stem, options)


def read_tasks(
    data: bytes,
    name: str,
    family: str,
    options: ReadOptions = ReadOptions(),
    remedy: str = REMEDY,
) -> ReadTasks:
    """The tasks in the bytes of what is called `name`. Raises UnusableTasks where they cannot be read at all, or hardly
    a line is a task, and UnclearColumns, which says the `remedy`."""
    chooser = ColumnChooser(name, options.query_column, options.answer_column, remedy=remedy)
    source = Source(data, name, options.encoding, chooser)
    rows = read_rows(source)
    encoding = "" if data.startswith(PARQUET) else source.decoded_text.encoding
    return parse_rows(rows, chooser, family, encoding)


def parse_rows(rows: Rows, chooser: ColumnChooser, family: str, encoding: str = "") -> ReadTasks:
    """The tasks in rows, read from the columns that are chosen. Raises UnusableTasks where hardly a line is a task, and
    UnclearColumns."""
    name = chooser.source
    chosen = chooser.choose(rows.columns) if rows.columns else None
    if chosen is None and (chooser.query or chooser.answer):
        raise UnusableTasks(f"{name} holds lines of a task file, with the fields query and answer: name no column")
    lines = list(refuse_repeated((_parse(row, chosen, family) for row in rows.rows), rows.unit))
    form = _write_form(rows, chosen, encoding)
    if rows.is_table:
        return ReadTasks(form, rows.unit, lines, rows.columns, chosen)
    wrong = sum(line.task is None for line in lines)
    if wrong > LISTED_PROBLEMS and 2 * wrong > len(lines):
        raise UnusableTasks(f"{wrong:,} of {len(lines):,} lines of {name} are no task ({_describe(lines)}); {ACCEPTED}")
    return ReadTasks(form, rows.unit, lines)


def require_tasks(read: ReadTasks, name: str) -> list[TaskLine]:
    """The tasks among what was read. Raises UnusableTasks where there is none."""
    tasks = [line.line for line in read.lines if line.task is not None and line.line is not None]
    if not tasks:
        raise UnusableTasks(f"nothing in {name} is a task ({_describe(read.lines, read.unit)}); {ACCEPTED}")
    return tasks


def open_task_file(file: Path, name: str) -> TaskList:
    """The tasks of a file in any form as a source. Raises UnusableTasks when there is none."""
    read = read_task_file(file)
    return make_source(collect_tasks(read.lines), file, name, read.unit)


def _parse(row: Row, chosen: Columns | None, family: str) -> FileLine:
    """A row as the line of a task file."""
    if row.problem:
        return FileLine(row.number, row.raw, None, None, (row.problem,))
    if row.record is None or chosen is None:
        return parse_line(row.raw, family, row.number)
    try:
        fields = write_fields(row.record, chosen)
    except ValueError as error:
        return FileLine(row.number, "", None, None, (str(error),))
    try:
        raw = _ENCODER.encode(fields)
    except (ValueError, RecursionError):
        return FileLine(row.number, "", None, None, (TOO_DEEP,))
    return parse_line(raw, family, row.number)


def _write_form(rows: Rows, chosen: Columns | None, encoding: str) -> str:
    """How a file was read, as a sentence."""
    form = f"Read as {rows.form}" + (f" in {encoding}" if encoding not in ("", UTF8) else "")
    if chosen is None or not rows.is_table:
        return form
    query = f"{chosen.query} with {chosen.context}" if chosen.context else chosen.query
    unused = ", ".join(chosen.list_unused(rows.columns))
    parts = {"queries from": query, "answers from": chosen.answer, "splits from": chosen.split, "not used:": unused}
    return f"{form}: {'; '.join(f'{what} {shorten(one_line(name), 200)}' for what, name in parts.items() if name)}"


def _describe(lines: list[FileLine], unit: str = "line") -> str:
    """What a file without tasks seems to be, by its first problem."""
    line = next((line for line in lines if line.problems), None)
    if line is None:
        return "it is empty"
    text = line.raw.strip().encode("utf-8", "replace").decode()
    return f"{unit} {line.number}{f', {shorten(text, 60)!r}' if text else ''}: {line.problems[0]}"
