"""What holds elsewhere: orchestrators by pool condition and held-out family, and which workers carry the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studio.pages.compare.results import NoResults, ResultShelf, Selection
from studio.pages.compare.suite import SEEN, list_choices, list_estimate, summarize_cell
from trainer.results.by_task import estimate_mean, group_by_task
from trainer.results.figures import compute_figures, group_rows
from trainer.results.paired import compute_difference
from trainer.results.rows import ResultRow
from trainer.tasks import is_held_out, list_held_out_families
from trainer.tasks.task_conditions import CONDITIONS

WITHOUT = "without:"
HELD_OUT = "held-out family"
COLUMNS = (*CONDITIONS, HELD_OUT)


def build_matrix(shelf: ResultShelf, selection: Selection) -> dict[str, Any]:
    """Orchestrators x conditions, and what each condition costs on the same tasks. Raises NoResults."""

    def make() -> dict[str, Any]:
        rows = shelf.rows(selection)
        return {
            "ok": True,
            "columns": list(COLUMNS),
            "rows": [
                {"orchestrator": name, "cells": _cells(part)} for name, part in group_rows(rows, "orchestrator").items()
            ],
            "held_out": list_held_out_families(),
            "choices": list_choices(shelf, selection.jobs),
        }

    return shelf.once(("matrix", selection), selection.jobs, make)


def _cells(rows: Sequence[ResultRow]) -> dict[str, dict[str, Any]]:
    parts = {name: part for name in COLUMNS if (part := [row for row in rows if find_column(row) == name])}
    tasks = {name: group_by_task(part, across_conditions=True) for name, part in parts.items()}  # of one condition each
    seen = tasks.get(SEEN)
    cells = {}
    for name, measured in tasks.items():
        cells[name] = summarize_cell(measured)
        if name not in (SEEN, HELD_OUT) and seen:  # a held-out family has other tasks: there is nothing to pair
            against = compute_difference(measured, seen)
            cells[name] |= {"change": list_estimate(against.difference), "paired": against.tasks}
    return cells


def find_column(row: ResultRow) -> str:
    """The column that a row counts in: its condition, or the held-out family in the seen pool."""
    return HELD_OUT if row.condition == SEEN and is_held_out(row.family) else row.condition


def build_ablation(shelf: ResultShelf, selection: Selection, orchestrator: str) -> dict[str, Any]:
    """What an orchestrator loses without each worker, on the same tasks. Raises NoResults."""

    def make() -> dict[str, Any]:
        everything = shelf.rows(Selection(selection.jobs))
        parts = group_rows(everything, "orchestrator")
        ablated = [name for name, part in parts.items() if any(row.condition.startswith(WITHOUT) for row in part)]
        chosen = next((name for name in (orchestrator, *ablated) if name in parts), next(iter(parts)))
        rows = [row for row in parts[chosen] if Selection(family=selection.family, level=selection.level).holds(row)]
        conditions = group_rows(rows, "condition")
        seen = conditions.get(SEEN, [])
        if not seen:
            raise NoResults(
                f"{chosen} was not measured in the seen pool: there is nothing to compare an ablation with."
            )
        return {
            "ok": True,
            "orchestrator": chosen,
            "ablated": ablated,
            "seen": summarize_cell(group_by_task(seen)),
            "workers": _drops(conditions, seen),
            "shares": compute_figures(seen).shares,
            "choices": list_choices(shelf, selection.jobs),
        }

    return shelf.once(("ablation", selection, orchestrator), selection.jobs, make)


def _drops(conditions: Mapping[str, Sequence[ResultRow]], seen: Sequence[ResultRow]) -> list[dict[str, Any]]:
    """Each set of workers that was switched off, the dearest first."""
    drops = []
    whole = group_by_task(seen, across_conditions=True)
    for condition, rows in conditions.items():
        if not condition.startswith(WITHOUT):
            continue
        tasks = group_by_task(rows, across_conditions=True)
        against = compute_difference(tasks, whole)
        drops.append(
            {
                "without": condition.removeprefix(WITHOUT),
                "mean": list_estimate(estimate_mean(tasks)),
                "change": list_estimate(against.difference),
                "wins": against.wins,
                "losses": against.losses,
                "ties": against.ties,
                "tasks": against.tasks,
            }
        )
    return sorted(drops, key=lambda drop: (drop["change"][0], drop["without"]))
