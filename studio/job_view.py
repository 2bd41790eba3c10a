"""A job as the Train page draws it: state, progress, memory, checkpoints, and its curves as columns.

Everything is read from the job's row and folder, so that it is the same after a restart of the studio. The
keys are the contract with assets/web/train_page.js; `steps` count over the whole job.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from orchestrator.checkpoints import complete_steps, read_checkpoint
from orchestrator.errors import UnknownOrchestrator
from pool_registry.actions import JsonValue
from studio.advice import advise
from studio.machine import memory_of
from trainer.errors import TrainerError
from trainer.jobs import JobRow, JobStore
from trainer.recipe import Recipe
from trainer.workspace import BEST_KEPT, Workspace, read_lines

MAX_POINTS = 2000
RECENT = 400  # rows that advice is given on
LOG_CHARS = 20_000
NO_CURVE = {"step", "at", "epoch", "num_tokens"}
SHOWN_EVALUATION = (
    "orchestrator", "condition", "split", "tasks", "samples", "mean", "interval", "turn_errors", "p50_s",
    "speedup", "cost",
)  # fmt: skip
COUNTED = ("demonstrations", "evaluate")  # what counts its own progress beside the steps

Row = Mapping[str, JsonValue]


@dataclass(slots=True)
class Columns:
    """Metric rows folded by step: several rows of a step become one point of each curve."""

    steps: list[int] = field(default_factory=list)
    series: dict[str, list[float | None]] = field(default_factory=dict)
    _places: dict[int, int] = field(default_factory=dict)

    def take(self, row: Row) -> None:
        """Add a row. Steps may come in any order; a later row wins."""
        step = whole(row.get("step"))
        if row.get("stage") in COUNTED:
            return
        place = self._places.get(step)
        if place is None:
            place = self._places[step] = len(self.steps)
            self.steps.append(step)
            for values in self.series.values():
                values.append(None)
        for key, value in row.items():
            if key not in NO_CURVE and isinstance(value, int | float) and not isinstance(value, bool):
                values = self.series.setdefault(key, [None] * len(self.steps))
                values[place] = rounded(value)

    def document(self, most: int = MAX_POINTS) -> dict[str, Any]:
        """The columns as JSON, at most `most` points long."""
        order = sorted(range(len(self.steps)), key=self.steps.__getitem__)
        steps = [self.steps[k] for k in order]
        series = {key: [values[k] for k in order] for key, values in self.series.items()}
        if len(steps) > most:
            return {"steps": _thin_steps(steps, most), "series": {k: thinned(v, most) for k, v in series.items()}}
        return {"steps": steps, "series": series}


def thinned(values: Sequence[float | None], most: int) -> list[float | None]:
    """At most `most` values: of each run of neighbours the lowest and the highest, in the order they came.

    A spike is never lost, which averaging or leaving out every other value would do.
    """
    found: list[float | None] = []
    for first, last in _buckets(len(values), most):
        known = [k for k in range(first, last) if values[k] is not None]
        if not known:
            found += [None, None]
            continue
        low = min(known, key=lambda k: values[k] or 0.0)
        high = max(known, key=lambda k: values[k] or 0.0)
        found += [values[min(low, high)], values[max(low, high)]]
    return found


def _thin_steps(steps: Sequence[int], most: int) -> list[int]:
    return [step for first, last in _buckets(len(steps), most) for step in (steps[first], steps[last - 1])]


def _buckets(count: int, most: int) -> list[tuple[int, int]]:
    """`most // 2` runs of neighbours, each of at least two, that cover everything."""
    runs = max(1, min(most // 2, count // 2))
    edges = [count * k // runs for k in range(runs + 1)]
    return list(itertools.pairwise(edges))


@dataclass(slots=True)
class MetricsReader:
    """Follows metrics.jsonl: `poll` gives the rows that were added.

    A resumed job rewrites the file; then, or when the place is not one of this file, everything is read anew.
    """

    path: Path
    columns: Columns = field(default_factory=Columns)
    recent: deque[Row] = field(default_factory=lambda: deque(maxlen=RECENT))
    progress: dict[str, float] = field(default_factory=dict)  # of COUNTED: how many of how many
    inode: int = 0
    offset: int = 0

    @property
    def place(self) -> str:
        """Where reading stopped; a viewer gives it back as `Last-Event-ID`."""
        return f"{self.inode}:{self.offset}"

    def poll(self) -> tuple[list[Row], bool]:
        """The new rows, and whether what was known before no longer counts."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return [], False
        renewed = found.st_ino != self.inode or found.st_size < self.offset
        if renewed:
            self.columns, self.inode, self.offset = Columns(), found.st_ino, 0
            self.recent.clear()
        if found.st_size == self.offset:
            return [], renewed
        rows, self.offset = whole_lines(self.path, self.offset)
        for row in rows:
            self.columns.take(row)
            self.recent.append(row)
            for key in (f"{stage}/{which}" for stage in COUNTED for which in ("done", "total")):
                if key in row:
                    self.progress[key] = number(row[key])
        return rows, renewed

    def knows(self, place: str) -> int | None:
        """The offset that a viewer has reached, when it is one in this file."""
        inode, _, offset = place.partition(":")
        if inode != str(self.inode) or not offset.isascii() or not offset.isdigit() or int(offset) > self.offset:
            return None
        return int(offset)


