"""What a machine does to a job: memory that runs out in any stage, too little of it, a server that dies.

Each ends the job with its cause and what to do next, and keeps its checkpoints.
"""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.checkpoints import complete_steps
from tests.trainer.support.presets import load_small_preset, run_as_job, use_backend
from trainer.errors import TrainingFailed
from trainer.learner.generator import SamplingParams
from trainer.learner.vllm_generator import ServerGenerator
from trainer.memory_fit import must_fit
from trainer.memory_fit.stages import GB, Machine
from trainer.recipe import load_recipe


def raise_out_of_memory(*_arguments, **_more):
    import torch

    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total of 23.6 GiB")


STAGES = {
    "loading": ("transformers.AutoModelForCausalLM.from_pretrained", 0),
    "sft": ("trl.SFTTrainer.compute_loss", 0),
    "sampling": ("trainer.learner.transformers_generator.TransformersGenerator._prefill", 2),
    "grpo": ("trl.GRPOTrainer.compute_loss", 2),
}


@pytest.mark.medium
@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_memory_that_runs_out_names_what_to_change_and_keeps_the_checkpoint(stage, tmp_path, monkeypatch):
    place, last_step = STAGES[stage]
    recipe = use_backend(load_small_preset("reader-gpu", tmp_path / "base", monkeypatch), "transformers")
    few = recipe.tasks.model_copy(update={"source": "ledger", "levels": (1,), "count": 4})
    recipe = recipe.model_copy(update={"evaluate": None, "tasks": few, "pools": None})
    for name in ("sft", "grpo"):
        settings = getattr(recipe, name)
        saving = settings.saving.model_copy(update={"check_tasks": 0})
        recipe = recipe.model_copy(update={name: settings.model_copy(update={"saving": saving})})
    monkeypatch.setattr(place, raise_out_of_memory)
    job = run_as_job(recipe, tmp_path, monkeypatch)
    assert (job.row.state, job.row.code) == ("failed", "out_of_memory")
    assert any(key in job.row.message for key in ("sft.batch", "rollouts.group", "grpo.micro_batch"))
    assert max((step for step, _ in complete_steps(job.folder.checkpoints)), default=0) == last_step


@pytest.mark.medium
def test_a_preset_larger_than_the_machine_is_refused_with_what_to_change(tmp_path, monkeypatch):
    recipe = load_small_preset("reader-gpu", tmp_path, monkeypatch)
    with pytest.raises(TrainingFailed, match=r"a watch has 0 MB\. Change the recipe: .*smaller base model") as failure:
        must_fit.check_it_fits(recipe, Machine("a watch", True, 1000, 1000))
    assert failure.value.code == "too_large"
    with pytest.raises(TrainingFailed, match=r"another program uses the rest \(nvidia-smi names it\)") as failure:
        must_fit.check_it_fits(recipe, Machine("a card", True, 24 * GB, 1000))
    assert failure.value.code == "memory_in_use"
    must_fit.check_it_fits(recipe, Machine("a card", True, 24 * GB, 24 * GB))


@pytest.mark.medium
def test_a_model_of_unknown_size_is_let_through():
    must_fit.check_it_fits(load_recipe("reader-gpu"), Machine("a watch", True, 1000, 1000))


def test_an_endpoint_that_died_is_named_with_the_next_action():
    generator = ServerGenerator("http://127.0.0.1:9/v1", "base", SamplingParams())
    with pytest.raises(TrainingFailed, match=r"127\.0\.0\.1:9/v1 did not generate.*then resume") as failure:
        asyncio.run(generator.generate([1, 2], 4))
    assert failure.value.code == "vllm"
