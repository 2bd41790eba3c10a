"""What the Compare page's suite view shows: the table with intervals, the Pareto plot, cells, worker use, turns.

Documents only; every figure comes from trainer/comparison.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from studio.compare_results import NoResults, ResultShelf, Selection
from trainer.comparison import Figures, Paired, TaskChange, best_single, figures, mean_at_k, paired, pareto, split
from trainer.results import ResultRow, orchestrators_in
from trainer.statistics import Estimate

PAGE = 50
MOST_TURNS = 6
REFERENCES = ("base",)  # who is compared with when nobody is chosen, if it was measured
SEEN = "seen"
EVERY = "all"  # conditions
SHOWN = (
    "tasks", "episodes", "k", "valid_turns", "statuses", "recovery", "failed_episodes", "outcomes", "cost",
    "cost_per_episode", "tokens_per_episode", "p50_s", "p95_s", "speedup", "turns", "steps", "depth", "width",
    "access_precision", "access_recall", "matched", "extra_steps", "extra_depth", "entropy", "shares",
)  # fmt: skip
WHICH = ("improved", "regressed", "equal")


def suite_document(shelf: ResultShelf, selection: Selection, reference: str) -> dict[str, Any]:
    """The whole view. Raises NoResults or JobNotFound."""

    def make() -> dict[str, Any]:
        everything = shelf.rows(Selection(selection.jobs))
        wanted = in_a_condition(selection, everything)
        parts = split(shelf.rows(wanted), "orchestrator")
        chosen = chosen_reference(parts, reference)
        against = {name: paired(part, parts[chosen]) for name, part in parts.items() if name != chosen}
        found, cells = shelf.once(("parts", wanted), selection.jobs, lambda: (_figures(parts), _cells(parts)))
        return {
            "ok": True,
            "reference": chosen,
            "condition": wanted.condition or EVERY,
            "best_single": best_single(found),
            "rows": [_line(name, each, against.get(name)) for name, each in found.items()],
            "cells": cells,
            "pareto": {
                price: [point.model_dump() for point in pareto(found, price)] for price in ("cost", "tokens", "p50_s")
            },
            "turns": {name: _turns(part) for name, part in parts.items()},
            "choices": choices(everything),
        }

    return shelf.once(("suite", selection, reference), selection.jobs, make)


def task_document(
    shelf: ResultShelf, selection: Selection, reference: str, orchestrator: str, which: str, first: int
) -> dict[str, Any]:
    """One page of the tasks that an orchestrator improved, regressed or left equal. Raises NoResults."""
    if which not in WHICH:
        raise NoResults(f"Tasks are {', '.join(WHICH)}, not {which!r}.")

    def make() -> tuple[str, Paired]:
        wanted = in_a_condition(selection, shelf.rows(Selection(selection.jobs)))
        parts = split(shelf.rows(wanted), "orchestrator")
        chosen = chosen_reference(parts, reference)
        if orchestrator not in parts:
            raise NoResults(f"{orchestrator} was not evaluated here; there are: {', '.join(parts)}.")
        return chosen, paired(parts[orchestrator], parts[chosen])

    chosen, found = shelf.once(("tasks", selection, reference, orchestrator), selection.jobs, make)
    changes: Sequence[TaskChange] = getattr(found, which)
    ordered = sorted(changes, key=lambda change: -abs(change.score - change.reference_score))
    return {
        "ok": True,
        "orchestrator": orchestrator,
        "reference": chosen,
        "which": which,
        "of": len(ordered),
        "first": first,
        "tasks": [_task(change) for change in ordered[first : first + PAGE]],
    }


def in_a_condition(selection: Selection, rows: Sequence[ResultRow]) -> Selection:
    """The selection with the seen pool where no condition was asked for; EVERY mixes all of them."""
    usual = SEEN if any(row.condition == SEEN for row in rows) else ""
    return replace(selection, condition="" if selection.condition == EVERY else selection.condition or usual)


def chosen_reference(names: Mapping[str, Any], asked: str) -> str:
    """Who the others are compared with: the asked one, a usual one, or the first."""
    return next((name for name in (asked, *REFERENCES) if name in names), next(iter(names)))


def choices(rows: Sequence[ResultRow]) -> dict[str, Any]:
    """What the filters can be set to."""
    return {
        "orchestrators": orchestrators_in(rows),
        "conditions": list(dict.fromkeys(row.condition for row in rows)),
        "families": sorted({row.family for row in rows}),
        "levels": sorted({row.level for row in rows}),
    }


def estimate(found: Estimate) -> list[float]:
    """Mean, low, high."""
    return [found.mean, found.low, found.high]


def _figures(parts: Mapping[str, Sequence[ResultRow]]) -> dict[str, Figures]:
    return {name: figures(part) for name, part in parts.items()}


def _line(name: str, found: Figures, against: Paired | None) -> dict[str, Any]:
    whole = found.model_dump(mode="json")
    return {
        "orchestrator": name,
        "mean": estimate(found.mean),
        "pass_at_k": estimate(found.pass_at_k),
        "pass_all_k": estimate(found.pass_all_k),
        **{key: whole[key] for key in SHOWN},
        "paired": _paired(against) if against else None,
    }


def _paired(found: Paired) -> dict[str, Any]:
    return {
        "difference": estimate(found.difference),
        "wins": found.wins,
        "losses": found.losses,
        "ties": found.ties,
        "tasks": found.tasks,
        "unpaired": found.unpaired,
        "p": found.p,
    }


def _cells(parts: Mapping[str, Sequence[ResultRow]]) -> list[dict[str, Any]]:
    """The mean of every orchestrator by family and level."""
    cells: dict[tuple[str, int], dict[str, list[ResultRow]]] = {}
    for name, part in parts.items():
        for row in part:
            cells.setdefault((row.family, row.level), {}).setdefault(name, []).append(row)
    return [
        {
            "family": family,
            "level": level,
            "by": {name: cell(rows) for name, rows in found.items()},
        }
        for (family, level), found in sorted(cells.items())
    ]


def cell(rows: Sequence[ResultRow]) -> dict[str, Any]:
    """Mean with interval, and of how many tasks and episodes."""
    return {"mean": estimate(mean_at_k(rows)), "tasks": len({row.task_key for row in rows}), "episodes": len(rows)}


def _turns(rows: Sequence[ResultRow]) -> dict[str, float]:
    """The share of episodes by their number of turns; the last entry holds all longer ones."""
    counts = Counter(min(row.turns, MOST_TURNS) for row in rows)
    return {str(number): counts[number] / len(rows) for number in sorted(counts)}


def _task(change: TaskChange) -> dict[str, Any]:
    key = change.task
    return {
        "source": key.source,
        "family": key.family,
        "level": key.level,
        "split": key.split,
        "index": key.index,
        "condition": change.condition,
        "query": change.query[:400],
        "score": change.score,
        "reference_score": change.reference_score,
        "episodes": list(change.episodes),
        "reference_episodes": list(change.reference_episodes),
    }
