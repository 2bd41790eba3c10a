"""The tiny base, and the starter checkpoints that ship: they copy, they plan, they say what they know."""

from __future__ import annotations

import asyncio
import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.support.tiny_base import ASSISTANT, USER, build_model, build_tokenizer, invent_name
from orchestrator.checkpoints import STARTERS, find_checkpoint, is_complete, read_checkpoint, starter_checkpoint
from orchestrator.dialects.plan_json import PlanDialect
from pool_registry.calls.live_pool import live_pool
from pool_registry.starter import starter_pool
from scripts.build_tiny_base import scramble
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.results.summary import Evaluation
from trainer.tasks.registry import open_source

pytestmark = pytest.mark.medium

# A reader is asked plain questions instead: tests/browser/test_plain_questions.py.
SHIPPED = [name for name in STARTERS if is_complete(starter_checkpoint(name))]
TRAINED = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in SHIPPED
    if name != "base" and read_checkpoint(starter_checkpoint(name)).prompt != "reader"
]


@pytest.fixture(scope="module")
def tasks():
    return open_source("ledger,atlas,forge,itinerary").tasks("train", 240, levels=(1, 2))


@pytest.fixture(scope="module")
def tokenizer(tasks):
    return build_tokenizer(tasks)


def test_a_plan_survives_its_tokens(tasks, tokenizer):
    dialect = PlanDialect()
    for task in tasks[:80]:
        plan = dialect.format(task.oracle_turn, ())
        ids = tokenizer(plan, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(ids) == plan
        assert len(ids) < len(plan) / 3


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_names_and_numbers_are_the_same_tokens_wherever_they_stand(tokenizer, seed):
    random = Random(seed)
    word = invent_name(random).split(" ")[0] if seed % 2 else str(random.randrange(10**6))

    def ids(text: str) -> list[int]:
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    alone = ids(word)
    for text in (f"of {word}, in", f'"query": "{word}', f"({word})", f"{word}?"):
        found = ids(text)
        assert any(found[at : at + len(alone)] == alone for at in range(len(found))), (text, word)


@pytest.mark.parametrize("step", [1, -1], ids=["what followed", "what stood before"])
def test_the_designed_heads_find_both_neighbours_before_any_training(tokenizer, step):
    import torch

    torch.set_num_threads(1)
    model = build_model(tokenizer, 0).eval()
    user, assistant = tokenizer.convert_tokens_to_ids([USER, ASSISTANT])
    random = Random(1)
    right = asked = 0
    for _ in range(10):
        text = random.sample(range(300, len(tokenizer)), 20)
        said = text[::step]
        ids = torch.tensor([[user, *text, assistant, *said]])
        with torch.inference_mode():
            after = model(ids).logits[0].argsort(descending=True)[:, :5]
        begin = len(text) + 2  # where the first repeated token stands
        right += sum(said[k + 1] in after[begin + k].tolist() for k in range(len(text) - 1))
        asked += len(text) - 1
    assert right / asked > 0.5  # by chance 0.002


def test_a_name_of_the_train_split_is_no_token_of_its_own(tasks, tokenizer):
    names = {word for task in tasks for word in re.findall(r"(?<=of )[A-Z][a-z]{6,}", task.query)}
    whole = [name for name in names if len(tokenizer(name, add_special_tokens=False)["input_ids"]) == 1]
    assert len(names) > 10 and not whole


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_scrambling_keeps_the_words_and_changes_names_and_numbers(seed):
    query = "What is 15% of company 155's revenue of Mexico in Q3 2024?"
    text = scramble(query, Random(seed))
    assert "revenue" in text and "company" in text


@pytest.mark.parametrize("name", SHIPPED)
def test_a_starter_is_whole_small_and_says_where_it_comes_from(name):
    folder = starter_checkpoint(name)
    manifest = read_checkpoint(folder, verify=True)
    assert sum(file.stat().st_size for file in folder.iterdir()) < 30e6
    assert find_checkpoint(name)[0] == folder
    if manifest.stage != "base":
        assert manifest.pool is not None and manifest.recipe and manifest.pool.name == "starter"


def test_the_base_ships_and_cannot_plan():
    """It repeats the query, as it has learnt, and that is no turn."""
    tasks = open_source("ledger,atlas").tasks("test", 4, levels=(1, 2))

    async def scored(name: str) -> Evaluation:
        async with live_pool(starter_pool()) as pool:
            return await evaluate_orchestrator(name, tasks, pool, concurrency=4)

    result = asyncio.run(scored("base+unconstrained"))
    assert result.mean == 0.0 and result.turn_errors == result.turns > 0


@pytest.mark.parametrize("name", TRAINED)
def test_a_trained_starter_plans_what_the_base_cannot(name):
    count = 8 if name.startswith("smollm2") else 24  # the larger model takes its time on two cores
    tasks = open_source("ledger,atlas,forge,itinerary").tasks("test", count, levels=(1, 2, 3))

    async def scored() -> float:
        async with live_pool(starter_pool()) as pool:
            return (await evaluate_orchestrator(name, tasks, pool, concurrency=count)).mean

    assert asyncio.run(scored()) >= 0.5
