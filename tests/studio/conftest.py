"""A studio's inside without a socket: one runtime on its own data folder, and a client for its routes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from studio.prepare import prepare_store
from studio.runtime import Runtime


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    opened = Runtime(prepare_store(str(tmp_path_factory.mktemp("home"))))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def client(runtime: Runtime) -> TestClient:
    from studio.app import create_app

    return TestClient(create_app(runtime), base_url="http://127.0.0.1:7860")
