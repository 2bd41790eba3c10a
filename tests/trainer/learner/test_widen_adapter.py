"""A wider adapter computes what the narrow one did, is a checkpoint, and learns from there."""

from __future__ import annotations

import json

import pytest

from orchestrator.checkpoints import open_checkpoint
from scripts.widen_adapter import widen, widen_checkpoint


def test_a_wider_adapter_multiplies_as_before_and_has_new_rows_to_learn_with():
    import torch

    torch.manual_seed(0)
    narrow = {"x.lora_A.weight": torch.randn(4, 10), "x.lora_B.weight": torch.randn(6, 4)}
    wide = widen(narrow, 9, seed=1)
    a, b = wide["x.lora_A.weight"], wide["x.lora_B.weight"]
    assert (a.shape, b.shape) == ((9, 10), (6, 9))
    torch.testing.assert_close(b @ a, narrow["x.lora_B.weight"] @ narrow["x.lora_A.weight"])
    assert a[4:].abs().min() > 0  # B learns only where A is not zero


def test_the_widened_reader_is_a_checkpoint_with_the_same_scale(tmp_path):
    from safetensors.torch import load_file

    rank = json.loads((open_checkpoint("smollm2-reader")[0] / "adapter_config.json").read_text())["r"] + 8
    widen_checkpoint("smollm2-reader", rank, 1, tmp_path / "wide")
    folder, checkpoint = open_checkpoint(str(tmp_path / "wide"))
    config = json.loads((folder / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"] / config["r"], checkpoint.kind) == (rank, 2.0, "adapter")
    shapes = {min(weight.shape) for weight in load_file(folder / "adapter_model.safetensors").values()}
    assert shapes == {rank}


def test_a_rank_that_is_not_higher_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="must be higher"):
        widen_checkpoint("smollm2-reader", 4, 1, tmp_path / "wide")
    assert not (tmp_path / "wide").exists()
