"""Data sets of questions and answers from the Hugging Face Hub, or a folder in that form.

The columns are found by their usual names. A split that the data set lacks is cut out of its largest part by the
hash of the query, so that training never sees what is measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.engine.events import TaskRef
from pool_registry.actions import as_text, clean_text
from trainer.errors import UnusableTasks
from trainer.tasks.sources.jsonl import MAX_QUERY_CHARS, TOLERANCE
from trainer.tasks.suite import SPLITS, assign_split
from trainer.tasks.task import Task, normalize_query
from trainer.tasks.verifier import AnyVerifier, ExactText, NumberWithin, OneOf, parse_whole_number

MAX_ROWS = 500_000
QUERY_COLUMNS = ("question", "query", "problem")
ANSWER_COLUMNS = ("answer", "solution")
_SPLIT_NAMES = {"valid": "validation", "val": "validation", "dev": "validation"}
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")


def load_hub(address: str) -> list[Task]:
    """The tasks of OWNER/NAME or OWNER/NAME:CONFIG. Raises UnusableTasks saying what to do."""
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
        parts = datasets.load_dataset(name, config or None)
    except Exception as error:  # network, cache, file formats: each has its own
        lines = clean_text(str(error)).splitlines() or [type(error).__name__]
        raise UnusableTasks(
            f"the data set {name} cannot be loaded: {lines[0][:300]}. Check its name, its configuration "
            "(hub:OWNER/NAME:CONFIG) and the network"
        ) from error
    tasks = _read_tasks(name.rstrip("/").rpartition("/")[2], parts)
    if not tasks:
        raise UnusableTasks(f"no row of {name} has a question and an answer that can be graded; convert it to JSONL")
    return tasks


def _read_tasks(family: str, parts: Mapping[str, Any]) -> list[Task]:
    rows = {_SPLIT_NAMES.get(part, part): part for part in parts}
    there = [split for split in SPLITS if split in rows] or list(rows)[:1]
    missing = [split for split in SPLITS if split not in there]
    giver = max(there, key=lambda split: len(parts[rows[split]]))
    tasks: dict[str, Task] = {}
    for split in reversed(there):  # what is in two parts belongs to the one that measures
        part = parts[rows[split]]
        query, answer = _find_columns(part.column_names)
        for index, row in enumerate(_take_rows(part)):
            question, verifier = clean_text(str(row[query] or "")), guess_verifier(row[answer])
            key = normalize_query(question)
            if verifier is None or not key or len(question) > MAX_QUERY_CHARS or key in tasks:
                continue
            owner = assign_split(key) if split == giver else split
            tasks[key] = Task(TaskRef(family, 0, owner if owner in missing else split, index), question, verifier)
    return list(tasks.values())


def guess_verifier(answer: object) -> AnyVerifier | None:
    """How to grade against the answer of a row: what follows `####` or is boxed, as a number where it is one."""
    if isinstance(answer, list) and answer and all(isinstance(item, str) and item.strip() for item in answer):
        return OneOf(tuple(answer))
    if not isinstance(answer, str | int | float):
        return None
    text = clean_text(as_text(answer))
    boxed = _BOXED.findall(text)
    text = (text.rpartition("####")[2] if "####" in text else boxed[-1] if boxed else text).strip()
    number = parse_whole_number(text)
    return NumberWithin(number, TOLERANCE) if number is not None else ExactText(text) if text else None


def _find_columns(names: Sequence[str]) -> tuple[str, str]:
    lower = {name.lower(): name for name in names}
    query = next((lower[name] for name in QUERY_COLUMNS if name in lower), None)
    answer = next((lower[name] for name in ANSWER_COLUMNS if name in lower), None)
    if query is None or answer is None:
        raise UnusableTasks(
            f"the data set has the columns {', '.join(names)}; it needs one of {', '.join(QUERY_COLUMNS)} and one of "
            f"{', '.join(ANSWER_COLUMNS)}. Rename them, or convert it to JSONL"
        )
    return query, answer


def _take_rows(part: Any) -> Iterable[Mapping[str, Any]]:
    rows: Iterable[Mapping[str, Any]] = part.select(range(min(len(part), MAX_ROWS)))
    return rows
