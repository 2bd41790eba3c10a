"""Evaluations as tables: for a terminal, a model card (Markdown), a spreadsheet (CSV) and programs (JSON).

A row is one orchestrator in one condition (and in one family or level, where the results are broken down). Equal
results give equal tables, except for the last one: it holds times, which differ from run to run.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.policies.registry import is_untrained
from pool_registry.actions import JsonValue
from trainer.errors import UnknownReference
from trainer.results.by_task import group_by_task
from trainer.results.equal_cost import CostComparison, Results, compare_at_equal_cost
from trainer.results.figures import Figures, MeanPrice, compute_figures, find_best_single, group_rows
from trainer.results.paired import PairedComparison, compare_paired
from trainer.results.rows import RESULTS, ResultRow, list_orchestrators, read_results
from trainer.results.statistics import Estimate

BREAKDOWNS = ("family", "level")
TEXT_COLUMNS = ("orchestrator", "condition", "part", "most used")  # aligned to the left


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of the tables. `paired` is None for the reference itself and where no task can be paired. `equal_cost`:
    against the mixture of baselines that costs as much, by `price`; None where none was measured."""

    orchestrator: str
    condition: str
    part: str
    best_single: bool
    figures: Figures
    paired: PairedComparison | None
    equal_cost: CostComparison | None = None

    def document(self) -> dict[str, JsonValue]:
        """Build the JSON document of the row; of the paired tasks it lists those that changed."""
        paired = self.paired.model_dump(mode="json", exclude={"equal"}) if self.paired else None
        return {
            "orchestrator": self.orchestrator,
            "condition": self.condition,
            "part": self.part,
            "best_single": self.best_single,
            "figures": self.figures.model_dump(mode="json"),
            "paired": paired,
            "equal_cost": self.equal_cost.model_dump(mode="json") if self.equal_cost else None,
        }


