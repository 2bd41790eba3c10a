"""Workers whose words stand in a query, and queries that are too much like a worker to be refused."""

from __future__ import annotations

import pytest

from orchestrator.reader.named_workers import list_named, resembles_worker
from orchestrator.reader.refusal import is_refusal
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.starter import starter_pool
from trainer.tasks.registry import open_source

pytestmark = pytest.mark.medium


def list_names(query: str, covered: frozenset[str] = frozenset()) -> list[str]:
    return [item.worker.spec.name for item in list_named(query, open_live_pool(starter_pool()).workers, covered)]


def test_a_worker_is_named_by_a_word_that_few_cards_have():
    assert list_names("molar mass of caffeine")[0] == "elements"
    assert "elements" not in list_names("molar mass of caffeine", frozenset({"molar", "mas", "mass"}))
    assert not list_names("how much 12 should you tell me")


@pytest.mark.parametrize(
    ("source", "split", "refused", "least", "most"),
    [("worlds", "validation", False, 0.9, 1.0), ("worlds", "validation", True, 0.0, 0.45),
     ("everyday", "validation", False, 0.9, 1.0), ("everyday", "validation", True, 0.0, 0.15)],
)  # fmt: skip
def test_queries_that_a_pool_can_answer_resemble_a_worker_and_few_others_do(source, split, refused, least, most):
    tasks = [task for task in open_source(source).tasks(split, 800) if is_refusal(task.expected) == refused][:120]
    alike = [resembles_worker(task.query, open_live_pool(task.pool or starter_pool()).workers) for task in tasks]
    assert len(tasks) >= 30 and least <= sum(alike) / len(tasks) <= most
