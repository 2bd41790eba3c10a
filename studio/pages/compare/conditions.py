"""What holds elsewhere: orchestrators by pool condition and held-out family, and which workers carry the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from studio.pages.compare.results import NoResults, ResultShelf, Selection
from studio.pages.compare.schema import AblationDocument, MatrixCell, MatrixDocument, MatrixRow, WorkerDrop
from studio.pages.compare.suite import SEEN, get_interval, list_choices, summarize_cell
from trainer.results.by_task import estimate_mean, group_by_task
from trainer.results.figures import compute_figures, group_rows
from trainer.results.paired import compute_difference
from trainer.results.rows import ResultRow
from trainer.tasks import is_held_out, list_held_out_families
from trainer.tasks.task_conditions import CONDITIONS

WITHOUT = "without:"
HELD_OUT = "held-out family"
COLUMNS = (*CONDITIONS, HELD_OUT)


def build_matrix(shelf: ResultShelf, selection: Selection) -> MatrixDocument:
    """Build the table of orchestrators by condition, and what each costs on the same tasks. Raises NoResults."""

    def make() -> MatrixDocument:
        apart = group_rows(shelf.rows(selection), "orchestrator")
        return MatrixDocument(
            columns=list(COLUMNS),
            rows=[MatrixRow(orchestrator=name, cells=_build_cells(rows)) for name, rows in apart.items()],
            held_out=list(list_held_out_families()),
            choices=list_choices(shelf, selection.jobs),
        )

    document = shelf.once(("matrix", selection), selection.jobs, make)
    return document.model_copy(update={"judges": shelf.describe_judges(selection)})


def _build_cells(rows: Sequence[ResultRow]) -> dict[str, MatrixCell]:
    parts = {name: part for name in COLUMNS if (part := [row for row in rows if find_column(row) == name])}
    tasks = {name: group_by_task(part, across_conditions=True) for name, part in parts.items()}  # of one condition each
    seen = tasks.get(SEEN)
    cells = {}
    for name, measured in tasks.items():
        cell = MatrixCell(**dict(summarize_cell(measured)))
        if name not in (SEEN, HELD_OUT) and seen:  # a held-out family has other tasks: there is nothing to pair
            against = compute_difference(measured, seen)
            cell = cell.model_copy(update={"change": get_interval(against.difference), "paired": against.tasks})
        cells[name] = cell
    return cells


def find_column(row: ResultRow) -> str:
    """The column that a row counts in: its condition, or the held-out family in the seen pool."""
    return HELD_OUT if row.condition == SEEN and is_held_out(row.family) else row.condition


def build_ablation(shelf: ResultShelf, selection: Selection, orchestrator: str) -> AblationDocument:
    """What an orchestrator loses without each worker, on the same tasks. Raises NoResults."""

    def make() -> AblationDocument:
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
        return AblationDocument(
            orchestrator=chosen,
            ablated=ablated,
            seen=summarize_cell(group_by_task(seen)),
            workers=_list_drops(conditions, seen),
            shares=compute_figures(seen).shares,
            choices=list_choices(shelf, selection.jobs),
        )

    document = shelf.once(("ablation", selection, orchestrator), selection.jobs, make)
    return document.model_copy(update={"judges": shelf.describe_judges(Selection(selection.jobs))})


def _list_drops(conditions: Mapping[str, Sequence[ResultRow]], seen: Sequence[ResultRow]) -> list[WorkerDrop]:
    """List what each set of workers was worth that was switched off, the dearest first."""
    drops = []
    whole = group_by_task(seen, across_conditions=True)
    for condition, rows in conditions.items():
        if not condition.startswith(WITHOUT):
            continue
        tasks = group_by_task(rows, across_conditions=True)
        against = compute_difference(tasks, whole)
        drops.append(
            WorkerDrop(
                without=condition.removeprefix(WITHOUT),
                mean=get_interval(estimate_mean(tasks)),
                change=get_interval(against.difference),
                wins=against.wins,
                losses=against.losses,
                ties=against.ties,
                tasks=against.tasks,
            )
        )
    return sorted(drops, key=lambda drop: (drop.change[0], drop.without))
