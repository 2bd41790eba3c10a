"""What the Compare page's suite view shows: the table with intervals, the Pareto plot, cells, worker use, turns.

Documents only; every figure comes from trainer/results/figures.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.policies.registry import is_untrained
from studio.pages.compare.results import NoResults, ResultShelf, Selection
from studio.pages.compare.schema import (
    CellSummary,
    ChangedTask,
    EqualCost,
    FilterChoices,
    Interval,
    PairedFigures,
    SuiteCell,
    SuiteDocument,
    SuiteRow,
    TaskPage,
)
from trainer.results.by_task import PairKey, Samples, SamplesByTask, estimate_mean, group_by_task
from trainer.results.equal_cost import CostComparison, Results, compare_at_equal_cost, find_hull
from trainer.results.figures import (
    Figures,
    MeanPrice,
    Price,
    compute_grouped_figures,
    find_best_single,
    find_pareto_points,
    group_rows,
)
from trainer.results.paired import (
    DIRECTIONS,
    PairedDifference,
    TaskChange,
    compute_difference,
    describe_change,
    select_tasks,
)
from trainer.results.rows import ResultRow, list_orchestrators
from trainer.results.statistics import Estimate

PAGE = 50
MOST_TURNS = 6
REFERENCES = ("base",)  # the reference when none is chosen, if it was measured
SEEN = "seen"
EVERY = "all"  # conditions
PRICES: tuple[Price, ...] = ("cost", "tokens", "p50_s")
MEAN_PRICES: tuple[MeanPrice, ...] = ("cost", "tokens")


@dataclass(frozen=True, slots=True)
class OrchestratorResults:
    """The results of one orchestrator, independent of what it is compared with."""

    tasks: SamplesByTask
    figures: Figures
    turns: dict[str, float]


def build_suite(shelf: ResultShelf, selection: Selection, reference: str) -> SuiteDocument:
    """The whole view. Raises NoResults or JobNotFound."""

    def make() -> SuiteDocument:
        filtered = choose_condition(shelf, selection)
        parts = group_by_orchestrator(shelf, filtered)
        chosen = choose_reference(parts, reference)
        against = {
            name: compute_difference(part.tasks, parts[chosen].tasks) for name, part in parts.items() if name != chosen
        }
        figures = {name: part.figures for name, part in parts.items()}
        baselines = {name: row for name, row in figures.items() if is_untrained(name)}
        return SuiteDocument(
            reference=chosen,
            condition=filtered.condition or EVERY,
            best_single=find_best_single(figures),
            rows=[_build_row(name, row, against.get(name)) for name, row in figures.items()],
            cells=shelf.once(("cells", filtered), selection.jobs, lambda: _build_cells(parts)),
            pareto={price: find_pareto_points(figures, price) for price in PRICES},
            hull={price: find_hull(baselines, price) for price in MEAN_PRICES},
            equal_cost={price: compare_prices(parts, price) for price in MEAN_PRICES},
            turns={name: part.turns for name, part in parts.items()},
            choices=list_choices(shelf, selection.jobs),
        )

    document = shelf.once(("suite", selection, reference), selection.jobs, make)
    return document.model_copy(update={"judges": shelf.describe_judges(choose_condition(shelf, selection))})


def group_by_orchestrator(shelf: ResultShelf, selection: Selection) -> dict[str, OrchestratorResults]:
    """The rows of a selection by orchestrator, grouped by task and counted once. Raises NoResults."""

    def make() -> dict[str, OrchestratorResults]:
        apart = group_rows(shelf.rows(selection), "orchestrator")
        grouped = {name: group_by_task(rows) for name, rows in apart.items()}
        return {
            name: OrchestratorResults(tasks, compute_grouped_figures(tasks), _turns(apart[name]))
            for name, tasks in grouped.items()
        }

    return shelf.once(("parts", selection), selection.jobs, make)


def compare_prices(parts: Mapping[str, OrchestratorResults], price: MeanPrice) -> dict[str, EqualCost]:
    """Each orchestrator against the mixture of baselines that costs as much."""
    results = {name: Results(part.tasks, part.figures) for name, part in parts.items()}
    compared = compare_at_equal_cost(results, price, list(filter(is_untrained, parts)))
    return {name: _build_equal_cost(comparison) for name, comparison in compared.items()}


def build_task_page(
    shelf: ResultShelf, selection: Selection, reference: str, orchestrator: str, which: str, first: int
) -> TaskPage:
    """One page of the tasks that an orchestrator improved, regressed or left equal. Raises NoResults."""
    direction = next((name for name in DIRECTIONS if name == which), None)
    if direction is None:
        raise NoResults(f"Tasks are {', '.join(DIRECTIONS)}, not {which!r}.")
    parts = group_by_orchestrator(shelf, choose_condition(shelf, selection))
    chosen = choose_reference(parts, reference)
    if orchestrator not in parts:
        raise NoResults(f"{orchestrator} was not evaluated here; there are: {', '.join(parts)}.")
    mine, theirs = parts[orchestrator].tasks, parts[chosen].tasks
    selected = select_tasks(direction, mine, theirs)
    ordered = sorted(selected, key=lambda unit: -abs(mine[unit].score - theirs[unit].score))
    return TaskPage(
        orchestrator=orchestrator,
        reference=chosen,
        which=direction,
        of=len(ordered),
        first=first,
        tasks=[_build_task(describe_change(unit, mine, theirs)) for unit in ordered[first : first + PAGE]],
    )


def choose_condition(shelf: ResultShelf, selection: Selection) -> Selection:
    """The selection with the seen pool where no condition was asked for; EVERY mixes all of them."""
    if selection.condition:
        return replace(selection, condition="") if selection.condition == EVERY else selection
    measured = list_choices(shelf, selection.jobs).conditions
    return replace(selection, condition=SEEN if SEEN in measured else "")


def choose_reference(names: Mapping[str, object], choice: str) -> str:
    """The orchestrator that the others are compared with: the chosen one, a usual one, or the first."""
    return next((name for name in (choice, *REFERENCES) if name in names), next(iter(names)))


def list_choices(shelf: ResultShelf, jobs: tuple[str, ...]) -> FilterChoices:
    """What the filters can be set to."""

    def make() -> FilterChoices:
        rows = shelf.rows(Selection(jobs))
        return FilterChoices(
            orchestrators=list_orchestrators(rows),
            conditions=list(dict.fromkeys(row.condition for row in rows)),
            families=sorted({row.family for row in rows}),
            levels=sorted({row.level for row in rows}),
        )

    return shelf.once("choices", jobs, make)


def get_interval(value: Estimate) -> Interval:
    """Return (mean, low, high)."""
    return value.mean, value.low, value.high


def _build_row(name: str, figures: Figures, against: PairedDifference | None) -> SuiteRow:
    intervals = {key: get_interval(getattr(figures, key)) for key in ("mean", "pass_at_k", "pass_all_k")}
    paired = _build_paired(against) if against else None
    return SuiteRow.model_validate({**dict(figures), **intervals, "orchestrator": name, "paired": paired})


def _build_paired(difference: PairedDifference) -> PairedFigures:
    return PairedFigures(
        difference=get_interval(difference.difference),
        wins=difference.wins,
        losses=difference.losses,
        ties=difference.ties,
        tasks=difference.tasks,
        unpaired=difference.unpaired,
        p=difference.p,
    )


def _build_equal_cost(comparison: CostComparison) -> EqualCost:
    return EqualCost(shares=comparison.shares, difference=get_interval(comparison.difference), tasks=comparison.tasks)


def _build_cells(parts: Mapping[str, OrchestratorResults]) -> list[SuiteCell]:
    """The mean of every orchestrator by family and level."""
    cells: dict[tuple[str, int], dict[str, dict[PairKey, Samples]]] = {}
    for name, part in parts.items():
        for unit, samples in part.tasks.items():
            place = cells.setdefault((unit.task.family, unit.task.level), {})
            place.setdefault(name, {})[unit] = samples
    return [
        SuiteCell(
            family=family,
            level=level,
            by={name: summarize_cell(tasks) for name, tasks in by_orchestrator.items()},
        )
        for (family, level), by_orchestrator in sorted(cells.items())
    ]


def summarize_cell(tasks: SamplesByTask) -> CellSummary:
    """Summarize tasks: their mean with its interval, and how many tasks and episodes they are."""
    return CellSummary(
        mean=get_interval(estimate_mean(tasks)),
        tasks=len({unit.task for unit in tasks}),
        episodes=sum(len(samples.rows) for samples in tasks.values()),
    )


def _turns(rows: Sequence[ResultRow]) -> dict[str, float]:
    """The share of episodes by their number of turns; the last entry holds all longer ones."""
    counts = Counter(min(row.turns, MOST_TURNS) for row in rows)
    return {str(number): counts[number] / len(rows) for number in sorted(counts)}


def _build_task(change: TaskChange) -> ChangedTask:
    key = change.task
    return ChangedTask(
        source=key.source,
        family=key.family,
        level=key.level,
        split=key.split,
        index=key.index,
        condition=change.condition,
        query=change.query[:400],
        score=change.score,
        reference_score=change.reference_score,
        episodes=list(change.episodes),
        reference_episodes=list(change.reference_episodes),
    )
