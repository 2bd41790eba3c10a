"""Deletes for good what improvements of pools hold of somebody: their tasks, reports and logs, the choices of workers
that were kept, and the reports that came with promotions."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from pydantic import ValidationError
from sqlalchemy import Connection, select, update
from sqlmodel import col

from orchestrator.choice.own_predictors import OUTCOMES_FILE
from orchestrator.traces.kept_choice import drop_outcomes
from pool_registry.atomic_write import write_atomically
from pool_registry.storage.data_folder import Home
from studio.deployments.store import DeploymentChangeRow
from trainer.results.improvement import FILE, ImprovementReport
from trainer.tasks.practice.task_book import TaskBook
from trainer.tasks.sources.jsonl import SourceRun

Holds = Callable[[bytes], bool]


def list_queries_of(home: Home, is_sent: Callable[[SourceRun], bool]) -> set[str]:
    """The queries of the tasks that were made of the runs that `is_sent` means, as a person may have edited them."""
    files = chain((home.root / "tasks").glob("*.jsonl"), (home.root / "improvements").glob("*/*.jsonl"))
    books = [TaskBook(file) for file in files]
    lines = (row.line for book in books for row in (*book.read(), *book.list_struck()))
    return {line.query for line in lines if line is not None and line.run is not None and is_sent(line.run)}


def forget_improvements(home: Home, holds: Holds, stays: list[str]) -> int:
    """Delete what improvements and kept choices of workers hold; returns how many lines and queries that was, and adds
    to `stays` a sentence for what cannot be taken back."""
    root = home.root / "improvements"
    count = sum(_strike_in_file(file, holds, stays) for file in sorted(root.glob(f"*/{FILE}")))
    count += sum(drop_lines(file, holds) for file in sorted([*root.glob("*.log"), *root.glob("*/*.jsonl")]))
    for file in sorted((home.root / "success-predictors").glob(f"*/*/{OUTCOMES_FILE}")):
        count += (dropped := drop_outcomes(file, holds))
        if dropped and len(list(file.parent.iterdir())) > 1:
            stays.append(f"the success predictor {file.parent} may have learnt from it: improve the pool again")
    return count


def forget_promotions(connection: Connection, holds: Holds) -> None:
    """Strike queries from the reports that came with promotions."""
    key = (col(DeploymentChangeRow.deployment), col(DeploymentChangeRow.number))
    for name, number, report in connection.execute(select(*key, col(DeploymentChangeRow.report))).all():
        if holds(report.encode()):
            changed = update(DeploymentChangeRow).where(key[0] == name, key[1] == number)
            connection.execute(changed.values(report=_strike(report.encode(), holds)))


def drop_lines(path: Path, holds: Holds) -> int:
    """Write a file anew without the lines that hold something; returns how many those were."""
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if not holds(line)]
    if len(kept) < len(lines):
        write_atomically(path, b"".join(kept))
    return len(lines) - len(kept)


def _strike_in_file(file: Path, holds: Holds, stays: list[str]) -> int:
    if not holds(text := file.read_bytes()):
        return 0
    try:
        write_atomically(file, _strike(text, holds))
    except ValidationError:
        stays.append(f"{file} holds some of it and is damaged: delete it")
        return 0
    return 1


def _strike(text: bytes, holds: Holds) -> str:
    """A report without the queries that are meant. Raises ValidationError."""
    report = ImprovementReport.model_validate_json(text)
    worse = tuple(query for query in report.worse if not holds(json.dumps(query).encode()))
    return report.model_copy(update={"worse": worse}).model_dump_json(indent=1)
