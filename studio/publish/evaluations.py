"""The evaluation tables of a model card: figures of held-out tasks alone, computed from result rows."""

from __future__ import annotations

from collections.abc import Iterator

from pool_registry.storage.data_folder import Home
from studio.publish.cards import markdown_table
from trainer.results.figures import Figures, compute_figures, compute_figures_by
from trainer.results.judge_agreement import describe_judges, list_judges
from trainer.results.rows import RESULTS, ResultRow, read_results

HELD_OUT = "test"  # the split that no training sees
HEAD = ("", "tasks", "mean, 95 %", "steps", "valid turns", "tokens an episode", "p50 s", "p95 s")


def evaluation_tables(home: Home, orchestrator: str) -> list[str]:
    """Markdown tables of every evaluation of this orchestrator on held-out tasks: by family and by condition.

    Other figures say how well it learnt by heart, and are left out.
    """
    every = list(list_results(home, orchestrator))
    rows = [row for row in every if row.split == HELD_OUT]
    parts: list[str] = []
    if rows:
        families = compute_figures_by(rows, "family")
        lines = [("**all**", compute_figures(rows)), *((f"`{name}`", figures) for name, figures in families.items())]
        parts.append(markdown_table(HEAD, [_figures_row(name, figures) for name, figures in lines]))
        conditions = compute_figures_by(rows, "condition")
        if len(conditions) > 1:
            parts.append("By condition of the pool:")
            parts.append(
                markdown_table(HEAD, [_figures_row(f"`{name}`", figures) for name, figures in conditions.items()])
            )
        parts.append(f"{len(rows)} graded episodes of held-out tasks; intervals are bootstrapped over tasks.")
        parts += describe_judges(list_judges(rows), "the author's")
    if left := len(every) - len(rows):
        parts.append(f"{left} episodes on tasks that are not held out are left out.")
    return parts


def list_results(home: Home, orchestrator: str) -> Iterator[ResultRow]:
    """Read the results of this orchestrator from every job of the data folder."""
    names = {orchestrator, orchestrator.rstrip("/").rpartition("/")[2]}
    for path in sorted(home.jobs.glob(f"*/{RESULTS}")):
        yield from (row for row in read_results(path) if row.orchestrator in names)


def _figures_row(name: str, figures: Figures) -> tuple[str, ...]:
    mean = figures.mean
    return (
        name,
        str(figures.tasks),
        f"{mean.mean:.2f} [{mean.low:.2f}, {mean.high:.2f}]",
        f"{figures.steps:.1f}",
        "–" if figures.valid_turns is None else f"{figures.valid_turns:.2f}",
        f"{figures.tokens_per_episode:.0f}",
        f"{figures.p50_s:.2f}",
        f"{figures.p95_s:.2f}",
    )
