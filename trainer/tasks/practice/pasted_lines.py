"""Reads tasks as people have them at hand: lines of a task file, or a table with the columns query and answer that was
copied from a spreadsheet or saved as CSV. Every line that is no task is told with its number."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO

from pool_registry.actions import JsonValue
from trainer.tasks.practice.task_book import BookLine, read_lines
from trainer.tasks.verifier import parse_whole_number

MAX_CHARS = 20_000_000
DELIMITERS = ("\t", ";", ",")
FORM = 'write a query and its answer with a tab between them, or {"query": "...", "answer": ...}'
COLUMNS = ("query", "answer", "split")


def read_pasted(text: str, family: str) -> list[BookLine]:
    """The lines as those of a task file. Rows of a table are written as such lines first."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    first = next((line for line in text.split("\n") if line.strip()), "")
    if first.lstrip().startswith("{"):
        return read_lines(text, family)
    header = _find_header(first)
    rows = _read_table(text, *header) if header else _read_pairs(text)
    return [_explain_form(row) for row in read_lines("\n".join(rows), family)]


def _explain_form(row: BookLine) -> BookLine:
    """A line that has none of the forms, with what it should look like."""
    return row if row.raw.startswith("{") else replace(row, problems=(FORM,))


def _find_header(first: str) -> tuple[str, list[str]] | None:
    """The delimiter and the columns where the first line names them."""
    for delimiter in DELIMITERS:
        names = [name.strip().strip('"').casefold() for name in first.split(delimiter)]
        if {"query", "answer"} <= set(names):
            return delimiter, names
    return None


def _read_table(text: str, delimiter: str, names: list[str]) -> Iterator[str]:
    rows = csv.reader(StringIO(text), delimiter=delimiter)
    number = 0
    for row in rows:
        yield from [""] * (rows.line_num - number - 1)  # keeps the lines' numbers where a cell has several lines
        number = rows.line_num
        cells = dict(zip(names, row, strict=False))
        if [cell.strip().casefold() for cell in row] == names or not any(cell.strip() for cell in row):
            yield ""
        else:
            yield _write_line({name: cells.get(name, "") for name in COLUMNS if cells.get(name)})


def _read_pairs(text: str) -> Iterator[str]:
    """Read lines of a query and an answer with a tab between them; others stay as they are, to be reported."""
    for line in text.split("\n"):
        query, tab, answer = line.partition("\t")
        yield _write_line({"query": query, "answer": answer}) if tab else line


def _write_line(cells: dict[str, str]) -> str:
    fields: dict[str, JsonValue] = {name: cell.strip() for name, cell in cells.items()}
    if "answer" in cells:
        fields["answer"] = read_answer(cells["answer"])
    return json.dumps(fields, ensure_ascii=False)


def read_answer(text: str) -> JsonValue:
    """What a person typed as an answer: a number where it is one, else the text."""
    stripped = text.strip()
    number = parse_whole_number(stripped)
    if number is None:
        return stripped
    return int(number) if number.is_integer() and "." not in stripped and abs(number) < 1e15 else number
