"""A job as the Train page draws it: state, progress, memory, advice, checkpoints and evaluations.

Everything is read from the job's row and folder, so that it is the same after a restart of the studio. schema.py has
the documents.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from pydantic import ValidationError

from orchestrator.checkpoints import complete_steps, read_checkpoint, read_job_name
from orchestrator.errors import UnknownOrchestrator
from orchestrator.policies.labels import label_orchestrator
from studio.pages.train.advice import advise
from studio.pages.train.curves import MetricsReader
from studio.pages.train.machine_load import read_machine_load
from studio.pages.train.progress import compute_job_progress, isoformat, seconds_since
from studio.pages.train.schema import (
    JobChart,
    JobCheckpoint,
    JobEvaluation,
    JobLine,
    JobPhase,
    JobStage,
    JobView,
    OutcomeSentence,
)
from trainer.errors import TrainerError
from trainer.jobs.job_folder import BEST_METRIC, JobFolder, read_lines
from trainer.jobs.outcome import describe_outcome
from trainer.jobs.queue import RESUMABLE, JobRow, JobStore
from trainer.methods.advice import Row
from trainer.recipe import Recipe

LOG_CHARS = 20_000


def build_job_line(row: JobRow) -> JobLine:
    """A job in the list."""
    return JobLine(
        id=row.id,
        name=row.name,
        label=read_job_name(row.id) or row.id,
        kind=row.kind,
        state=row.state,
        stage=row.stage,
        step=row.step,
        steps=row.steps,
        message=row.message,
        code=row.code,
        where=row.where,
        gpus=list(row.own_gpus),
        processes=row.processes,
        created_at=isoformat(row.created_at),
        started_at=isoformat(row.started_at),
        ended_at=isoformat(row.ended_at),
    )


def build_job_view(row: JobRow, jobs: JobStore, metrics: MetricsReader, now: float) -> JobView:
    """Build everything about one job but its curves and its log."""
    job_folder = jobs.folder(row.id)
    recipe = load_job_recipe(jobs, row.id)
    recent = list(metrics.recent)
    evaluations = list_evaluations(job_folder)
    return JobView(
        **dict(build_job_line(row)),
        place=compute_job_progress(row, recipe, metrics, len(evaluations), now),
        heartbeat_s=seconds_since(row.heartbeat, now) if row.active else None,
        memory=read_machine_load(row.owner) if row.active and not row.place.is_rented else None,
        ahead=_jobs_ahead(row, jobs),
        advice=advise(recent, read_last_groups(job_folder), row, recipe, now),
        checkpoints=list_checkpoints(job_folder, row.id, evaluations),
        evaluations=evaluations,
        stages=list(recipe.stages) if recipe else row.kind.split("+"),
        trained=list_job_stages(recipe) if recipe else [],
        phases=list_job_phases(recipe) if recipe else [],
        rollouts=job_folder.rollouts.stat().st_size if job_folder.rollouts.exists() else 0,
        resumable=row.state in RESUMABLE,
        can_stop=row.state in ("queued", "running"),
        tiny=bool(recipe and recipe.model.base == "starter:tiny"),
        pool=recipe.pool if recipe else "",
        title=recipe.title if recipe else "",
        outcome=build_outcome(row, recipe, job_folder),
        who=read_sentence(job_folder.who),
        taught=read_sentence(job_folder.taught),
    )


def read_sentence(file: Path) -> str:
    """What a stage says came of it; "" for a job that has not got there, and for a damaged file."""
    try:
        return str(json.loads(file.read_bytes())["sentence"])
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return ""


def build_outcome(row: JobRow, recipe: Recipe | None, job_folder: JobFolder) -> OutcomeSentence | None:
    """The closing sentence of a job that is done."""
    if recipe is None or row.state != "done":
        return None
    outcome = describe_outcome(row.id, recipe, job_folder)
    if outcome is None:
        return None
    return OutcomeSentence(
        sentence=outcome.sentence,
        verdict=outcome.verdict,
        lacks_own=outcome.lacks_own,
        orchestrator=outcome.orchestrator,
        start=outcome.start,
        pool=outcome.pool,
    )


def list_job_phases(recipe: Recipe) -> list[JobPhase]:
    """The phases that follow the main runs."""
    return [
        JobPhase(name=phase.name, border=stage.before + phase.before)
        for stage in recipe.training_stages
        for phase in stage.method.list_phases(stage.settings)
    ]


def list_job_stages(recipe: Recipe) -> list[JobStage]:
    """The stages that train, as the page draws them."""
    return [
        JobStage(
            name=stage.name,
            label=stage.method.label,
            before=stage.before,
            steps=stage.steps,
            rollouts=stage.method.has_rollouts,
            charts=[JobChart(**asdict(chart)) for chart in stage.method.charts],
        )
        for stage in recipe.training_stages
    ]


def list_checkpoints(job_folder: JobFolder, job: str, evaluations: Sequence[JobEvaluation]) -> list[JobCheckpoint]:
    """The complete checkpoints with their evaluations, newest first; `best` marks the one with the highest check."""
    measured = {
        evaluation.orchestrator: evaluation for evaluation in evaluations if evaluation.condition in (None, "seen")
    }
    checkpoints = []
    for step, folder in complete_steps(job_folder.checkpoints):
        try:
            manifest = read_checkpoint(folder)
        except UnknownOrchestrator:  # pruned since it was listed
            continue
        name = f"{job}@{step}"
        checkpoints.append(
            JobCheckpoint(
                step=step,
                stage=manifest.stage,
                phase=manifest.phase,
                kind=manifest.kind,
                created_at=manifest.created_at,
                bytes=sum(mark.size for mark in manifest.files.values()),
                correct=_finite(manifest.metrics.get(BEST_METRIC)),
                valid_turns=_finite(manifest.metrics.get("check/valid_turns")),
                best=False,
                name=name,
                label=label_orchestrator(name),
                evaluation=measured.get(name),
            )
        )
    checked = [(checkpoint.correct, checkpoint.step) for checkpoint in checkpoints if checkpoint.correct is not None]
    best = max(checked, default=None)
    return [
        checkpoint.model_copy(update={"best": (checkpoint.correct, checkpoint.step) == best})
        for checkpoint in checkpoints
    ]


def list_evaluations(job_folder: JobFolder) -> list[JobEvaluation]:
    """What the evaluate stage measured; lines that cannot be read are left out."""
    evaluations = []
    for row in read_lines(job_folder.evaluations):
        with suppress(ValidationError):
            evaluations.append(
                JobEvaluation.model_validate({**row, "label": label_orchestrator(str(row.get("orchestrator") or ""))})
            )
    return evaluations


def read_last_groups(job_folder: JobFolder, most: int = 60, read: int = 400_000) -> list[Row]:
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


def load_job_recipe(jobs: JobStore, job: str) -> Recipe | None:
    """The recipe of a job; None when its file is gone or damaged."""
    try:
        return jobs.recipe(job)
    except (OSError, UnicodeDecodeError, TrainerError):
        return None


def _jobs_ahead(row: JobRow, jobs: JobStore) -> list[str]:
    """What a queued job waits for."""
    if row.state != "queued" or not row.place.is_here:
        return []
    return [
        other.id
        for other in jobs.all()
        if other.id != row.id
        and other.place.is_here
        and (other.active or (other.state == "queued" and other.created_at < row.created_at))
    ]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
