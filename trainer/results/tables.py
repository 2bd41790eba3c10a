"""Evaluations as tables: for a terminal, a model card (Markdown), a spreadsheet (CSV) and programs (JSON).

A line is one orchestrator in one condition (and in one family or level, where those are taken apart). The tables
say the same for the same rows; only the last one holds times, which differ from run to run.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.errors import UnknownReference
from trainer.results.figures import Figures, compute_figures, find_best_single, group_rows
from trainer.results.paired import PairedComparison, compare_paired
from trainer.results.rows import RESULTS, ResultRow, list_orchestrators, read_results
from trainer.results.statistics import Estimate

BREAKDOWNS = ("family", "level")
TEXT_COLUMNS = ("orchestrator", "condition", "part", "most used")  # columns of words stand on the left


@dataclass(frozen=True, slots=True)
class TableRow:
    """One line of the tables. `paired` is None for the reference itself and where nothing can be paired."""

    orchestrator: str
    condition: str
    part: str
    best_single: bool
    figures: Figures
    paired: PairedComparison | None

    def document(self) -> dict[str, Any]:
        """The line for programs; of the paired tasks those that changed."""
        compared = self.paired.model_dump(mode="json", exclude={"equal"}) if self.paired else None
        return {
            "orchestrator": self.orchestrator,
            "condition": self.condition,
            "part": self.part,
            "best_single": self.best_single,
            "figures": self.figures.model_dump(mode="json"),
            "paired": compared,
        }


@dataclass(frozen=True, slots=True)
class ReferenceRows:
    """What every line is compared with: whose rows, and what to call them."""

    label: str
    rows: Sequence[ResultRow]


@dataclass(frozen=True, slots=True)
class Column:
    head: str
    cell: Callable[[TableRow], str]


def find_reference(jobs: Path, rows: Sequence[ResultRow], name: str) -> ReferenceRows:
    """The reference called `name`: an orchestrator of these rows (empty: the first), or JOB/ORCHESTRATOR, or JOB
    when it measured only one. `jobs` is the folder of all jobs. Raises UnknownReference saying what there is."""
    here = list_orchestrators(rows)
    if name in here or (not name and here):
        wanted = name or here[0]
        return ReferenceRows(wanted, [row for row in rows if row.orchestrator == wanted])
    job, _, orchestrator = name.partition("/")
    saved = read_results(jobs / job / RESULTS) if job and Path(job).name == job else []
    there = list_orchestrators(saved)
    if not orchestrator and len(there) == 1:
        orchestrator = there[0]
    if orchestrator not in there:
        known = ", ".join(here) or "none"
        beyond = f"; {job} measured: {', '.join(there)}" if there else ""
        raise UnknownReference(
            f"there is no reference {name!r}: give an orchestrator of this evaluation ({known}) or "
            f"JOB/ORCHESTRATOR of another{beyond}"
        )
    return ReferenceRows(f"{orchestrator} ({job})", [row for row in saved if row.orchestrator == orchestrator])


def build_table_rows(rows: Collection[ResultRow], reference: ReferenceRows, apart: str | None = None) -> list[TableRow]:
    """The lines, by condition, then by part, then in the order in which the orchestrators came. `apart` is one of
    APART, or None."""
    found: list[TableRow] = []
    for condition, in_condition in group_rows(rows, "condition").items():
        for part, chosen in sorted(group_rows(in_condition, apart).items()) if apart else [("all", in_condition)]:
            measured = {name: compute_figures(each) for name, each in group_rows(chosen, "orchestrator").items()}
            single = find_best_single(measured)
            theirs = [row for row in reference.rows if row.condition == condition and _is_in_part(row, apart, part)]
            for name, mine in group_rows(chosen, "orchestrator").items():
                itself = {row.episode for row in mine} == {row.episode for row in theirs}
                against = compare_paired(mine, theirs) if theirs and not itself else None
                line = TableRow(name, condition, part, name == single, measured[name], against)
                found.append(line)
    return found


def render_markdown(lines: Sequence[TableRow], reference: ReferenceRows) -> str:
    """Tables for a model card, each under what it shows."""
    parts = []
    for title, columns in build_tables(lines, reference):
        heads = " | ".join(column.head for column in columns)
        body = [" | ".join(_escape(column.cell(line)) for column in columns) for line in lines]
        rule = "|".join("---" if column.head in TEXT_COLUMNS else "---:" for column in columns)
        parts.append("\n".join([f"**{title}**", "", f"| {heads} |", f"|{rule}|", *(f"| {line} |" for line in body)]))
    return "\n\n".join(parts)


def render_csv(lines: Sequence[TableRow], reference: ReferenceRows) -> str:
    """One wide table of plain numbers; an empty cell is a figure that there is none of."""
    rows = [_flatten(line, reference) for line in lines]
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), restval="")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def build_tables(lines: Sequence[TableRow], reference: ReferenceRows) -> list[tuple[str, list[Column]]]:
    """What is shown in which table. Columns that would say the same in every line are left out."""
    name = [Column("orchestrator", lambda line: _format_name(line))]
    if len({line.condition for line in lines}) > 1:
        name.append(Column("condition", lambda line: line.condition))
    if len({line.part for line in lines}) > 1:
        name.append(Column("part", lambda line: line.part))
    tasks = {(line.figures.tasks, line.figures.k) for line in lines}
    title = "Accuracy"
    if len(tasks) == 1:
        count, k = tasks.pop()
        title += f" on {count:,} tasks, {k} {'sample' if k == 1 else 'samples'} each"
    return [
        (f"{title}; 95 % intervals over tasks; compared with {reference.label}", [*name, *_accuracy_columns(lines)]),
        ("Protocol and access lists", [*name, *PROTOCOL]),
        ("Shape and workers", [*name, *SHAPE]),
        ("Cost and time", [*name, *PRICE]),
    ]


def _accuracy_columns(lines: Sequence[TableRow]) -> list[Column]:
    several = any(line.figures.k > 1 for line in lines)
    passes = [
        Column("pass@k", lambda line: _format_interval(line.figures.pass_at_k)),
        Column("pass^k", lambda line: _format_interval(line.figures.pass_all_k)),
    ]
    counts = [Column("tasks", lambda line: f"{line.figures.tasks:,}"), Column("k", lambda line: str(line.figures.k))]
    uneven = len({(line.figures.tasks, line.figures.k) for line in lines}) > 1
    return [
        *(counts if uneven else []),
        Column("mean@k" if several else "mean", lambda line: _format_interval(line.figures.mean)),
        *(passes if several else []),
        Column("difference", lambda line: _format_interval(line.paired.difference, "+") if line.paired else ""),
        Column("won / lost / tied", lambda line: _format_counts(line.paired)),
        Column("sign test", lambda line: f"p = {line.paired.p:.2g}" if line.paired else ""),
    ]


PROTOCOL = [
    Column("valid turns", lambda line: _format_share(line.figures.valid_turns)),
    *(
        Column(status, lambda line, status=status: f"{line.figures.statuses.get(status, 0):,}")  # type: ignore[misc]
        for status in ("OK", "PARSE_ERR", "EXEC_ERR", "TIMEOUT")
    ),
    Column("recovered", lambda line: _format_part(line.figures.recovery, line.figures.failed_episodes)),
    Column("plan matched", lambda line: _format_share(line.figures.matched)),
    Column("access precision", lambda line: _format_share(line.figures.access_precision)),
    Column("access recall", lambda line: _format_share(line.figures.access_recall)),
    Column("over-shared chars", lambda line: _format_number(line.figures.overshared_chars, 0)),
]
SHAPE = [
    Column("turns", lambda line: _format_number(line.figures.turns)),
    Column("steps", lambda line: _format_number(line.figures.steps)),
    Column("depth", lambda line: _format_number(line.figures.depth)),
    Column("width", lambda line: _format_number(line.figures.width)),
    Column("steps beyond the plan", lambda line: _format_number(line.figures.extra_steps)),
    Column("depth beyond the plan", lambda line: _format_number(line.figures.extra_depth)),
    Column("worker entropy, bits", lambda line: _format_number(line.figures.entropy)),
    Column("most used", lambda line: _format_most_used(line.figures)),
]
PRICE = [
    Column("cost, $ an episode", lambda line: f"{line.figures.cost_per_episode:.5f}"),
    Column("tokens an episode", lambda line: _format_number(line.figures.tokens_per_episode, 0)),
    Column("p50, s", lambda line: _format_number(line.figures.p50_s)),
    Column("p95, s", lambda line: _format_number(line.figures.p95_s)),
    Column("speed-up over serial", lambda line: _format_number(line.figures.speedup)),
]


def _flatten(line: TableRow, reference: ReferenceRows) -> dict[str, Any]:
    """Every figure of a line under a key of its own."""
    flat: dict[str, Any] = {"orchestrator": line.orchestrator, "condition": line.condition, "part": line.part}
    flat["best_single"] = int(line.best_single)
    for key, value in line.figures.model_dump(mode="json").items():
        flat |= _flatten_value(key, value)
    flat["reference"] = reference.label
    if line.paired is not None:
        found = line.paired.model_dump(mode="json", exclude={"improved", "regressed", "equal"})
        for key, value in found.items():
            flat |= _flatten_value(f"paired_{key}", value)
    return flat


def _flatten_value(key: str, value: Any) -> dict[str, Any]:
    return {f"{key}_{inner}": each for inner, each in value.items()} if isinstance(value, dict) else {key: value}


def _is_in_part(row: ResultRow, apart: str | None, part: str) -> bool:
    return apart is None or str(getattr(row, apart)) == part


def _format_name(line: TableRow) -> str:
    return f"{line.orchestrator} (best single worker)" if line.best_single else line.orchestrator


def _format_interval(found: Estimate, sign: str = "") -> str:
    return f"{found.mean:{sign}.3f} [{found.low:{sign}.3f}, {found.high:{sign}.3f}]"


def _format_counts(found: PairedComparison | None) -> str:
    return f"{found.wins:,} / {found.losses:,} / {found.ties:,}" if found else ""


def _format_share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _format_part(share: float | None, count: int) -> str:
    return "" if share is None else f"{round(share * count):,} of {count:,}"


def _format_number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _format_most_used(found: Figures) -> str:
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in list(found.shares.items())[:3])


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
