"""A text of any allowed length is read in linear time: every function of the product that takes texts is timed, alone
or beside what tests/trust/readers.py has values for. They are found by walking the packages, so a new one is tried
without being named here."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping
from functools import partial

import pytest

from pool_registry.calls.live_pool import live_pool
from tests.trust.growth import MOST_EXPONENT, SHAPES, UNSURE_S, fit_exponent
from tests.trust.readers import OTHERS, POOL, Reader, list_pool_values, list_readers
from tests.trust.trials import count_trials

# How many there are at least in each room, of texts alone and with more, and some of them: the walk must miss none.
FEWEST = {"pool_registry": (150, 150), "orchestrator": (60, 100), "trainer": (100, 80), "studio": (50, 100)}
TEXTS_ALONE = (
    "orchestrator.repairs.mend_calls._find_words",
    "orchestrator.repairs.left_out_workers._stands_in",
    "pool_registry.pasted.read_text.read_text",
    "pool_registry.pool.import_pool",
    "trainer.recipe.parse_recipe",
    "studio.pages.pool.adding.paste_commands.explain_text",
)
WITH_MORE = (
    "orchestrator.reader.bind_needs.list_likely",
    "orchestrator.dialects.tool_calls.parse_calls",
    "pool_registry.pasted.table.recognise",
    "pool_registry.schemas.argument_schema.schema_problem",
    "trainer.tasks.sources.jsonl.parse_line",
    "studio.pages.pool.forms.parse_worker",
)
CHARS = 20_000
MOST_S = 2.0  # of so many characters; quadratic rules took 2 and 9


def find_growing(readers: Iterable[Reader], others: Mapping[str, object]) -> dict[str, str]:
    """The functions and shapes of text whose time grows too fast, with their seconds and the power."""
    too_fast: dict[str, str] = {}
    for reader in readers:
        reader.time("words", 100, others)  # what is loaded at the first call
        for shape in SHAPES:
            time_shape = partial(reader.time, shape, others=others)
            seconds = time_shape(CHARS)
            growth = 0.0 if seconds < UNSURE_S else fit_exponent(time_shape, CHARS) if seconds < MOST_S else math.inf
            count_trials(1, growth > MOST_EXPONENT)
            if growth > MOST_EXPONENT:
                too_fast[f"{reader.name}, {shape}"] = f"{seconds:.2f} s, power {growth:.2f}"
    return too_fast


@pytest.mark.slow
@pytest.mark.parametrize("room", FEWEST)
def test_a_text_is_read_in_linear_time(room):
    readers = {reader.name: reader for reader in list_readers(room) if reader.takes_texts_alone}
    assert len(readers) >= FEWEST[room][0] and readers.keys() >= {name for name in TEXTS_ALONE if name.startswith(room)}
    assert find_growing(readers.values(), {}) == {}


@pytest.mark.slow
@pytest.mark.parametrize("room", FEWEST)
def test_a_text_is_read_in_linear_time_beside_other_things(room):
    async def find() -> dict[str, str]:
        async with live_pool(POOL) as pool:
            others = {**OTHERS, **list_pool_values(pool)}
            readers = {reader.name: reader for reader in list_readers(room) if reader.takes_more(others)}
            assert len(readers) >= FEWEST[room][1]
            assert readers.keys() >= {name for name in WITH_MORE if name.startswith(room)}
            return await asyncio.to_thread(find_growing, readers.values(), others)

    assert asyncio.run(find()) == {}
