"""Reads tasks as people have them at hand: lines of a task file, a JSON list of them, or a table with the columns query
and answer that was copied from a spreadsheet or saved as CSV.

Every line that is no task is told with its number. What is no text, and what hardly a line of is a task, is refused as
a whole.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

from pool_registry.actions import JsonValue
from pool_registry.text import shorten
from trainer.errors import UnusableTasks
from trainer.tasks.practice.task_book import BookLine, read_lines
from trainer.tasks.practice.text_files import ACCEPTED, check_text, read_text_file
from trainer.tasks.sources.jsonl import TaskLine
from trainer.tasks.verifier import parse_whole_number

MAX_CHARS = 20_000_000
DELIMITERS = ("\t", ";", ",")
FORM = 'write a query and its answer with a tab between them, or {"query": "...", "answer": ...}'
COLUMNS = ("query", "answer", "split")
LISTED_PROBLEMS = 20  # more wrong lines than right ones, and more than these, are no list of tasks with slips in it
MAX_FIELDS = 8


def read_tasks(text: str, name: str, family: str) -> list[BookLine]:
    """The lines of what `name` holds, most of which are tasks, or which are few. Raises UnusableTasks."""
    check_text(text, name)
    rows = read_pasted(text, family)
    wrong = sum(row.task is None for row in rows)
    if wrong > LISTED_PROBLEMS and 2 * wrong > len(rows):
        raise UnusableTasks(
            f"{wrong:,} of {len(rows):,} lines of {name} are no task ({_describe(text, rows)}); {ACCEPTED}"
        )
    return rows


def require_tasks(rows: list[BookLine], text: str, name: str) -> list[TaskLine]:
    """The tasks among lines. Raises UnusableTasks where there is none, saying what the text seems to be."""
    lines = [row.line for row in rows if row.task is not None and row.line is not None]
    if not lines:
        raise UnusableTasks(f"no line of {name} is a task ({_describe(text, rows)}); {ACCEPTED}")
    return lines


def count_tasks(file: Path) -> int:
    """How many tasks a file holds in any of the forms that people have them in."""
    return sum(row.task is not None for row in read_pasted(read_text_file(file), file.stem))


def read_pasted(text: str, family: str) -> list[BookLine]:
    """The lines as those of a task file. Rows of a table, and items of a JSON list, are written as such lines first."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    first = next((line for line in text.split("\n") if line.strip()), "")
    items = _read_json_list(text) if first.lstrip().startswith("[") else None
    if items is not None:
        return read_lines("\n".join(json.dumps(item, ensure_ascii=False) for item in items), family)
    if first.lstrip().startswith("{"):
        return read_lines(text, family)
    header = _find_header(first)
    rows = _read_table(text, *header) if header else _read_pairs(text)
    return [_explain_form(row) for row in read_lines("\n".join(rows), family)]


def _read_json_list(text: str) -> list[JsonValue] | None:
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return items if isinstance(items, list) and items else None


def _describe(text: str, rows: list[BookLine]) -> str:
    """What a text without tasks seems to be: objects with other fields, or lines that begin otherwise."""
    problem = next((row for row in rows if row.problems), None)
    if problem is None:
        return "it is empty"
    items = _read_json_list(text) or [_read_json(problem.raw)]
    if isinstance(items[0], dict) and not {"query", "answer"} <= set(items[0]):
        return f"its objects have the fields {', '.join(map(str, list(items[0])[:MAX_FIELDS]))}"
    return f"line {problem.number}, {shorten(problem.raw.strip(), 60)!r}: {problem.problems[0]}"


def _read_json(raw: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value


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