def whole_lines(path: Path, offset: int) -> tuple[list[Row], int]:
    """The complete JSON lines from a byte offset on, and the offset behind them."""
    with path.open("rb") as file:
        file.seek(offset)
        text = file.read()
    end = text.rfind(b"\n") + 1
    rows: list[Row] = []
    for line in text[:end].splitlines():
        try:
            row = json.loads(line)
        except ValueError:  # torn by a kill in the middle of a write
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows, offset + end


def job_line(row: JobRow) -> dict[str, Any]:
    """A job in the list."""
    return {
        "id": row.id,
        "name": row.name,
        "kind": row.kind,
        "state": row.state,
        "stage": row.stage,
        "step": row.step,
        "steps": row.steps,
        "message": row.message,
        "code": row.code,
        "created_at": moment(row.created_at),
        "started_at": moment(row.started_at),
        "ended_at": moment(row.ended_at),
    }


def job_view(row: JobRow, jobs: JobStore, metrics: MetricsReader, now: float) -> dict[str, Any]:
    """Everything about one job but its curves and its log."""
    workspace = jobs.workspace(row.id)
    recipe = recipe_of(jobs, row.id)
    recent = list(metrics.recent)
    evaluations = evaluations_of(workspace)
    checkpoints = checkpoints_of(workspace)
    return {
        **job_line(row),
        "place": place_of(row, recipe, metrics, len(evaluations), now),
        "heartbeat_s": since(row.heartbeat, now) if row.active else None,
        "memory": memory_of(row.owner) if row.active else None,
        "ahead": _ahead(row, jobs),
        "advice": [advice.document() for advice in advise(recent, last_groups(workspace), row, recipe, now)],
        "checkpoints": _named(checkpoints, evaluations, row.id),
        "evaluations": evaluations,
        "stages": list(recipe.stages) if recipe else row.kind.split("+"),
        "sft_steps": recipe.sft.steps if recipe and recipe.sft else 0,
        "rollouts": workspace.rollouts.stat().st_size if workspace.rollouts.exists() else 0,
        "resumable": row.state in ("stopped", "failed"),
        "can_stop": row.state in ("queued", "running"),
        "tiny": bool(recipe and recipe.model.base == "starter:tiny"),
        "pool": recipe.pool if recipe else "",
        "title": recipe.title if recipe else "",
    }


def place_of(row: JobRow, recipe: Recipe | None, metrics: MetricsReader, evaluated: int, now: float) -> dict[str, Any]:
    """How far the job is: over all steps, in its stage, and how long the stage will take."""
    step = max(metrics.columns.steps, default=row.step)
    stage = row.stage
    if stage == "sft" and not step and "demonstrations/done" in metrics.progress:
        stage = "demonstrations"
    counted = stage in COUNTED and f"{stage}/total" in metrics.progress
    done, total = (step, row.steps)
    if counted:
        done, total = (int(metrics.progress[f"{stage}/{which}"]) for which in ("done", "total"))
        step = done if recipe is not None and recipe.stages == ("evaluate",) else step
    elif recipe is not None:
        done, total = _in_stage(stage, step, recipe, evaluated)
    rates = [row for row in metrics.recent if row.get("stage") == stage]
    pace = _pace(rates, f"{stage}/done" if counted else "step")
    left = total - done
    return {
        "stage": stage,
        "done": done,
        "total": total,
        "step": step,
        "steps": row.steps,
        "share": _share(row, step),
        "step_s": pace,
        "eta_s": pace * left if pace is not None and row.active and (counted or stage != "evaluate") else None,
        "elapsed_s": since(row.started_at, _until(row, now)) if row.started_at else None,
    }


