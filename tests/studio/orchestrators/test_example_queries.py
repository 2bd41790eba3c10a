"""Example queries of a pool: its own tasks and the suites whose workers it has, never those of another pool."""

from __future__ import annotations

import pytest

from orchestrator.checkpoints import starter_checkpoint
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from studio.episodes import find_known_task
from studio.orchestrators.choices import FIRST_QUESTION
from studio.orchestrators.example_queries import choose_first_query, draw_example, fits_pool, list_example_choices
from tests.trainer.support.shop import build_shop
from trainer.tasks import find_task
from trainer.tasks.practice.stored import open_task_book
from trainer.tasks.sources.jsonl import TaskLine

READER = "smollm2-reader"

FLIGHT = find_task("itinerary", 3, "test", 0).query
PLAN = {"steps": [{"worker": "calc", "arguments": {"expression": "6 * 7"}, "access": []}], "answer": "$1"}


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Pool:
    """A pool with two tasks, one of them for a worker that it lacks."""
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    book = open_task_book("shop")
    gone = {**PLAN, "steps": [{"worker": "gone", "arguments": {}, "access": []}]}
    lines = [("What is lost?", gone), ("What is 6 * 7?", PLAN)]
    book.add([TaskLine(query=query, answer=42, plan=plan, split="test") for query, plan in lines])
    return build_shop(tmp_path)


def test_an_own_pool_begins_with_a_task_of_its_own_that_its_workers_can_do(shop):
    assert list_example_choices(shop) == [("Tasks of shop", "practice:shop")]
    assert choose_first_query(shop, READER) == ("What is 6 * 7?", "practice:shop")
    assert draw_example("practice:shop", shop) == "What is 6 * 7?"


def test_a_pool_without_tasks_begins_empty(shop):
    other = shop.model_copy(update={"name": "other"})
    assert choose_first_query(other, READER) == ("", "") and list_example_choices(other) == []
    assert draw_example("practice:other", other) == draw_example("", other) == ""


def test_the_starter_pool_has_its_suites_and_its_question(shop):
    starter = starter_pool()
    assert ("ledger · level 2", "ledger 2") in list_example_choices(starter)
    assert choose_first_query(starter, READER) == (FIRST_QUESTION, "itinerary 3")
    assert choose_first_query(starter, f"{READER}+samples=4") == (FIRST_QUESTION, "itinerary 3")
    assert choose_first_query(starter, str(starter_checkpoint(READER))) == (FIRST_QUESTION, "itinerary 3")
    assert choose_first_query(starter, "gone@7") == choose_first_query(starter, "") == (FLIGHT, "itinerary 3")
    assert choose_first_query(starter, "oracle") == (FLIGHT, "itinerary 3")


@pytest.mark.parametrize(
    ("query", "on_shop", "on_starter"),
    [
        ("What is 6 * 7?", True, False),
        (FLIGHT, False, True),
        (FIRST_QUESTION, False, True),
        ("my own words", True, True),
        ("", False, False),
    ],
)
def test_another_pools_example_goes_and_a_persons_words_stay(shop, query, on_shop, on_starter):
    assert fits_pool(query, shop, ["shop", "starter"]) == on_shop
    assert fits_pool(query, starter_pool(), ["shop", "starter"]) == on_starter


def test_an_own_task_is_recognised_on_its_pool_alone(shop):
    task = find_known_task("shop", " What is 6 * 7 ")
    assert task is not None and task.verifier.accepts("42") and task.workers == ("calc",)
    assert find_known_task("other", "What is 6 * 7?") is None
