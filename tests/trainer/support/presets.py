"""Presets at toy size, run as jobs in this process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.support.small_presets import make_small_base, shrink_recipe
from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from trainer.job_process import run_job
from trainer.jobs.job_folder import JobFolder
from trainer.jobs.queue import JobRow, JobStore
from trainer.methods.grpo.method import GRPO
from trainer.recipe import Recipe, load_recipe


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A job that has ended: its row and its folder."""

    row: JobRow
    folder: JobFolder


def load_small_preset(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A preset on a random model in `folder`. Presets for a GPU then train with TRL's own trainers, as there."""
    from trainer.learner import cpu_trainers

    preset = load_recipe(name)
    if preset.model.base.startswith("hub:"):
        monkeypatch.setattr(cpu_trainers, "SMALL_VOCABULARY", 0)
    return shrink_recipe(preset, make_small_base(folder, preset.model.base))


def use_backend(recipe: Recipe, backend: str) -> Recipe:
    """The recipe with another backend of its rollouts."""
    grpo = GRPO.read(recipe)
    if grpo is None:
        return recipe
    rollouts = grpo.rollouts.model_copy(update={"backend": backend})
    return GRPO.edit(recipe, rollouts=rollouts)


def run_as_job(recipe: Recipe, home: Path, monkeypatch: pytest.MonkeyPatch) -> FinishedJob:
    """Run the recipe as its own process would, to the job's end."""
    monkeypatch.setenv("PODIUM_HOME", str(home))
    store = open_store(find_home(home))
    try:
        jobs = JobStore(store.engine, store.home)
        job = jobs.submit(recipe, here=True).id
        run_job(job, store, jobs)
        return FinishedJob(jobs.get(job), jobs.folder(job))
    finally:
        store.close()
