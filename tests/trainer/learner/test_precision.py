"""Weights move by what the learning rate says, in whatever precision a recipe computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.small_presets import make_small_base
from orchestrator.checkpoints import complete_steps, read_checkpoint
from tests.trainer.support.presets import load_small_preset, run_as_job, use_backend
from trainer.recipe import (
    LoraSettings,
    ModelSettings,
    OptimizerSettings,
    Recipe,
    RewardSettings,
    list_presets,
    load_recipe,
)

TRAINING_PRESETS = [name for name in list_presets() if load_recipe(name).stages != ("evaluate",)]
REWARD = """
def score_letters(sample, group):
    text = "".join(done.turn.text or "" for done in sample.written_rounds)
    return sum(map(ord, text)) % 101 / 100  # random turns are all wrong, and yet there must be something to learn
"""


@pytest.mark.medium
@pytest.mark.parametrize("lora", [None, LoraSettings()], ids=["every-weight", "adapter"])
def test_what_learns_is_float32_and_bfloat16_is_what_computes(lora, tmp_path):
    import torch

    from trainer.learner.load_and_save import build_trainer_arguments, load_learner

    base = make_small_base(tmp_path, "hub:Qwen/Qwen3-0.6B")
    settings = ModelSettings(base=str(base), precision="bfloat16", lora=lora)
    weights = load_learner(settings, 0).model.parameters()
    dtypes = {(weight.requires_grad, str(weight.dtype)) for weight in weights}
    frozen = {(False, "torch.bfloat16")} if lora else set()
    assert dtypes == {(True, "torch.float32")} | frozen
    arguments = build_trainer_arguments(settings, OptimizerSettings(), 1, tmp_path)
    assert arguments["bf16"] is (lora is None or torch.cuda.is_available())
    single = settings.model_copy(update={"precision": "float32"})
    assert not build_trainer_arguments(single, OptimizerSettings(), 1, tmp_path)["bf16"]


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINING_PRESETS)
def test_a_preset_moves_its_weights_as_in_float32(name, tmp_path, monkeypatch):
    recipe = load_small_preset(name, tmp_path / "base", monkeypatch)
    assert_moves_as_in_float32(recipe, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["single-gpu-80gb", "conductor-paper"])
def test_every_weight_moves_as_in_float32_at_the_smallest_rate(name, tmp_path, monkeypatch):
    """With all weights in bfloat16 a rate of 1e-6 moved 1/680 of what it moves in float32."""
    recipe = load_small_preset(name, tmp_path / "base", monkeypatch)
    model = recipe.model.model_copy(update={"lora": None})
    stages = {}
    for stage in ("sft", "grpo"):
        if (settings := getattr(recipe, stage)) is not None:
            optimizer = settings.optimizer.model_copy(update={"learning_rate": 1e-6, "schedule": "constant"})
            stages[stage] = settings.model_copy(update={"optimizer": optimizer})
    assert_moves_as_in_float32(recipe.model_copy(update={"model": model, **stages}), tmp_path, monkeypatch)


def assert_moves_as_in_float32(recipe: Recipe, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves = {}
    for precision in ("float32", "bfloat16"):
        model = recipe.model.model_copy(update={"precision": precision})
        changed = recipe.model_copy(update={"model": model})
        moves[precision] = measure_moves(only_training(changed, folder), folder / precision, monkeypatch)
    assert set(moves["bfloat16"]) == set(recipe.stages) - {"evaluate"}
    for stage, move in moves["bfloat16"].items():
        assert move > 0
        assert move == pytest.approx(moves["float32"][stage], rel=0.1), stage


def only_training(recipe: Recipe, folder: Path) -> Recipe:
    """No evaluation, and rewards that differ though every turn of a random model is wrong."""
    recipe = use_backend(recipe, "transformers").model_copy(update={"evaluate": None})
    if recipe.grpo is None:
        return recipe
    (file := folder / "reward.py").write_text(REWARD, encoding="utf-8")
    rollouts = recipe.grpo.rollouts.model_copy(update={"mixed_only": False, "group": 4, "max_rounds": 1})
    saving = recipe.grpo.saving.model_copy(update={"check_tasks": 0})
    reward = RewardSettings(term=f"{file}:score_letters")
    changes = {"rollouts": rollouts, "rewards": (reward,), "micro_batch": 4, "saving": saving}
    return recipe.model_copy(update={"grpo": recipe.grpo.model_copy(update=changes)})


def measure_moves(recipe: Recipe, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The length of the way that the weights went in each stage."""
    from trainer.learner.load_and_save import load_learner

    job = run_as_job(recipe, home, monkeypatch)
    assert job.row.state == "done", job.row.message
    seed = (recipe.sft or recipe.grpo).optimizer.seed  # type: ignore[union-attr]
    learner = load_learner(recipe.model, seed)
    before = {
        name: value for name, value in learner.model.state_dict().items() if not learner.adapter or "lora_" in name
    }
    moves = {}
    for _, folder in reversed(complete_steps(job.folder.checkpoints)):
        after = read_weights(folder)
        moves[read_checkpoint(folder).stage] = measure_way(before, after)
        before = after
    return moves


def read_weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    file = next(path for name in ("adapter_model", "model") if (path := folder / f"{name}.safetensors").exists())
    weights: dict[str, Any] = load_file(file)
    assert {str(value.dtype) for value in weights.values()} == {"torch.float32"}
    return weights


def measure_way(before: dict[str, Any], after: dict[str, Any]) -> float:
    plain = {name.replace(".default", ""): value.float().cpu() for name, value in before.items()}
    return float(sum(((value - plain[name]) ** 2).sum() for name, value in after.items()) ** 0.5)
