"""Every preset that ships runs: the same recipe through the same code, on a random model of two layers."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

from orchestrator.checkpoints import complete_steps, read_checkpoint
from tests.trainer.support.presets import FinishedJob, load_small_preset, run_as_job, use_backend
from trainer.jobs.job_folder import read_lines
from trainer.recipe import list_presets, load_recipe

pytestmark = pytest.mark.slow

HAS_VLLM = find_spec("vllm") is not None
ON_A_SERVER = "reader-gpu"  # its rollouts also with vLLM as a server of their own, to which adapters go
# vLLM in the trainer's process is the same code for every preset, and takes a minute to start: two use it, one
# of a reader and one with phases. The others run with transformers in its place.
WITH_VLLM = ("reader-gpu", "conductor-paper")
# Agents of 135 million weights, which bench/baselines.py runs; and what learns from recorded runs (methods/dpo).
ELSEWHERE = ("evaluate-baselines", "dpo-own-episodes")
NO_VLLM = pytest.mark.skipif(not HAS_VLLM, reason="vLLM cannot be imported here")


def list_runs():
    """(preset, backend): the backend of each; transformers in place of vLLM where that is missing, and in most."""
    for name in list_presets():
        grpo = load_recipe(name).grpo
        backend = grpo.rollouts.backend if grpo else "none"
        if backend.startswith("vllm"):
            if name in WITH_VLLM:
                yield pytest.param(name, backend, id=f"{name}-{backend}", marks=NO_VLLM)
            if name not in WITH_VLLM or not HAS_VLLM:
                yield pytest.param(name, "transformers", id=f"{name}-transformers_in_place_of_{backend}")
            if name == ON_A_SERVER:
                yield pytest.param(name, "vllm", id=f"{name}-vllm", marks=NO_VLLM)
        elif name not in ELSEWHERE:
            yield pytest.param(name, backend, id=f"{name}-{backend}")


@pytest.fixture
def environment():
    """The environment is as before afterwards: TRL, vLLM and torch's compiler write to it, and read it in C++."""
    before = os.environ.copy()
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(("name", "backend"), list_runs())
def test_a_preset_runs_from_its_first_task_to_its_evaluation(name, backend, tmp_path, monkeypatch):
    recipe = load_small_preset(name, tmp_path / "base", monkeypatch)
    job = run_as_job(use_backend(recipe, backend) if recipe.grpo else recipe, tmp_path, monkeypatch)
    assert (job.row.state, job.row.message) == ("done", "")
    trained = [stage.name for stage in recipe.training_stages]
    checkpoints = [(step, read_checkpoint(folder)) for step, folder in complete_steps(job.folder.checkpoints)]
    steps = {manifest.stage: step for step, manifest in reversed(checkpoints) if not manifest.phase}
    assert steps == {stage: 2 * (place + 1) for place, stage in enumerate(trained)}
    phases = recipe.grpo.phases if recipe.grpo else ()
    assert [manifest.phase for _, manifest in reversed(checkpoints) if manifest.phase] == [one.name for one in phases]
    assert_stages_are_on_record(job, trained, len(phases))
    assert not recipe.evaluate or read_lines(job.folder.evaluations)


def assert_stages_are_on_record(job: FinishedJob, stages: list[str], phases: int = 0) -> None:
    rows = read_lines(job.folder.metrics)
    for stage in stages:
        steps = 2 + (phases if stage == "grpo" else 0)
        assert sum(1 for row in rows if row["stage"] == stage and "loss" in row) == steps, stage
    if "grpo" in stages:
        assert all(row["time/generation_s"] > 0 for row in rows if "rollout/correct" in row)
