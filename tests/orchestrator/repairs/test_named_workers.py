"""Workers whose words stand in a query."""

from __future__ import annotations

import pytest

from orchestrator.repairs.named_workers import list_named
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.starter import starter_pool

pytestmark = pytest.mark.medium


def list_names(query: str, covered: frozenset[str] = frozenset()) -> list[str]:
    return [item.worker.spec.name for item in list_named(query, open_live_pool(starter_pool()).workers, covered)]


def test_a_worker_is_named_by_a_word_that_few_cards_have():
    assert list_names("molar mass of caffeine")[0] == "elements"
    assert "elements" not in list_names("molar mass of caffeine", frozenset({"molar", "mas", "mass"}))
    assert not list_names("how much 12 should you tell me")
