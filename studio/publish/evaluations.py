"""The evaluation tables of a model card: computed from result rows, and the metrics stored with the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.checkpoints import Checkpoint
from pool_registry.storage.data_folder import Home
from studio.publish.cards import markdown_table
from trainer.results.figures import Figures, compute_figures, compute_figures_by
from trainer.results.rows import RESULTS, ResultRow, read_results

HEAD = ("", "tasks", "mean, 95 %", "steps", "valid turns", "tokens an episode", "p50 s", "p95 s")


def evaluation_tables(home: Home, orchestrator: str, checkpoint: Checkpoint) -> list[str]:
    """Markdown tables of every evaluation of this orchestrator: by family, by condition, and of training."""
    rows = list(_rows(home, orchestrator))
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
        splits = ", ".join(sorted({row.split for row in rows}))
        parts.append(f"{len(rows)} graded episodes of the split {splits}; intervals are bootstrapped over tasks.")
    if checkpoint.metrics:
        figures_kept = sorted(checkpoint.metrics.items())
        parts.append("Measured while it was trained:")
        parts.append(
            markdown_table(("figure", "value"), [(f"`{name}`", f"{value:.4g}") for name, value in figures_kept])
        )
    return parts


def _rows(home: Home, orchestrator: str) -> Iterator[ResultRow]:
    """Results of this orchestrator in any job of the data folder."""
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
