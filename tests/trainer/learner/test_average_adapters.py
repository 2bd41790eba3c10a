"""Averages of two adapters."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.checkpoints import Checkpoint, read_checkpoint, seal
from orchestrator.out_of_depth.learnt_queries import FILE as LEARNT_QUERIES
from scripts import average_adapters
from scripts.average_adapters import WEIGHTS, average, average_checkpoints


def test_a_share_of_each_keeps_the_precision():
    import torch

    weights = {"a": torch.ones(2, 3, dtype=torch.float16)}
    averaged = average(weights, {"a": torch.zeros(2, 3)}, 0.25)
    assert averaged["a"].dtype == torch.float16 and torch.equal(averaged["a"], torch.full((2, 3), 0.25).half())


@pytest.mark.parametrize(("name", "length"), [("b", 2), ("a", 3)])
def test_adapters_of_other_shapes_are_refused(name, length):
    import torch

    with pytest.raises(SystemExit, match="differ"):
        average({"a": torch.ones(2)}, {name: torch.zeros(length)}, 0.5)


def test_a_share_outside_its_range_is_refused():
    import torch

    with pytest.raises(SystemExit, match="from 0 to 1"):
        average({"a": torch.ones(2)}, {"a": torch.ones(2)}, 1.5)


@pytest.mark.parametrize("queries_of_other", [False, True])
def test_the_average_is_a_checkpoint_with_the_queries_that_were_chosen(monkeypatch, tmp_path: Path, queries_of_other):
    for name, weight in (("broad", 0.0), ("narrow", 1.0)):
        write_adapter(tmp_path / name, name, weight)
    monkeypatch.setattr(
        average_adapters, "open_checkpoint", lambda name: (tmp_path / name, read_checkpoint(tmp_path / name))
    )
    average_checkpoints("narrow", "broad", 0.7, tmp_path / "out", queries_of_other)
    assert read_checkpoint(tmp_path / "out", verify=True).name == "narrow"
    kept = (tmp_path / "out" / LEARNT_QUERIES).read_text()
    assert kept == ("of broad" if queries_of_other else "of narrow")


def write_adapter(folder: Path, name: str, weight: float) -> None:
    import torch
    from safetensors.torch import save_file

    folder.mkdir()
    save_file({"a": torch.full((2,), weight)}, folder / WEIGHTS)
    (folder / LEARNT_QUERIES).write_text(f"of {name}")
    seal(folder, Checkpoint(name=name, kind="adapter", base="b", stage="sft"))
