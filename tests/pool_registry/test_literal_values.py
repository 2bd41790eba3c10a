"""The values that a function surely takes, read from the tables of its file."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.calls.live_pool import live_pool
from pool_registry.imports.functions import list_functions
from pool_registry.pool import Pool
from pool_registry.workers.support.literal_values import list_looked_up

SOURCE = """
PRICES = {"tea": {"euros": 2}, "oil": {"euros": 9}}
KM: dict = {("A", "B"): 3, ("A", "C"): 5}
HOURS = dict(x=1)

def price(item): return PRICES[item.lower()]["euros"]
def stock(item): return PRICES.get(item, 0)
def far(start, end): return KM.get((start, end)) or KM[(end, start)]
def both(item, other): return PRICES[item]["euros"] + PRICES[other]["euros"]
def free(item, many): return PRICES[item]["euros"] * many
"""


@pytest.mark.parametrize(
    ("function", "names", "rows"),
    [
        ("price", ["item"], [{"item": "tea"}, {"item": "oil"}]),
        ("stock", ["item"], [{"item": "tea"}, {"item": "oil"}]),
        ("far", ["start", "end"], [{"start": "A", "end": "B"}, {"start": "A", "end": "C"}]),
        ("free", ["item", "many"], []),
        ("missing", ["item"], []),
        ("price", [], []),
    ],
)
def test_the_keys_of_the_tables_that_a_function_looks_into_are_its_values(function, names, rows):
    assert list_looked_up(SOURCE, function, names) == rows


def test_two_keys_give_every_pair():
    assert len(list_looked_up(SOURCE, "both", ["item", "other"])) == 4


@given(st.text(max_size=200))
def test_any_source_gives_a_list(source):
    assert isinstance(list_looked_up(source, "f", ["x"]), list)


def test_a_function_of_a_pool_knows_calls_that_work(tmp_path):
    file = tmp_path / "shop.py"
    file.write_text(
        'PRICES = {"tea": 2}\n\n\ndef price(item: str) -> int:\n    """Price."""\n    return PRICES[item]\n'
    )

    async def call() -> list[dict]:
        pool = Pool(name="p", workers=tuple(offer.spec for offer in await list_functions(str(file))))
        async with live_pool(pool) as live:
            samples = await live.workers["price"].worker.list_sample_calls(5)
            assert list(samples) == list(await live.workers["price"].worker.list_sample_calls(1))
            return [dict(sample.arguments) for sample in samples]

    assert asyncio.run(call()) == [{"item": "tea"}]
