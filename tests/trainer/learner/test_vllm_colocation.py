"""What vLLM in the trainer's process is given: merged weights from a base that stays as it was, and its threads."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.support.small_presets import make_small_base
from pool_registry.language_models.completion import Grammar
from trainer.errors import TrainingFailed
from trainer.learner import vllm_colocation
from trainer.learner.vllm_colocation import check_vllm_is_here, generate_held, merge_weights
from trainer.learner.vllm_generator import ColocatedGenerator
from trainer.recipe_sections import LoraSettings, ModelSettings


@pytest.mark.medium
def test_merged_weights_are_those_of_a_merge_and_the_base_stays_as_it_was(tmp_path):
    import torch

    from trainer.learner.load_and_save import load_learner

    base = make_small_base(tmp_path, "hub:Qwen/Qwen3-0.6B")
    model = load_learner(ModelSettings(base=str(base), precision="bfloat16", lora=LoraSettings(rank=4)), 0).model
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.01)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    merged = dict(merge_weights(model))
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())

    whole = model.merge_and_unload().state_dict()
    assert set(merged) == set(whole) - {"lm_head.weight"}  # tied: vLLM wants it once
    assert all(torch.equal(value, whole[name]) for name, value in merged.items())
    changed = [name for name, value in merged.items() if not torch.equal(value, before_of(before, name))]
    assert changed and all("_proj" in name for name in changed)


def before_of(before, name):
    stem = f"base_model.model.{name}"
    return before.get(stem, before.get(stem.replace(".weight", ".base_layer.weight")))


def test_without_vllm_the_next_action_is_named(monkeypatch):
    monkeypatch.setattr(vllm_colocation, "find_spec", lambda _: None)
    with pytest.raises(TrainingFailed, match=r"rollouts\.backend: transformers") as failure:
        check_vllm_is_here()
    assert failure.value.code == "vllm"


@pytest.mark.medium
@pytest.mark.skipif(sys.platform != "linux", reason="finds OpenMP as Linux lists it")
def test_the_thread_that_generates_has_the_threads_of_the_recipe():
    """vLLM on a CPU asks OpenMP before torch has computed in a thread, and again later: both must be the recipe's."""
    import ctypes

    import torch

    library = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libgomp" in line)
    openmp = ctypes.CDLL(library)
    before = torch.get_num_threads()
    seen = []

    def generate(prompts, _grammar):
        seen.append(openmp.omp_get_max_threads())
        return [[1] for _ in prompts], None

    torch.set_num_threads(1)
    try:
        asyncio.run(ColocatedGenerator(generate).generate([1, 2], 4))
    finally:
        torch.set_num_threads(before)
    assert seen == [1]


def test_the_grammar_of_a_call_is_set_in_trls_engine_for_that_call_alone():
    engine = SimpleNamespace(generation_kwargs={"seed": 1})
    seen = []

    def generate(*_):
        seen.append(engine.generation_kwargs)
        return [[1]], None

    trainer = SimpleNamespace(vllm_generation=engine, _generate_single_turn=generate)
    assert generate_held(trainer, [[5]], Grammar("start: X")) == ([[1]], None)
    generate_held(trainer, [[5]], None)
    assert seen == [{"seed": 1, "structured_outputs": {"grammar": "start: X"}}, {"seed": 1}]
    assert engine.generation_kwargs == {"seed": 1}
