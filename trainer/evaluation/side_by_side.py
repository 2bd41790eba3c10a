"""Puts the results of several evaluation jobs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.errors import InvalidRecipe, UnknownReference
from trainer.jobs.queue import JobStore
from trainer.results.judge_agreement import describe_judges, list_judges
from trainer.results.rows import ResultRow, Slot, read_results
from trainer.results.tables import BREAKDOWNS, ReferenceRows, TableRow, build_table_rows, find_reference


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows of the tables, the orchestrator that they are compared with, and a sentence about each judge."""

    rows: list[TableRow]
    reference: ReferenceRows
    judges: list[str]


def compare_jobs(
    jobs: JobStore, names: Sequence[str], reference: str | None = None, breakdown: str | None = None
) -> Comparison:
    """Compare the results of evaluation jobs. Where several measured the same episode slot, the last job counts.

    Without `reference` the one of the last job's recipe is used, or the first orchestrator. `breakdown` is one of
    BREAKDOWNS. Raises JobNotFound, and UnknownReference when there are no results, or no such reference or breakdown.
    """
    if breakdown is not None and breakdown not in BREAKDOWNS:
        raise UnknownReference(f"results cannot be broken down by {breakdown!r}; use one of: {', '.join(BREAKDOWNS)}")
    rows: dict[Slot, ResultRow] = {}
    for name in names:
        rows |= {row.slot: row for row in read_results(jobs.folder(jobs.get(name).id).results)}
    if not rows:
        raise UnknownReference(f"{', '.join(names)} measured nothing (yet); run an evaluation first")
    results = list(rows.values())
    name = _read_recipe_reference(jobs, names[-1]) if reference is None else reference
    against = find_reference(jobs.folder(names[-1]).path.parent, results, name)
    judges = describe_judges(list_judges([*results, *against.rows]))
    return Comparison(build_table_rows(results, against, breakdown), against, judges)


def _read_recipe_reference(jobs: JobStore, job: str) -> str:
    try:
        recipe = jobs.recipe(job)
    except (InvalidRecipe, OSError):  # results stay readable when the recipe is damaged
        return ""
    return recipe.evaluate.reference if recipe.evaluate is not None else ""
