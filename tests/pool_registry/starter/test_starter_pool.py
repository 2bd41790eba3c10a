"""The starter pool keeps its content: traces, checkpoints and published models refer to its hash."""

from __future__ import annotations

from pool_registry.pool import check_pool
from pool_registry.starter import starter_pool


def test_the_starter_pool_has_the_hash_that_checkpoints_refer_to():
    check_pool(starter_pool())
    assert starter_pool().hash == "4bab39c2d2189a0e5243916637ddbaf202d7fc11fb7f5e42a1773040d8db4cad"
