"""Weights move by what the learning rate says, in whatever precision a recipe computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.presets import change_precision, learn_letters, list_training_presets, measure_moves
from bench.support.small_presets import find_architecture, make_small_base
from tests.trainer.support.presets import load_small_preset, run_as_job
from trainer.jobs.job_folder import JobFolder
from trainer.recipe import Recipe, load_recipe
from trainer.recipe_sections import LoraSettings, ModelSettings, OptimizerSettings


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


@pytest.mark.parametrize(("speedup", "precision"), [(0.2, "float32"), (1.1, "float32"), (2.5, "bfloat16")])
def test_auto_is_bfloat16_where_the_processor_multiplies_it_faster(speedup, precision, monkeypatch, tmp_path):
    import torch

    from trainer.learner.load_and_save import load_learner

    monkeypatch.setattr("trainer.precision.measure_speedup", lambda: speedup)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    base = make_small_base(tmp_path, "hub:Qwen/Qwen3-0.6B")
    model = load_learner(ModelSettings(base=str(base), precision="auto", lora=LoraSettings()), 0).model
    assert {str(weight.dtype) for weight in model.parameters() if not weight.requires_grad} == {f"torch.{precision}"}


@pytest.mark.parametrize(
    ("precision", "speedup", "warned"),
    [("bfloat16", 0.5, True), ("bfloat16", 1.1, False), ("auto", 0.5, False), ("float32", 0.5, False)],
)
def test_bfloat16_on_a_processor_that_takes_longer_for_it_says_that_float32_is_faster(
    precision, speedup, warned, monkeypatch, caplog
):
    import torch

    from trainer.precision import warn_of_slow_bfloat16

    monkeypatch.setattr("trainer.precision.measure_speedup", lambda: speedup)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    warn_of_slow_bfloat16(ModelSettings(precision=precision))
    assert ("model.precision: auto" in caplog.text) is warned


def test_an_apple_gpu_does_not_go_by_what_its_processor_is_faster_at(monkeypatch):
    import torch

    from trainer.precision import choose_precision

    monkeypatch.setattr("trainer.precision.measure_speedup", lambda: 2.5)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_precision(ModelSettings(precision="auto"), gpu=False) == "float32"


def test_the_faster_precision_is_the_one_that_multiplies_in_less_time(monkeypatch):
    """Timed by a clock of our own: each product takes what its precision costs."""
    import torch

    from trainer.precision import measure_speedup

    costs, now = {torch.float32: 3.0, torch.bfloat16: 2.0}, [0.0]

    def multiply(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        assert left.shape[1] == right.shape[1]
        now[0] += costs[left.dtype]
        return left

    monkeypatch.setattr(torch.nn.functional, "linear", multiply)
    monkeypatch.setattr("trainer.precision.time.perf_counter", lambda: now[0])
    assert measure_speedup.__wrapped__() == pytest.approx(1.5)


def describe_learning(recipe: Recipe) -> tuple[object, ...]:
    """What decides how far the weights of a preset move beside its rates. Presets differ further in tasks and counts,
    which are the same here for all."""
    return (
        recipe.model.base.split(":")[0],  # on a model of the Hub TRL's own trainers run
        find_architecture(recipe.model.base),
        recipe.model.lora is None,
        recipe.model.checkpointing,
        recipe.model.dialect,
        recipe.stages,
        recipe.grpo and (recipe.grpo.loss.type, recipe.grpo.loss.iterations, recipe.grpo.optimizer.schedule),
    )


def list_kinds() -> list[str]:
    """A preset of each kind of learning: the one with the smallest rate, which bfloat16 loses first."""
    presets = {name: load_recipe(name) for name in list_training_presets()}
    rates = {name: (one.sft or one.grpo).optimizer.learning_rate for name, one in presets.items()}
    fastest_first = sorted(presets, key=rates.__getitem__, reverse=True)
    return sorted({describe_learning(presets[name]): name for name in fastest_first}.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", list_kinds())
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
    def run(changed: Recipe, home: Path) -> JobFolder:
        job = run_as_job(changed, home, monkeypatch)
        assert job.row.state == "done", job.row.message
        return job.folder

    recipe, moves = learn_letters(recipe, folder), {}
    for precision in ("float32", "bfloat16"):
        moves[precision] = measure_moves(change_precision(recipe, precision), folder / precision, run)
    assert set(moves["bfloat16"]) == {stage.name for stage in recipe.training_stages}
    for stage, move in moves["bfloat16"].items():
        assert move > 0
        assert move == pytest.approx(moves["float32"][stage], rel=0.1), stage
