"""What jobs have measured, put side by side: reads their results and finds the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.errors import InvalidRecipe, UnknownReference
from trainer.jobs.queue import JobStore
from trainer.results.rows import ResultRow, Slot, read_results
from trainer.results.tables import BREAKDOWNS, ReferenceRows, TableRow, build_table_rows, find_reference


@dataclass(frozen=True, slots=True)
class Comparison:
    """The lines of the tables and what they are compared with."""

    lines: list[TableRow]
    reference: ReferenceRows


def compare_jobs(
    jobs: JobStore, names: Sequence[str], reference: str | None = None, apart: str | None = None
) -> Comparison:
    """The tables of some evaluation jobs; what several of them measured, the last one says.

    Without `reference` it is the one of the last job's recipe, or the first orchestrator. Raises JobNotFound, and
    UnknownReference when nothing was measured, or the reference or `apart` is not to be found.
    """
    if apart is not None and apart not in BREAKDOWNS:
        raise UnknownReference(f"results cannot be taken apart by {apart!r}; use one of: {', '.join(BREAKDOWNS)}")
    rows: dict[Slot, ResultRow] = {}
    for name in names:
        rows |= {row.slot: row for row in read_results(jobs.folder(jobs.get(name).id).results)}
    if not rows:
        raise UnknownReference(f"{', '.join(names)} measured nothing (yet); run an evaluation first")
    wanted = _find_recipe_reference(jobs, names[-1]) if reference is None else reference
    found = find_reference(jobs.folder(names[-1]).path.parent, list(rows.values()), wanted)
    return Comparison(build_table_rows(list(rows.values()), found, apart), found)


def _find_recipe_reference(jobs: JobStore, job: str) -> str:
    try:
        recipe = jobs.recipe(job)
    except (InvalidRecipe, OSError):  # a damaged recipe does not take the results with it
        return ""
    return recipe.evaluate.reference if recipe.evaluate is not None else ""
