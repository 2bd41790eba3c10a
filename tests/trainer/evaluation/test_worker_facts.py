"""Descriptions from evidence: what calls of a worker showed, and words that name nothing that they did not."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.traces.store import RecordedCall
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from tests.trainer.support.shop import build_shop, describe_worker
from trainer.evaluation.worker_facts import (
    MARK,
    SampleSources,
    collect_facts,
    find_prose_problem,
    strip_facts,
)
from trainer.evaluation.worker_facts import (
    describe_worker as write_description,
)

NOTHING = SampleSources()


def describe(pool: Pool, name: str, sources: SampleSources = NOTHING, **options):
    async def run():
        async with live_pool(pool) as live:
            facts = await collect_facts(live, name, sources, **options)
            return facts, await write_description(live, facts)

    return asyncio.run(run())


def test_success_latency_price_and_failures_stand_in_the_description(tmp_path):
    arguments = [{"customer": f"Firm {letter}"} for letter in "ABCD"]
    recorded = [RecordedCall("OK", 0.5, None), RecordedCall("EXEC_ERR", 2.5, "no_rows")]
    facts, description = describe(
        build_shop(tmp_path), "city_of", SampleSources(arguments=arguments, recorded=recorded)
    )
    assert len(facts.sampled) >= 4 and facts.failures["no_rows"] == 1
    assert description.text.startswith(f"Returns the city of a customer. {MARK} ")
    expected = f"{facts.successes / facts.calls:.0%} of {facts.calls} calls succeed"
    assert expected in description.text and "free" in description.text and "no_rows (1)" in description.text


def test_measuring_again_replaces_what_was_measured_before(tmp_path):
    shop = build_shop(tmp_path)
    old = shop.worker("calc").model_copy(update={"description": f"Evaluates. {MARK} 3% of 2 calls succeed."})
    _, description = describe(shop.with_worker(old, "calc"), "calc")
    assert description.text.count(MARK) == 1 and "3% of 2" not in description.text
    assert strip_facts(description.text) == "Evaluates."


def test_a_worker_whose_calls_may_have_effects_is_described_by_its_traces_alone(tmp_path):
    order = describe_worker("order", "http", "Orders an item.", url="https://127.0.0.1:1/order", method="POST")
    shop = build_shop(tmp_path)
    pool = shop.model_copy(update={"workers": (*shop.workers, order)})
    facts, description = describe(pool, "order")
    assert not facts.sampled and description.text == "Orders an item." and "may have effects" in description.note
    facts, description = describe(pool, "order", SampleSources(recorded=[RecordedCall("OK", 0.02, None)]))
    assert "100% of 1 calls succeed" in description.text and "20 ms" in description.text


@pytest.mark.parametrize(
    ("prose", "problem"),
    [
        ("Good at sums. Bad at words.", ""),
        ("Right in 99 of 100 cases.", "99"),
        ("Right in 12 calls.", ""),
        ("", "empty"),
        ("It never", "middle"),
        ("Good. " * 100, "characters"),
    ],
)
def test_words_about_a_worker_name_no_figure_that_was_not_measured(prose, problem):
    found = find_prose_problem(prose, "Adds. 92% of 12 calls succeed.")
    assert problem in found if problem else found == ""
