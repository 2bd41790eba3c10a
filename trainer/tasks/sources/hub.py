"""Data sets of questions and answers from the Hugging Face Hub, or a folder in that form.

The columns are found by their usual names. A split that the data set lacks is cut out of its largest part by the
hash of the query, so that training never sees what is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pool_registry.actions import clean_text
from trainer.errors import UnusableTasks
from trainer.tasks.sources.files.cells import SPLIT_VALUES, write_fields
from trainer.tasks.sources.files.columns import REMEDY, ColumnChooser, Columns
from trainer.tasks.sources.files.reader import ReadOptions, ReadTasks, parse_rows
from trainer.tasks.sources.files.rows import Row, Rows
from trainer.tasks.sources.jsonl import TaskLine, make_task
from trainer.tasks.suite import SPLITS, assign_split
from trainer.tasks.task import Task, normalize_query

MAX_ROWS = 500_000
MAX_LINES = 20_000  # of a data set that become lines of a task file
SPLIT = "split"


def load_hub(address: str) -> list[Task]:
    """The tasks of OWNER/NAME or OWNER/NAME:CONFIG. Raises UnusableTasks saying what to do."""
    name, parts = _load_parts(address)
    tasks = _read_tasks(name, parts)
    if not tasks:
        raise UnusableTasks(f"no row of {name} has a question and an answer that can be graded; convert it to JSONL")
    return tasks


def read_hub(address: str, options: ReadOptions, remedy: str = REMEDY) -> ReadTasks:
    """The rows of OWNER/NAME or OWNER/NAME:CONFIG as lines of a task file: `MAX_LINES` at most, a share of every part.

    Raises UnusableTasks saying what to do, and UnclearColumns, which says the `remedy`."""
    name, rows = open_hub(address)
    chooser = ColumnChooser(f"the data set {name}", options.query_column, options.answer_column, remedy=remedy)
    return parse_rows(rows, chooser, _name_family(name))


def open_hub(address: str) -> tuple[str, Rows]:
    """The name of OWNER/NAME or OWNER/NAME:CONFIG, and its rows: `MAX_LINES` at most, a share of every part. Raises
    UnusableTasks saying what to do."""
    name, parts = _load_parts(address)
    # What is in two parts belongs to the one that measures, so that comes first.
    splits = [part for split in reversed(SPLITS) for part in parts if SPLIT_VALUES.get(part) == split]
    used = splits or list(parts)[:1]
    total = sum(len(parts[part]) for part in used)
    share = min(1.0, MAX_LINES / max(1, total))
    columns = tuple(parts[used[0]].column_names)
    # A data set of one part says nothing of splits: then the hash of a query decides.
    has_splits = len(used) > 1
    form = f"the data set {name}" + (f", {MAX_LINES:,} of its {total:,} rows" if share < 1 else "")
    rows = _list_rows(parts, used, share, has_splits)
    listed = (*columns, *({SPLIT} - set(columns) if has_splits else ()))
    return name, Rows(form, rows, listed, "row")


def _list_rows(parts: Mapping[str, Any], used: Sequence[str], share: float, has_splits: bool) -> Iterator[Row]:
    number = 0
    for part in used:
        rows = parts[part]
        for record in rows.select(range(int(len(rows) * share))):
            number += 1
            yield Row(number, {**record, SPLIT: SPLIT_VALUES[part]} if has_splits else record)


def _load_parts(address: str) -> tuple[str, Mapping[str, Any]]:
    """The name of a data set, and its parts by name. Raises UnusableTasks."""
    try:
        import datasets
    except ImportError as error:
        raise UnusableTasks(
            f"datasets cannot be imported ({error}); run: pip install datasets (or 'podium-studio[tasks]')"
        ) from error
    name, _, config = address.partition(":")
    if not name:
        raise UnusableTasks("name the data set, as in hub:openai/gsm8k:main")
    try:
        parts: Mapping[str, Any] = datasets.load_dataset(name, config or None)
    except Exception as error:  # network, cache, file formats: each has its own
        lines = clean_text(str(error)).splitlines() or [type(error).__name__]
        raise UnusableTasks(
            f"the data set {name} cannot be loaded: {' '.join(lines[:2])[:300]}. Check its name, its configuration "
            "(hub:OWNER/NAME:CONFIG) and the network"
        ) from error
    return name, parts


def _read_tasks(name: str, parts: Mapping[str, Any]) -> list[Task]:
    family = _name_family(name)
    chooser = ColumnChooser(name, takes_first=True, remedy="rename it, or convert the data set to a file of tasks")
    rows = {SPLIT_VALUES.get(part, part): part for part in parts}
    there = [split for split in SPLITS if split in rows] or list(rows)[:1]
    missing = [split for split in SPLITS if split not in there]
    giver = max(there, key=lambda split: len(parts[rows[split]]))
    tasks: dict[str, Task] = {}
    for split in reversed(there):  # what is in two parts belongs to the one that measures
        part = parts[rows[split]]
        columns = replace(chooser.choose(part.column_names), split="")
        for index, row in enumerate(_take_rows(part)):
            task = _read_task(row, columns, family, index)
            key = normalize_query(task.query) if task else ""
            if task is None or key in tasks:
                continue
            owner = assign_split(key) if split == giver else split
            tasks[key] = replace(task, ref=replace(task.ref, split=owner if owner in missing else split))
    return list(tasks.values())


def _name_family(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]


def _read_task(row: Mapping[str, Any], columns: Columns, family: str, index: int) -> Task | None:
    """The task of a row, or None where it has no question, or no answer that can be graded."""
    try:
        return make_task(TaskLine.model_validate(write_fields(row, columns)), family, index)
    except ValueError:
        return None


def _take_rows(part: Any) -> Iterable[Mapping[str, Any]]:
    rows: Iterable[Mapping[str, Any]] = part.select(range(min(len(part), MAX_ROWS)))
    return rows
