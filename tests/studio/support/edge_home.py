"""Fixtures: the model at the network's edge, and a data folder whose pool has it as its one agent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.prepare import prepare_store
from tests.studio.support.edge_model import EdgeModel, edge_model
from tests.studio.support.served import edge_pool


@pytest.fixture(scope="module")
def model() -> Iterator[EdgeModel]:
    with edge_model() as running:
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, model: EdgeModel) -> Path:
    folder = tmp_path_factory.mktemp("home")
    store = prepare_store(str(folder))
    store.pools.save(edge_pool(model.url))
    store.close()
    return folder
