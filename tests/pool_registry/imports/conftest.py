"""A server that records what workers send."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pool_registry.support.recorder import Recorder, record_requests


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    with record_requests() as record:
        yield record
