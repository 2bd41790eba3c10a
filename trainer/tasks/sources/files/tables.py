"""Tables as text: CSV with any usual delimiter, TSV, and pairs of cells that were pasted from a spreadsheet."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice

from trainer.tasks.sources.files.columns import ColumnChooser, is_known_pair, is_query_name, normalize_name
from trainer.tasks.sources.files.rows import Row, Rows, Source

FORM = 'write a query and its answer with a tab between them, or {"query": "...", "answer": ...}'
UNCLOSED = 'a cell begins here with " and never ends: close it, or write "" for a quotation mark in a cell'
DELIMITERS = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "bars"}
SAMPLE_ROWS = 20  # that show how a table is delimited
_RULE = re.compile(r"(:?-{2,}:?)?")  # a cell of the line under the head of a Markdown table
ALIKE = 0.75  # of these, for a delimiter without known names of columns


@dataclass(frozen=True, slots=True)
class CellRow:
    """A row of a table, with the number of its first line."""

    number: int
    cells: tuple[str, ...]
    problem: str = ""


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


def _find_delimiter(lines: Sequence[str], chooser: ColumnChooser) -> str | None:
    """The delimiter with which the first row has known names, else the one that cuts most rows alike."""
    samples = {mark: [row.cells for row in islice(_read_cells(lines, mark), SAMPLE_ROWS)] for mark in DELIMITERS}
    samples = {mark: rows for mark, rows in samples.items() if rows and len(rows[0]) > 1}
    chosen = {normalize_name(name) for name in (chooser.query, chooser.answer) if name}
    for mark, rows in samples.items():
        if is_known_pair(rows[0]) or chosen & set(map(normalize_name, rows[0])):
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
        elif row.cells != columns and not all(_RULE.fullmatch(cell) for cell in row.cells):
            yield Row(row.number, dict(zip(columns, row.cells, strict=False)))


def _read_pair(number: int, line: str) -> Row:
    if line.startswith("{"):
        return Row(number, raw=line)
    query, tab, answer = line.partition("\t")
    return Row(number, {"query": query, "answer": answer}) if tab else Row(number, raw=line, problem=FORM)
