"""How far a job is: over all its steps, in its stage, and how long the stage will take. Times are in seconds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median

from studio.pages.train.curves import COUNTED, MetricsReader, whole
from studio.pages.train.schema import JobProgress
from trainer.jobs.queue import JobRow
from trainer.methods.advice import Row, number
from trainer.recipe import EVALUATE, WHO, Recipe


def compute_job_progress(
    row: JobRow, recipe: Recipe | None, metrics: MetricsReader, evaluated: int, now: float
) -> JobProgress:
    """How far the job is: over all steps, in its stage, and how long the stage will take. `evaluated` counts the
    orchestrators that were measured."""
    step = max(metrics.columns.steps, default=row.step)
    stage = row.stage
    collected, planned = (metrics.progress.get(f"demonstrations/{which}", 0) for which in ("done", "total"))
    if stage and stage not in (WHO, EVALUATE) and not step and collected < planned:
        stage = "demonstrations"
    counted = stage in COUNTED and f"{stage}/total" in metrics.progress
    done, total = (step, row.steps)
    if counted:
        done, total = (int(metrics.progress[f"{stage}/{which}"]) for which in ("done", "total"))
        step = done if recipe is not None and recipe.stages == (EVALUATE,) else step
    elif recipe is not None:
        done, total = _in_stage(stage, step, recipe, evaluated)
    rates = [row for row in metrics.recent if row.get("stage") == stage]
    pace = _pace(rates, f"{stage}/done" if counted else "step")
    left = total - done
    return JobProgress(
        stage=stage,
        done=done,
        total=total,
        step=step,
        steps=row.steps,
        share=_share(row, step),
        step_s=pace,
        eta_s=pace * left if pace is not None and row.active and (counted or stage != EVALUATE) else None,
        elapsed_s=seconds_since(row.started_at, _until(row, now)) if row.started_at else None,
    )


def _in_stage(stage: str, step: int, recipe: Recipe, evaluated: int) -> tuple[int, int]:
    if stage == EVALUATE and recipe.evaluate:
        planned = len(recipe.evaluate.orchestrators) or 1 + len(recipe.training_stages)
        return evaluated, max(evaluated, planned)
    training = next((one for one in recipe.training_stages if one.name == stage), None)
    return (max(0, step - training.before), training.steps) if training else (step, step)


def _share(row: JobRow, step: int) -> float:
    """The share of all steps; 1 for a job that is done, also when it needed fewer."""
    if row.state == "done":
        return 1.0
    return min(1.0, step / row.steps) if row.steps else 0.0


def _pace(rows: Sequence[Row], counter: str) -> float | None:
    """Compute the seconds that a step takes, from the last few."""
    times: dict[int, float] = {}
    for row in rows:
        if counter in row:
            times[whole(row[counter])] = number(row.get("at"))
    points = sorted(times.items())[-30:]
    gaps = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(points) if b[1] > a[1]]
    return median(gaps) if gaps else None


def isoformat(value: datetime | None) -> str | None:
    """Write a time as ISO 8601 with its zone, which the database does not keep."""
    return None if value is None else _aware(value).isoformat(timespec="seconds")


def seconds_since(value: datetime | None, now: float) -> float | None:
    """Compute the seconds from a stored time to `now`."""
    return None if value is None else max(0.0, now - _aware(value).timestamp())


def _aware(value: datetime) -> datetime:
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _until(row: JobRow, now: float) -> float:
    return _aware(row.ended_at).timestamp() if row.ended_at else now
