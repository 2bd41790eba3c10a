"""The formats that tasks come in: Parquet, JSON, JSONL, tables with a delimiter, and lines with a tab in the middle.

Each reader of the table at the end gives the rows of a source, or None where that is of another format.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from io import BytesIO, StringIO
from itertools import islice
from typing import Any

from pool_registry.actions import clean_text
from trainer.errors import UnusableTasks
from trainer.tasks.sources.files.columns import ColumnChooser, is_known, is_known_pair, is_query_name
from trainer.tasks.sources.files.encoding import DecodedText, check_text, decode_text
from trainer.tasks.sources.files.kinds import PARQUET
from trainer.tasks.sources.jsonl import TaskLine

FORM = 'write a query and its answer with a tab between them, or {"query": "...", "answer": ...}'
NO_OBJECT = 'give an object such as {"question": "...", "answer": ...}'
UNCLOSED = 'a cell begins here with " and never ends: close it, or write "" for a quotation mark in a cell'
DELIMITERS = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "bars"}
CLOSE = 0.75  # how like a field a misspelt one is: 1 is equal
SAMPLE_ROWS = 20  # that show how a table is delimited
ALIKE = 0.75  # of these, for a delimiter without known names of columns
SAMPLE_OBJECTS = 1000  # that show which fields objects have
MAX_PARQUET_ROWS = 1_000_000
MAX_PARQUET_BYTES = 500_000_000  # of the columns of tasks, decoded
BATCH_ROWS = 256  # that are decoded at a time


@dataclass(frozen=True, slots=True)
class Row:
    """A row with the number that a person finds it by. One without a record is a line of a task file as it stands, or
    has a problem."""

    number: int
    record: Mapping[str, Any] | None = None
    raw: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a source holds. `unit` is what its numbers count; without columns, the rows are lines of a task file.
    `is_table`: with names of columns or fields."""

    form: str
    rows: Iterable[Row]
    columns: tuple[str, ...] = ()
    unit: str = "line"
    is_table: bool = True


@dataclass(frozen=True, slots=True)
class CellRow:
    """A row of a table, with the number of its first line."""

    number: int
    cells: tuple[str, ...]
    problem: str = ""


@dataclass(frozen=True)
class Source:
    """The bytes of a file, and what a person says about them."""

    data: bytes
    name: str
    encoding: str
    chooser: ColumnChooser

    @cached_property
    def decoded(self) -> DecodedText:
        """The text. Raises UnusableTasks."""
        return decode_text(self.data, self.name, self.encoding)

    @cached_property
    def sound_text(self) -> str:
        """The text with plain line breaks. Raises UnusableTasks where it is damaged."""
        check_text(self.decoded, self.name)
        return self.decoded.text.replace("\r\n", "\n").replace("\r", "\n")


def read_rows(source: Source) -> Rows:
    """The rows of a source. Raises UnusableTasks where they cannot be read."""
    return next(rows for read in FORMATS if (rows := read(source)) is not None)


def read_parquet(source: Source) -> Rows | None:
    """Rows of a Parquet file, read as they are taken: the columns of tasks alone."""
    if not source.data.startswith(PARQUET):
        return None
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise UnusableTasks(f"{source.name} is a Parquet file; to read it run: pip install pyarrow") from error
    with _explain_parquet(source.name):
        file = parquet.ParquetFile(BytesIO(source.data))
        columns = tuple(file.schema_arrow.names)
    return Rows("Parquet", _read_parquet_rows(file, source, columns), columns, "row")


def _read_parquet_rows(file: Any, source: Source, columns: tuple[str, ...]) -> Iterator[Row]:
    chosen = source.chooser.choose(columns)
    names = [name for name in columns if name not in chosen.list_unused(columns)]
    number = size = 0
    with _explain_parquet(source.name):
        for batch in file.iter_batches(BATCH_ROWS, columns=names):
            size += batch.nbytes
            if size > MAX_PARQUET_BYTES or number > MAX_PARQUET_ROWS:
                raise UnusableTasks(
                    f"{source.name} has more than {MAX_PARQUET_ROWS:,} rows or {MAX_PARQUET_BYTES:,} bytes: split it"
                )
            for record in batch.to_pylist():
                number += 1
                yield Row(number, record)


