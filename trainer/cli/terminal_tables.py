"""What the trainer's commands print about tasks and evaluations, for people and for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.layers import layer_sizes
from pool_registry.actions import JsonValue, as_text
from pool_registry.text import one_line, shorten
from trainer.evaluation.regrading import Regrading
from trainer.results.judge_agreement import describe_judges
from trainer.results.summary import Evaluation
from trainer.results.tables import TEXT_COLUMNS, ReferenceRows, TableRow, build_tables
from trainer.tasks import SUITES, find_task
from trainer.tasks.practice.make_tasks import PracticeTasks
from trainer.tasks.practice.task_book import Merge
from trainer.tasks.registry import PROVIDERS
from trainer.tasks.sources.files.reader import ReadTasks
from trainer.tasks.sources.jsonl import FileLine
from trainer.tasks.task import Task

PREVIEW = 5


def print_rich(content: RenderableType) -> None:
    """Print to standard output; a pipe gets lines of 120 characters and no colour."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    console.print(content)


def build_families_table() -> Table:
    """Build the table of all families: the size and depth of the plans of each level."""
    table = _new_table("family", "level", "steps", "deep", "wide", "workers", "what it asks")
    for name, suite in SUITES.items():
        for level in suite.levels:
            plan = find_task(name, level, "train", 0).oracle_turn
            assert plan is not None, "generated tasks have a plan"
            sizes = layer_sizes(plan.steps)
            first = level == suite.levels[0]
            table.add_row(
                name if first else "",
                str(level),
                str(len(plan.steps)),
                str(len(sizes)),
                str(max(sizes)),
                ", ".join(suite.workers) if first else "",
                suite.description if first else "",
            )
    return table


def sources_table() -> Table:
    """The other ways to name a source, and all that other packages add."""
    table = _new_table("source", "package", "what it is")
    for name, provider in PROVIDERS.items():
        package = PROVIDERS.package_of(name)
        if package or provider.suite is None:
            table.add_row(f"{name}{provider.argument}", package, provider.summary)
    return table


def build_sources_document() -> dict[str, list[dict[str, JsonValue]]]:
    """Families and other sources of tasks, as `tasks list --json` prints them."""
    families: list[dict[str, JsonValue]] = [
        {"name": name, "levels": list(suite.levels), "workers": list(suite.workers), "description": suite.description}
        for name, suite in SUITES.items()
    ]
    sources: list[dict[str, JsonValue]] = [
        {"source": f"{name}{provider.argument}", "package": PROVIDERS.package_of(name), "description": provider.summary}
        for name, provider in PROVIDERS.items()
    ]
    return {"families": families, "sources": sources}


def build_task_document(task: Task) -> dict[str, JsonValue]:
    """Build the JSON document of a task; `plan` is what a trained model should write, None without a reference plan."""
    ref = task.ref
    return {
        "family": ref.family,
        "level": ref.level,
        "split": ref.split,
        "index": ref.index,
        "query": task.query,
        "answer": task.expected,
        "plan": json.loads(PlanDialect().format(task.oracle_turn, ())) if task.oracle_turn else None,
        **({"checked": task.checked} if task.checked else {}),
    }


def task_text(task: Task) -> Group:
    """Show a task: query, answer and the oracle's plan."""
    ref = task.ref
    lines = [
        Text(f"{ref.family} level {ref.level}, {ref.split} {ref.index}"),
        Text(f"Query:  {task.query}"),
        Text(f"Answer: {as_text(task.expected)}{f' (checked by {task.checked})' if task.checked else ''}"),
    ]
    if task.oracle_turn is None:
        return Group(*lines, Text("There is no reference plan."))
    table = _new_table("step", "worker", "sees", "arguments")
    for step in task.oracle_turn.steps:
        seen = ", ".join(map(str, step.access)) or "nothing"
        table.add_row(str(step.id), step.worker, seen, Text(_arguments_text(step.arguments)))
    return Group(*lines, table, Text(f"The plan answers {as_text(task.oracle_turn.answer)}"))


