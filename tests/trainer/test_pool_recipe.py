"""The recipe of *Train on this pool* goes on from the reader that answers there, with prompts of its style."""

from __future__ import annotations

import pytest

from orchestrator.checkpoints import find_checkpoint
from orchestrator.made_for import find_reader_of_records, returns_records
from orchestrator.prompt_styles import PROMPTS
from pool_registry.pool import Pool
from pool_registry.schemas.output_check import Output
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec
from trainer.pool_recipe import LENGTH_WITH_FIELDS, build_pool_recipe

RECORD = Output(json_schema={"type": "object", "properties": {"price": {"type": "number"}}})


def make_pool(output: Output | None) -> Pool:
    return Pool(name="shop", workers=(WorkerSpec(name="s", kind="calculator", description="Stock.", output=output),))


def test_only_where_a_worker_returns_records_the_reader_of_records_is_made_for_the_pool():
    assert find_reader_of_records(make_pool(RECORD)) == "smollm2-records"
    assert find_reader_of_records(make_pool(None)) == "" == find_reader_of_records(starter_pool())
    assert not returns_records(make_pool(Output(json_schema={"type": "number"})))


@pytest.mark.parametrize("start", ["smollm2-records", "smollm2-agents"])
def test_a_recipe_that_goes_on_from_a_reader_shows_prompts_of_its_style(start: str):
    plain, recipe = build_pool_recipe("shop", 70), build_pool_recipe("shop", 70, start=start)
    assert plain.model.start == "smollm2-reader" and plain.model.prompt == "reader"
    assert (recipe.model.start, recipe.model.prompt) == (start, find_checkpoint(start)[1].prompt)
    assert recipe.sft is not None and plain.sft is not None
    longer = start == "smollm2-records"
    assert recipe.sft.max_length == (LENGTH_WITH_FIELDS if longer else plain.sft.max_length)
    assert recipe.sft.steps == plain.sft.steps
    assert bool(recipe.sft.demonstrations.second_turns) == PROMPTS[recipe.model.prompt].reads_states