@contextmanager
def _explain_parquet(name: str) -> Iterator[None]:
    """Raise UnusableTasks for what a broken file makes of its reader."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise UnusableTasks(f"{name} is a Parquet file that cannot be read ({reason}); write it anew") from error


def read_json(source: Source) -> Rows | None:
    """The items of a JSON list, or of the one list in an object such as {"data": [...]}."""
    text = source.decoded.text
    start = text.lstrip()[:1]
    if start not in ("[", "{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if start == "[" and text.lstrip()[1:].lstrip().startswith("{"):
            raise UnusableTasks(f"{source.name} is no JSON list ({error}); mend it there") from error
        return None
    items = value if isinstance(value, list) else _find_items(value)
    if not items or (items == [value] and "\n" not in text.strip()):
        return None  # one object on one line is JSONL
    columns = _list_columns(item for item in items if isinstance(item, dict))
    numbers = enumerate(items, 1)
    if _are_tasks(items):
        return Rows("JSON", (Row(k, raw=json.dumps(item, ensure_ascii=False)) for k, item in numbers), unit="item")
    return Rows("JSON", (_read_object(k, item) for k, item in numbers), columns, "item")


def read_json_lines(source: Source) -> Rows | None:
    """Objects, one a line. Lines of a task file stay as they are."""
    text = source.decoded.text
    if not text.lstrip().startswith("{"):
        return None
    lines = [(k, line.rstrip("\r")) for k, line in enumerate(text.split("\n"), 1) if line.strip()]
    sample = [_parse(line) for _, line in lines[:SAMPLE_OBJECTS]]
    objects = [value for value in sample if isinstance(value, dict)]
    if _are_tasks(sample) or not objects:
        return Rows("JSONL", (Row(k, raw=line) for k, line in lines))
    return Rows("JSONL", (_read_object(k, _parse(line)) for k, line in lines), _list_columns(objects))


def read_table(source: Source) -> Rows | None:
    """A table with a delimiter and a first row of names."""
    lines = list(StringIO(source.sound_text))
    delimiter = _find_delimiter(lines, source.chooser)
    if delimiter is None:
        return None
    columns = next(_read_cells(lines, delimiter)).cells
    form = "TSV" if delimiter == "\t" else f"CSV with {DELIMITERS[delimiter]}"
    return Rows(form, _read_table_rows(lines, delimiter, columns), columns)


def read_pairs(source: Source) -> Rows:
    """Lines of a query and an answer with a tab between them, as two columns of a spreadsheet are pasted."""
    lines = enumerate(source.sound_text.split("\n"), 1)
    rows = (_read_pair(number, line) for number, line in lines if line.strip())
    return Rows("lines with a query, a tab and an answer", rows, ("query", "answer"), is_table=False)


FORMATS: tuple[Callable[[Source], Rows | None], ...] = (
    read_parquet,
    read_json,
    read_json_lines,
    read_table,
    read_pairs,
)


def _are_tasks(values: Iterable[object]) -> bool:
    """Whether one is meant as a line of a task file: it has a query, and else only fields of such lines, misspelt or
    not."""
    return any(isinstance(value, dict) and "query" in value and all(map(_is_field, value)) for value in values)


def _is_field(name: str) -> bool:
    fields = TaskLine.model_fields
    return name in fields or (not is_known(name) and bool(get_close_matches(name, fields, 1, CLOSE)))


def _find_items(value: Any) -> list[Any]:
    """The one list of objects in an object that is no row itself, else the object as the only item."""
    if not isinstance(value, dict):
        return []
    lists = [part for part in value.values() if isinstance(part, list) and any(isinstance(item, dict) for item in part)]
    return lists[0] if len(lists) == 1 and not any(map(is_known, value)) else [value]


def _list_columns(objects: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The fields of the first objects, without names that are no text."""
    names = dict.fromkeys(name for row in islice(objects, SAMPLE_OBJECTS) for name in row)
    return tuple(name for name in names if clean_text(name) == name)


def _read_object(number: int, value: object) -> Row:
    return (
        Row(number, value) if isinstance(value, dict) else Row(number, problem='this is no object such as {"...": ...}')
    )


def _parse(line: str) -> object:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value


def _find_delimiter(lines: Sequence[str], chooser: ColumnChooser) -> str | None:
    """The delimiter with which the first row has known names, else the one that cuts most rows alike."""
    samples = {mark: [row.cells for row in islice(_read_cells(lines, mark), SAMPLE_ROWS)] for mark in DELIMITERS}
    samples = {mark: rows for mark, rows in samples.items() if rows and len(rows[0]) > 1}
    chosen = {chooser.query, chooser.answer} - {""}
    for mark, rows in samples.items():
        if is_known_pair(rows[0]) or chosen & set(rows[0]):
            return mark
    alike = (mark for mark, rows in samples.items() if len(rows) > 1 and _count_alike(rows) >= ALIKE * len(rows))
    return next((mark for mark in alike if not _are_pairs(mark, samples[mark][0])), None)


def _count_alike(rows: Sequence[Sequence[str]]) -> int:
    """How many rows have as many cells as the first."""
    return sum(len(row) == len(rows[0]) for row in rows)


def _are_pairs(delimiter: str, first: Sequence[str]) -> bool:
    """Whether a first row is a query and an answer, pasted from a spreadsheet, rather than names."""
    return delimiter == "\t" and len(first) == 2 and not is_query_name(first[0])


def _read_cells(lines: Sequence[str], delimiter: str) -> Iterator[CellRow]:
    """The rows that are not blank."""
    reader = csv.reader(lines, delimiter=delimiter)
    first = 1
    while True:
        problem = ""
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            cells, problem = [], UNCLOSED  # a cell of more than 131,072 characters
        if reader.line_num == len(lines) > first and _is_unclosed(lines[first - 1 :], delimiter):
            problem = UNCLOSED
        if problem or any(cell.strip() for cell in cells):
            yield CellRow(first, tuple(cell.strip() for cell in cells), problem)
        first = reader.line_num + 1


def _is_unclosed(lines: Sequence[str], delimiter: str) -> bool:
    """Whether the last row of a table, which these lines are, has a cell that begins with a quotation mark and does not
    end."""
    try:
        list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def _read_table_rows(lines: Sequence[str], delimiter: str, columns: tuple[str, ...]) -> Iterator[Row]:
    for row in islice(_read_cells(lines, delimiter), 1, None):
        if row.problem:
            yield Row(row.number, problem=row.problem)
        elif any(row.cells[len(columns) :]):
            count = f"this row has {len(row.cells)} cells and the first one {len(columns)}"
            yield Row(row.number, problem=f"{count}: quote cells that hold {DELIMITERS[delimiter]}")
        elif row.cells != columns:
            yield Row(row.number, dict(zip(columns, row.cells, strict=False)))


def _read_pair(number: int, line: str) -> Row:
    if line.startswith("{"):
        return Row(number, raw=line)
    query, tab, answer = line.partition("\t")
    return Row(number, {"query": query, "answer": answer}) if tab else Row(number, raw=line, problem=FORM)
