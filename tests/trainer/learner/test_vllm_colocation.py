"""What vLLM in the trainer's process is given: merged weights from a base that stays as it was."""

from __future__ import annotations

import pytest

from bench.small_presets import make_small_base
from trainer.errors import TrainingFailed
from trainer.learner import vllm_colocation
from trainer.learner.vllm_colocation import check_vllm_is_here, merge_weights
from trainer.recipe import LoraSettings, ModelSettings


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
