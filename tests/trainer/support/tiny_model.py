"""An untrained model with a tokenizer and a chat template: real enough for TRL, made in seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.tasks.registry import open_source


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a base model that has learnt nothing; the same weights in every run."""
    import torch

    from scripts.build_tiny_base import build_tokenizer, new_model, save

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tokenizer = build_tokenizer(open_source("ledger,atlas").tasks("train", 60))
    save(new_model(tokenizer, 0), tokenizer, folder, "base", 0)
    return folder