def _in_stage(stage: str, step: int, recipe: Recipe, evaluated: int) -> tuple[int, int]:
    before = recipe.sft.steps if recipe.sft and stage == "grpo" else 0
    section = {"sft": recipe.sft, "grpo": recipe.grpo}.get(stage)
    if stage == "evaluate" and recipe.evaluate:
        wanted = len(recipe.evaluate.orchestrators) or 1 + len(set(recipe.stages) & {"sft", "grpo"})
        return evaluated, max(evaluated, wanted)
    return (max(0, step - before), section.steps) if section else (step, step)


def _share(row: JobRow, step: int) -> float:
    """Of the whole job's steps; a job that is done is done, however many it took."""
    if row.state == "done":
        return 1.0
    return min(1.0, step / row.steps) if row.steps else 0.0


def _pace(rows: Sequence[Row], counter: str) -> float | None:
    """Seconds a step, from the last of them."""
    times: dict[int, float] = {}
    for row in rows:
        if counter in row:
            times[whole(row[counter])] = number(row.get("at"))
    points = sorted(times.items())[-30:]
    gaps = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(points) if b[1] > a[1]]
    return median(gaps) if gaps else None


def checkpoints_of(workspace: Workspace) -> list[dict[str, Any]]:
    """The complete checkpoints, newest first; `best` marks the one with the highest check."""
    found = []
    for step, folder in complete_steps(workspace.checkpoints):
        try:
            manifest = read_checkpoint(folder)
        except UnknownOrchestrator:  # pruned since it was listed
            continue
        found.append(
            {
                "step": step,
                "stage": manifest.stage,
                "kind": manifest.kind,
                "created_at": manifest.created_at,
                "bytes": sum(mark.size for mark in manifest.files.values()),
                "correct": _finite(manifest.metrics.get(BEST_KEPT)),
                "valid_turns": _finite(manifest.metrics.get("check/valid_turns")),
                "best": False,
            }
        )
    measured = [each for each in found if each["correct"] is not None]
    if measured:
        max(measured, key=lambda each: (each["correct"], each["step"]))["best"] = True
    return found


def _named(checkpoints: list[dict[str, Any]], evaluations: list[dict[str, Any]], job: str) -> list[dict[str, Any]]:
    """Each checkpoint with the name it is run by, and its evaluation if there is one."""
    seen = [each for each in evaluations if each.get("condition") in (None, "seen")]
    by_name = {each.get("orchestrator"): each for each in seen}
    named = [{**each, "name": f"{job}@{each['step']}"} for each in checkpoints]
    return [{**each, "evaluation": by_name.get(each["name"])} for each in named]


def evaluations_of(workspace: Workspace) -> list[dict[str, Any]]:
    """What the evaluate stage measured, without the episodes."""
    return [
        {key: row.get(key) for key in SHOWN_EVALUATION} | {"cells": _cells(row.get("cells"))}
        for row in read_lines(workspace.evaluations)
    ]


def _cells(cells: JsonValue) -> list[dict[str, Any]]:
    if not isinstance(cells, list):
        return []
    return [{key: cell.get(key) for key in ("family", "level", "tasks", "mean")} for cell in cells]


def last_groups(workspace: Workspace, most: int = 60, read: int = 400_000) -> list[Row]:
    """The newest groups of episodes, without reading a long file."""
    try:
        size = workspace.rollouts.stat().st_size
        with workspace.rollouts.open("rb") as file:
            file.seek(max(0, size - read))
            lines = file.read().split(b"\n")[1 if size > read else 0 : -1]
    except FileNotFoundError:
        return []
    rows: list[Row] = []
    for line in lines[-most:]:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def recipe_of(jobs: JobStore, job: str) -> Recipe | None:
    """The recipe of a job; None when its file is gone or damaged."""
    try:
        return jobs.recipe(job)
    except (OSError, UnicodeDecodeError, TrainerError):
        return None


def _ahead(row: JobRow, jobs: JobStore) -> list[str]:
    """What a queued job waits for."""
    if row.state != "queued":
        return []
    others = [each for each in jobs.all() if each.id != row.id]
    return [each.id for each in others if each.active or (each.state == "queued" and each.created_at < row.created_at)]


def whole(value: JsonValue) -> int:
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else 0


def number(value: JsonValue) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def rounded(value: float) -> float | None:
    """Five significant digits are more than a curve can show; NaN is no JSON."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def moment(value: datetime | None) -> str | None:
    """ISO 8601 with its zone: the database gives times back without it."""
    return None if value is None else _aware(value).isoformat(timespec="seconds")


def since(value: datetime | None, now: float) -> float | None:
    """Seconds from a stored time to `now`."""
    return None if value is None else max(0.0, now - _aware(value).timestamp())


def _aware(value: datetime) -> datetime:
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _until(row: JobRow, now: float) -> float:
    return _aware(row.ended_at).timestamp() if row.ended_at else now
