"""The formats that tasks come in: each reader in FORMATS gives the rows of a source, or None where it is of another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from io import BytesIO
from itertools import islice
from typing import Any

from pool_registry.actions import clean_text
from trainer.errors import UnusableTasks
from trainer.tasks.sources.files.columns import is_known
from trainer.tasks.sources.files.kinds import PARQUET
from trainer.tasks.sources.files.rows import Row, Rows, Source
from trainer.tasks.sources.files.tables import read_pairs, read_table
from trainer.tasks.sources.jsonl import TaskLine

NO_OBJECT = 'give an object such as {"question": "...", "answer": ...}'
TOO_DEEP = "this is nested too deep"
CLOSE = 0.75  # how like a field a misspelt one is: 1 is equal
SAMPLE_OBJECTS = 1000  # that show which fields objects have
MAX_PARQUET_ROWS = 1_000_000
MAX_PARQUET_BYTES = 500_000_000  # of the columns of tasks, decoded
BATCH_ROWS = 256  # that are decoded at a time


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
    unused = () if source.takes_all else source.chooser.choose(columns).list_unused(columns)
    names = [name for name in columns if name not in unused]
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
    text = source.decoded_text.text
    start = text.lstrip()[:1]
    if start not in ("[", "{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if start == "[" and text.lstrip()[1:].lstrip().startswith("{"):
            raise UnusableTasks(f"{source.name} is no JSON list ({error}); mend it there") from error
        return None
    items = list(_unfold_articles(value if isinstance(value, list) else _find_items(value)))
    if not items or (items == [value] and "\n" not in text.strip()):
        return None  # one object on one line is JSONL
    columns = _list_columns(item for item in items if isinstance(item, dict))
    numbers = enumerate(items, 1)
    if _are_tasks(items):
        return Rows("JSON", (_write_task(k, item) for k, item in numbers), unit="item")
    return Rows("JSON", (_read_object(k, item) for k, item in numbers), columns, "item")


def read_json_lines(source: Source) -> Rows | None:
    """Objects, one a line. Lines of a task file stay as they are."""
    text = source.decoded_text.text
    if not text.lstrip().startswith("{"):
        return None
    lines = [(k, line.rstrip("\r")) for k, line in enumerate(text.split("\n"), 1) if line.strip()]
    sample = [_parse(line) for _, line in lines[:SAMPLE_OBJECTS]]
    objects = [value for value in sample if isinstance(value, dict)]
    if _are_tasks(sample) or not objects:
        return Rows("JSONL", (Row(k, raw=line) for k, line in lines))
    return Rows("JSONL", (_read_object(k, _parse(line)) for k, line in lines), _list_columns(objects))


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
    return any(
        isinstance(value, dict) and value.get("query") is not None and all(map(_is_field, value)) for value in values
    )


def _is_field(name: str) -> bool:
    fields = TaskLine.model_fields
    return name in fields or (not is_known(name) and bool(get_close_matches(name, fields, 1, CLOSE)))


def _find_items(value: Any) -> list[Any]:
    """The one list of objects in an object that is no row itself, else the object as the only item."""
    if not isinstance(value, dict):
        return []
    lists = [part for part in value.values() if isinstance(part, list) and any(isinstance(item, dict) for item in part)]
    return lists[0] if len(lists) == 1 and not any(map(is_known, value)) else [value]


def _unfold_articles(items: list[Any]) -> Iterator[Any]:
    """The items; in place of an article of SQuAD its questions, each with the paragraph that it is about."""
    for item in items:
        paragraphs = item.get("paragraphs") if isinstance(item, dict) else None
        if not isinstance(paragraphs, list) or not all(isinstance(part, dict) for part in paragraphs):
            yield item
            continue
        for paragraph in paragraphs:
            questions = paragraph.get("qas")
            for row in questions if isinstance(questions, list) else ():
                yield {"context": paragraph.get("context"), **_join_answers(row)} if isinstance(row, dict) else row


def _join_answers(row: dict[str, Any]) -> dict[str, Any]:
    """A question of SQuAD with its answers as the Hub's tables hold them, {"text": [...]}."""
    answers = row.get("answers")
    texts = [part.get("text") for part in answers if isinstance(part, dict)] if isinstance(answers, list) else answers
    return row | {"answers": {"text": texts}}


def _list_columns(objects: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The fields of the first objects, without names that are no text."""
    names = dict.fromkeys(name for row in islice(objects, SAMPLE_OBJECTS) for name in row)
    return tuple(name for name in names if clean_text(name) == name)


def _read_object(number: int, value: object) -> Row:
    return Row(number, value) if isinstance(value, dict) else Row(number, problem=NO_OBJECT)


def _write_task(number: int, value: object) -> Row:
    """An item of a list as a line of a task file."""
    try:
        return Row(number, raw=json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return Row(number, problem=TOO_DEEP)


def _parse(line: str) -> object:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value
