"""A job as the Train page draws it: state, progress, memory, advice, checkpoints and evaluations.

Everything is read from the job's row and folder, so that it is the same after a restart of the studio. The
keys are the contract with assets/web/train/job_view.js; `steps` count over the whole job. Its curves come from
job_metrics.py.
"""

from __future__ import annotations

import json
import math
from typing import Any

from orchestrator.checkpoints import complete_steps, read_checkpoint
from orchestrator.errors import UnknownOrchestrator
from pool_registry.actions import JsonValue
from studio.pages.train.advice import advise
from studio.pages.train.curves import MetricsReader, Row
from studio.pages.train.machine_load import memory_of
from studio.pages.train.progress import moment, place_of, since
from trainer.errors import TrainerError
from trainer.jobs.job_folder import BEST_METRIC, JobFolder, read_lines
from trainer.jobs.queue import JobRow, JobStore
from trainer.recipe import Recipe

LOG_CHARS = 20_000
SHOWN_EVALUATION = (
    "orchestrator", "condition", "split", "tasks", "samples", "mean", "interval", "turn_errors", "p50_s",
    "speedup", "cost",
)  # fmt: skip


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
    job_folder = jobs.folder(row.id)
    recipe = recipe_of(jobs, row.id)
    recent = list(metrics.recent)
    evaluations = evaluations_of(job_folder)
    checkpoints = checkpoints_of(job_folder)
    return {
        **job_line(row),
        "place": place_of(row, recipe, metrics, len(evaluations), now),
        "heartbeat_s": since(row.heartbeat, now) if row.active else None,
        "memory": memory_of(row.owner) if row.active else None,
        "ahead": _ahead(row, jobs),
        "advice": [advice.document() for advice in advise(recent, last_groups(job_folder), row, recipe, now)],
        "checkpoints": _named(checkpoints, evaluations, row.id),
        "evaluations": evaluations,
        "stages": list(recipe.stages) if recipe else row.kind.split("+"),
        "sft_steps": recipe.sft.steps if recipe and recipe.sft else 0,
        "rollouts": job_folder.rollouts.stat().st_size if job_folder.rollouts.exists() else 0,
        "resumable": row.state in ("stopped", "failed"),
        "can_stop": row.state in ("queued", "running"),
        "tiny": bool(recipe and recipe.model.base == "starter:tiny"),
        "pool": recipe.pool if recipe else "",
        "title": recipe.title if recipe else "",
    }


def checkpoints_of(job_folder: JobFolder) -> list[dict[str, Any]]:
    """The complete checkpoints, newest first; `best` marks the one with the highest check."""
    found = []
    for step, folder in complete_steps(job_folder.checkpoints):
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
                "correct": _finite(manifest.metrics.get(BEST_METRIC)),
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


def evaluations_of(job_folder: JobFolder) -> list[dict[str, Any]]:
    """What the evaluate stage measured, without the episodes."""
    return [
        {key: row.get(key) for key in SHOWN_EVALUATION} | {"cells": _cells(row.get("cells"))}
        for row in read_lines(job_folder.evaluations)
    ]


def _cells(cells: JsonValue) -> list[dict[str, Any]]:
    if not isinstance(cells, list):
        return []
    return [{key: cell.get(key) for key in ("family", "level", "tasks", "mean")} for cell in cells]


def last_groups(job_folder: JobFolder, most: int = 60, read: int = 400_000) -> list[Row]:
    """The newest groups of episodes, without reading a long file."""
    try:
        size = job_folder.rollouts.stat().st_size
        with job_folder.rollouts.open("rb") as file:
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


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