@dataclass(frozen=True, slots=True)
class ReferenceRows:
    """The rows that every other orchestrator is compared with, and their name in the tables."""

    label: str
    rows: Sequence[ResultRow]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its head, and the text of its cell in a row."""

    head: str
    cell: Callable[[TableRow], str]


def find_reference(jobs: Path, rows: Sequence[ResultRow], name: str) -> ReferenceRows:
    """Find the reference `name`: an orchestrator of these rows (empty: the first), or JOB/ORCHESTRATOR of another job,
    or JOB when that measured only one.

    `jobs` is the folder of all jobs. Raises UnknownReference, which lists the possible names.
    """
    here = list_orchestrators(rows)
    if name in here or (not name and here):
        label = name or here[0]
        return ReferenceRows(label, [row for row in rows if row.orchestrator == label])
    job, _, orchestrator = name.partition("/")
    saved = read_results(jobs / job / RESULTS) if job and Path(job).name == job else []
    there = list_orchestrators(saved)
    if not orchestrator and len(there) == 1:
        orchestrator = there[0]
    if orchestrator not in there:
        beyond = f"; {job} measured: {', '.join(there)}" if there else ""
        raise UnknownReference(
            f"there is no reference {name!r}: give an orchestrator of this evaluation ({', '.join(here) or 'none'}) or "
            f"JOB/ORCHESTRATOR of another{beyond}"
        )
    return ReferenceRows(f"{orchestrator} ({job})", [row for row in saved if row.orchestrator == orchestrator])


def build_table_rows(
    rows: Collection[ResultRow], reference: ReferenceRows, breakdown: str | None = None
) -> list[TableRow]:
    """Build the rows of the tables, ordered by condition, by part of the breakdown, and by orchestrator as they came.

    `breakdown` is one of BREAKDOWNS, or None for one part called "all".
    """
    table: list[TableRow] = []
    for condition, in_condition in group_rows(rows, "condition").items():
        parts = sorted(group_rows(in_condition, breakdown).items()) if breakdown else [("all", in_condition)]
        for part, in_part in parts:
            groups = group_rows(in_part, "orchestrator")
            figures = {name: compute_figures(group) for name, group in groups.items()}
            single = find_best_single(figures)
            equal = _compare_costs(groups, figures)
            theirs = [row for row in reference.rows if row.condition == condition and _is_in_part(row, breakdown, part)]
            for name, mine in groups.items():
                is_reference = {row.episode for row in mine} == {row.episode for row in theirs}
                paired = compare_paired(mine, theirs) if theirs and not is_reference else None
                table.append(TableRow(name, condition, part, name == single, figures[name], paired, equal.get(name)))
    return table


def _compare_costs(
    groups: Mapping[str, Collection[ResultRow]], figures: Mapping[str, Figures]
) -> dict[str, CostComparison]:
    """Against the baselines at equal cost: in dollars where any call has a price, else in tokens."""
    price: MeanPrice = "cost" if any(row.cost > 0 for row in figures.values()) else "tokens"
    results = {name: Results(group_by_task(rows), figures[name]) for name, rows in groups.items()}
    return compare_at_equal_cost(results, price, list(filter(is_untrained, results)))


def render_markdown(rows: Sequence[TableRow], reference: ReferenceRows) -> str:
    """Render the tables for a model card in Markdown, each under its title."""
    parts = []
    for title, columns in build_tables(rows, reference):
        heads = " | ".join(column.head for column in columns)
        body = [" | ".join(_escape(column.cell(row)) for column in columns) for row in rows]
        rule = "|".join("---" if column.head in TEXT_COLUMNS else "---:" for column in columns)
        parts.append("\n".join([f"**{title}**", "", f"| {heads} |", f"|{rule}|", *(f"| {line} |" for line in body)]))
    return "\n\n".join(parts)


def render_csv(rows: Sequence[TableRow], reference: ReferenceRows) -> str:
    """Render one wide table of plain numbers; a cell is empty where there is no figure."""
    flat = [_flatten(row, reference) for row in rows]
    text = io.StringIO()
    if flat:
        writer = csv.DictWriter(text, list(dict.fromkeys(key for row in flat for key in row)), restval="")
        writer.writeheader()
        writer.writerows(flat)
    return text.getvalue()


def build_tables(rows: Sequence[TableRow], reference: ReferenceRows) -> list[tuple[str, list[Column]]]:
    """Build the columns of each table: (title, columns). Columns that are equal in every row are left out."""
    name = [Column("orchestrator", lambda row: _format_name(row))]
    if len({row.condition for row in rows}) > 1:
        name.append(Column("condition", lambda row: row.condition))
    if len({row.part for row in rows}) > 1:
        name.append(Column("part", lambda row: row.part))
    tasks = {(row.figures.tasks, row.figures.k) for row in rows}
    title = "Accuracy"
    if len(tasks) == 1:
        count, k = tasks.pop()
        title += f" on {count:,} tasks, {k} {'sample' if k == 1 else 'samples'} each"
    return [
        (f"{title}; 95 % intervals over tasks; compared with {reference.label}", [*name, *_accuracy_columns(rows)]),
        ("Protocol and access lists", [*name, *PROTOCOL]),
        ("Shape and workers", [*name, *SHAPE]),
        ("Cost and time", [*name, *PRICE]),
    ]


def _accuracy_columns(rows: Sequence[TableRow]) -> list[Column]:
    several = any(row.figures.k > 1 for row in rows)
    passes = [
        Column("pass@k", lambda row: _format_interval(row.figures.pass_at_k)),
        Column("pass^k", lambda row: _format_interval(row.figures.pass_all_k)),
    ]
    counts = [Column("tasks", lambda row: f"{row.figures.tasks:,}"), Column("k", lambda row: str(row.figures.k))]
    uneven = len({(row.figures.tasks, row.figures.k) for row in rows}) > 1
    return [
        *(counts if uneven else []),
        Column("mean@k" if several else "mean", lambda row: _format_interval(row.figures.mean)),
        *(passes if several else []),
        Column("difference", lambda row: _format_interval(row.paired.difference, "+") if row.paired else ""),
        Column("won / lost / tied", lambda row: _format_counts(row.paired)),
        Column("sign test", lambda row: f"p = {row.paired.p:.2g}" if row.paired else ""),
        *([EQUAL_COST] if any(row.equal_cost for row in rows) else []),
    ]


EQUAL_COST = Column(
    "against baselines at equal cost",
    lambda row: _format_interval(row.equal_cost.difference, "+") if row.equal_cost else "",
)
PROTOCOL = [
    Column("valid turns", lambda row: _format_share(row.figures.valid_turns)),
    *(
        Column(status, lambda row, status=status: f"{row.figures.statuses.get(status, 0):,}")  # type: ignore[misc]
        for status in ("OK", "PARSE_ERR", "EXEC_ERR", "TIMEOUT")
    ),
    Column("recovered", lambda row: _format_part(row.figures.recovery, row.figures.failed_episodes)),
    Column("plan matched", lambda row: _format_share(row.figures.matched)),
    Column("access precision", lambda row: _format_share(row.figures.access_precision)),
    Column("access recall", lambda row: _format_share(row.figures.access_recall)),
    Column("over-shared chars", lambda row: _format_number(row.figures.overshared_chars, 0)),
]
SHAPE = [
    Column("turns", lambda row: _format_number(row.figures.turns)),
    Column("steps", lambda row: _format_number(row.figures.steps)),
    Column("depth", lambda row: _format_number(row.figures.depth)),
    Column("width", lambda row: _format_number(row.figures.width)),
    Column("steps beyond the plan", lambda row: _format_number(row.figures.extra_steps)),
    Column("depth beyond the plan", lambda row: _format_number(row.figures.extra_depth)),
    Column("worker entropy, bits", lambda row: _format_number(row.figures.entropy)),
    Column("most used", lambda row: _format_most_used(row.figures)),
]
PRICE = [
    Column("cost, $ an episode", lambda row: f"{row.figures.cost_per_episode:.5f}"),
    Column("tokens an episode", lambda row: _format_number(row.figures.tokens_per_episode, 0)),
    Column("p50, s", lambda row: _format_number(row.figures.p50_s)),
    Column("p95, s", lambda row: _format_number(row.figures.p95_s)),
    Column("speed-up over serial", lambda row: _format_number(row.figures.speedup)),
]


def _flatten(row: TableRow, reference: ReferenceRows) -> dict[str, JsonValue]:
    """Flatten a row: every figure under a key of its own."""
    flat: dict[str, JsonValue] = {"orchestrator": row.orchestrator, "condition": row.condition, "part": row.part}
    flat["best_single"] = int(row.best_single)
    for key, value in row.figures.model_dump(mode="json").items():
        flat |= _flatten_value(key, value)
    flat["reference"] = reference.label
    if row.paired is not None:
        paired = row.paired.model_dump(mode="json", exclude={"improved", "regressed", "equal"})
        for key, value in paired.items():
            flat |= _flatten_value(f"paired_{key}", value)
    if row.equal_cost is not None:
        for key in ("difference", "tasks"):
            flat |= _flatten_value(f"equal_cost_{key}", row.equal_cost.model_dump(mode="json")[key])
    return flat


def _flatten_value(key: str, value: JsonValue) -> dict[str, JsonValue]:
    return {f"{key}_{inner}": item for inner, item in value.items()} if isinstance(value, dict) else {key: value}


def _is_in_part(row: ResultRow, breakdown: str | None, part: str) -> bool:
    return breakdown is None or str(getattr(row, breakdown)) == part


def _format_name(row: TableRow) -> str:
    return f"{row.orchestrator} (best single worker)" if row.best_single else row.orchestrator


def _format_interval(estimate: Estimate, sign: str = "") -> str:
    return f"{estimate.mean:{sign}.3f} [{estimate.low:{sign}.3f}, {estimate.high:{sign}.3f}]"


def _format_counts(paired: PairedComparison | None) -> str:
    return f"{paired.wins:,} / {paired.losses:,} / {paired.ties:,}" if paired else ""


def _format_share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _format_part(share: float | None, count: int) -> str:
    return "" if share is None else f"{round(share * count):,} of {count:,}"


def _format_number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _format_most_used(figures: Figures) -> str:
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in list(figures.shares.items())[:3])


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