def task_file_text(name: str, read: ReadTasks, lacking: Sequence[str] = ()) -> Group:
    """Show a file of tasks: how it was read, how many are usable, every problem, the first five. `lacking` are the
    workers that plans call and the pool has not."""
    lines = [(line, line.task) for line in read.lines if line.task is not None]
    bad = len(read.lines) - len(lines)
    splits = _counts_text(dict(Counter(task.ref.split for _, task in lines)))
    table = _new_table(read.unit, "split", "graded by", "query", "answer")
    for line, task in lines[:PREVIEW]:
        row = (str(line.number), task.ref.split, task.verifier.kind, shorten(one_line(task.query), 60, "…"))
        table.add_row(*map(Text, (*row, shorten(one_line(as_text(task.expected)), 60, "…"))))
    return Group(
        Text(read.form),
        Text(f"{name}: {len(lines):,} tasks ({splits}); {bad:,} {read.unit}s are no tasks"),
        *(Text(f"{read.unit} {line.number}: {what}") for line in read.lines for what in line.problems),
        *([Text(f"The plans call {', '.join(lacking)}, which this pool lacks.")] if lacking else []),
        table if lines else Text('A line looks like this: {"query": "What is 6 * 7?", "answer": 42}'),
    )


def practice_text(tasks: PracticeTasks, merge: Merge, file: Path) -> Group:
    """Show made tasks: how many in each split, of how many calls, what was left out and why, and a few queries."""
    notes = [f"{merge.own:,} of your own stay"] if merge.own else []
    notes += [f"{merge.struck:,} that you struck or edited stay out"] if merge.struck else []
    notes += [text for text in (tasks.checked, tasks.agents) if text]
    table = _new_table("split", "steps", "query", "answer", "checked by")
    spread = max(1, len(tasks.lines) // (2 * PREVIEW))
    for line in tasks.lines[::spread][: 2 * PREVIEW]:
        steps = (line.plan or {}).get("steps")
        count = len(steps) if isinstance(steps, list) else 0
        query, answer = shorten(one_line(line.query), 70, "…"), shorten(one_line(as_text(line.answer)), 40, "…")
        table.add_row(*map(Text, (line.split or "", str(count), query, answer, line.checked or "its plan")))
    calls = ", ".join(f"{name} {count}" for name, count in tasks.calls.items())
    return Group(
        Text(f"{file}: {len(tasks.lines):,} tasks ({_counts_text(tasks.count_splits())})"),
        *map(Text, notes),
        *([Text(f"made of calls of: {calls}")] if calls else []),
        *(Text(f"left out: {name}: {reason}") for name, reason in tasks.reasons.items()),
        table,
        Text(f"Read them over; in a recipe they are `tasks: {{source: file:{file}}}` and their plans are a teacher."),
    )


def own_tasks_text(file: Path, rows: Sequence[FileLine], bad: Sequence[FileLine]) -> Group:
    """Show a pool's own tasks by line, and the lines of the file that are no tasks."""
    table = _new_table("line", "split", "by", "graded by", "workers", "query", "answer")
    for row in rows:
        task = row.task
        assert task is not None, "the caller leaves out lines that are no tasks"
        query, answer = shorten(one_line(task.query), 70, "…"), shorten(one_line(as_text(task.expected)), 40, "…")
        author = "made" if row.is_made else "you"
        author += f", checked by {task.checked}" if task.checked else ""
        cells = (str(row.number), task.ref.split, author, task.verifier.kind, ", ".join(task.workers), query, answer)
        table.add_row(*map(Text, cells))
    counts = _counts_text(dict(Counter(row.task.ref.split for row in rows if row.task)))
    return Group(
        Text(f"{file}: {len(rows):,} tasks ({counts})"),
        *(Text(f"line {row.number}: {what}") for row in bad for what in row.problems),
        table,
    )


def _arguments_text(arguments: Any) -> str:
    if len(arguments) == 1:
        return as_text(next(iter(arguments.values())))
    return ", ".join(f"{name}: {as_text(value)}" for name, value in arguments.items())


def evaluation_text(evaluation: Evaluation) -> Group:
    """Show an evaluation: one row per family, level and split, and a total when there are several."""
    table = _new_table(
        "family", "level", "split", "tasks", "mean", "95 %", "p50 s", "p95 s", "speed-up", "tokens", "cost $"
    )
    rows = [*evaluation.cells, evaluation]
    for row in rows:
        low, high = row.interval
        table.add_row(
            row.family,
            str(row.level or "all"),
            row.split,
            f"{row.tasks:,}",
            f"{row.mean:.3f}",
            f"{low:.3f} to {high:.3f}",
            f"{row.p50_s:.2f}",
            f"{row.p95_s:.2f}",
            "" if row.speedup is None else f"{row.speedup:.2f}",
            f"{row.tokens:,}",
            f"{row.cost:.4f}",
        )
    return Group(
        Text(f"{evaluation.orchestrator}: {evaluation.mean:.3f} on {evaluation.tasks:,} tasks"),
        table,
        Text(f"steps: {_counts_text(evaluation.statuses)}; turns in error: {evaluation.turn_errors}"),
        Text(f"outcomes: {_counts_text(evaluation.outcomes)}; wall time {evaluation.wall_s:.1f} s"),
        *map(Text, describe_judges(evaluation.judges)),
    )


def comparison_text(rows: Sequence[TableRow], reference: ReferenceRows, judges: Sequence[str] = ()) -> Group:
    """Show evaluations side by side, and below them a sentence about each judge that they rest on."""
    shown: list[RenderableType] = []
    for title, columns in build_tables(rows, reference):
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for column in columns:
            table.add_column(column.head, justify="left" if column.head in TEXT_COLUMNS else "right", overflow="fold")
        for row in rows:
            table.add_row(*(Text(column.cell(row)) for column in columns))
        shown += [Text(f"\n{title}", style="bold"), table]
    return Group(*shown, *map(Text, judges))


def regrading_text(regrading: Regrading, shown: int) -> Group:
    """Show the ranking of an evaluation before and after it was graded again, and the first queries that changed
    sides."""
    ranking = _new_table("orchestrator", "condition", "before", "now", "difference [95 %]")
    for change in regrading.rank():
        estimate = change.difference.difference
        interval = f"{estimate.mean:+.2f} [{estimate.low:+.2f}, {estimate.high:+.2f}]"
        scores = (f"{change.before:.2f}", f"{change.after:.2f}")
        ranking.add_row(*map(Text, (change.orchestrator, change.condition, *scores, interval)))
    changed = regrading.changed_rows
    right = sum(row.correct for row in changed)
    sentence = f"{len(changed):,} of {len(regrading.after):,} answers changed sides: {right:,} became right"
    sides = _new_table("now", "orchestrator", "query", "episode")
    for row in changed[:shown]:
        verdict, query = "right" if row.correct else "wrong", shorten(one_line(row.query), 60, "…")
        sides.add_row(*map(Text, (verdict, row.orchestrator, query, row.episode)))
    left = [Text(f"{count:,} stay as they were: {reason}") for reason, count in regrading.left.items()]
    return Group(ranking, Text(sentence), *left, *([sides] if changed else []))


def _counts_text(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


def _new_table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    numbers: Sequence[str] = ("level", "steps", "deep", "wide", "tasks", "mean", "tokens", "cost $", "speed-up")
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in numbers else "left",
            overflow="fold",
            no_wrap=column in ("family", "worker", "split", "95 %"),
        )
    return table


def table_of(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Build a plain table from column heads and rows of text."""
    table = _new_table(*heads)
    for row in rows:
        table.add_row(*row)
    return table
