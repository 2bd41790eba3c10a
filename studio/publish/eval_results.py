"""The files `.eval_results/*.yaml` of a model repository: scores that the Hub shows on the model's page.

https://huggingface.co/docs/hub/eval-results. A score belongs to a data set of the Hub, so evaluations on tasks from
elsewhere are in the card alone. Held-out tasks on the pool as it is count, as in the card's tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby

import yaml

from pool_registry.storage.data_folder import Home
from pool_registry.text import count_of
from studio.publish.bundle import Entry
from studio.publish.evaluations import HELD_OUT, list_results
from trainer.results.figures import compute_figures
from trainer.results.rows import ResultRow
from trainer.tasks.sources.places import HUB

FOLDER = ".eval_results"
SEEN = "seen"  # the condition of a pool as it is
DEFAULT_TASK = "default"  # of a data set with one configuration
DIGITS = 4


def make_eval_results(home: Home, orchestrator: str, pool: str) -> list[Entry]:
    """The files of every data set of the Hub on which an orchestrator was evaluated; one each."""
    rows = [row for row in list_results(home, orchestrator) if _counts(row)]
    rows.sort(key=lambda row: row.source)
    return [_make_entry(source, list(group), pool) for source, group in groupby(rows, key=lambda row: row.source)]


def _counts(row: ResultRow) -> bool:
    is_one = row.source.startswith(HUB) and " + " not in row.source
    return is_one and row.split == HELD_OUT and row.condition == SEEN


def _make_entry(source: str, rows: Sequence[ResultRow], pool: str) -> Entry:
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    dataset, _, config = source.removeprefix(HUB).partition(":")
    figures = compute_figures(rows)
    last = max(row.at for row in rows)
    entry = EvalResultEntry(
        dataset_id=dataset,
        task_id=config or DEFAULT_TASK,
        value=round(figures.mean.mean, DIGITS),
        date=datetime.fromtimestamp(last, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if last else None,
        notes=", ".join(_list_notes(figures.tasks, rows, pool)),
    )
    content = yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False, allow_unicode=True)
    name = "_".join(filter(None, (dataset.rpartition("/")[2], config)))
    return Entry(f"{FOLDER}/{name}.yaml", content.encode(), f"The score on {dataset}, for the model's page")


def _list_notes(tasks: int, rows: Sequence[ResultRow], pool: str) -> Iterator[str]:
    """What a reader of a score must know of it."""
    yield f"tools: as an orchestrator of the pool {pool} in Podium"
    yield f"share of right answers to {count_of(tasks, 'held-out task')}"
    if any(row.judge for row in rows):
        yield "graded by a model"
