"""The store of a data folder with its jobs; and an untrained model with a tokenizer and a chat template: real enough
for TRL, made once for a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from orchestrator.traces.store import Store, open_store
from pool_registry.storage.data_folder import find_home
from trainer.jobs.queue import JobStore
from trainer.tasks.registry import open_source


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(find_home(str(tmp_path / "home")))
    yield opened
    opened.close()


@pytest.fixture
def jobs(store: Store) -> JobStore:
    return JobStore(store.engine, store.home)


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder of a base model that has learnt nothing; the same weights in every run. The workers of a run share
    it."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "models" / "tiny"
    folder.parent.mkdir(exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            _build_tiny_base(folder)
    return folder


def _build_tiny_base(folder: Path) -> None:
    import torch

    from bench.support.tiny_base import build_model, build_tokenizer
    from scripts.build_tiny_base import save_model

    torch.set_num_threads(1)
    tokenizer = build_tokenizer(open_source("ledger,atlas").tasks("train", 60))
    save_model(build_model(tokenizer, 0), tokenizer, folder, "base", 0)
