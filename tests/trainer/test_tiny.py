"""The tiny base, and the starter checkpoints that ship: they copy, they plan, they say what they know."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.checkpoints import STARTERS, find_checkpoint, is_complete, read_checkpoint, starter_folder
from orchestrator.dialects.plan_json import PlanDialect
from pool_registry.live import live_pool
from pool_registry.starter import starter_pool
from trainer.evaluate import evaluate
from trainer.rewording import reworded, with_rewordings
from trainer.tasks.source import source_named
from trainer.tiny import ASSISTANT, USER, build_tokenizer, made_up, new_model, scrambled
from trainer.trajectories import Demonstration, Said

SHIPPED = [name for name in STARTERS if is_complete(starter_folder(name))]


@pytest.fixture(scope="module")
def tasks():
    return source_named("ledger,atlas,forge,itinerary").tasks("train", 240, levels=(1, 2))


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
    word = made_up(random).split(" ")[0] if seed % 2 else str(random.randrange(10**6))

    def ids(text: str) -> list[int]:
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    alone = ids(word)
    for text in (f"of {word}, in", f'"query": "{word}', f"({word})", f"{word}?"):
        found = ids(text)
        assert any(found[at : at + len(alone)] == alone for at in range(len(found))), (text, word)


def test_the_designed_heads_copy_before_any_training(tokenizer):
    import torch

    torch.set_num_threads(1)
    model = new_model(tokenizer, 0).eval()
    user, assistant = tokenizer.convert_tokens_to_ids([USER, ASSISTANT])
    random = Random(1)
    right = asked = 0
    for _ in range(10):
        text = random.sample(range(300, len(tokenizer)), 20)
        ids = torch.tensor([[user, *text, assistant, *text]])
        with torch.inference_mode():
            after = model(ids).logits[0].argsort(descending=True)[:, :2]
        begin = len(text) + 2  # where the first repeated token stands
        right += sum(text[k + 1] in after[begin + k].tolist() for k in range(len(text) - 1))
        asked += len(text) - 1
    assert right / asked > 0.8


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_scrambling_keeps_the_words_and_changes_names_and_numbers(seed):
    query = "What is 15% of company 155's revenue of Mexico in Q3 2024?"
    text = scrambled(query, Random(seed))
    assert "revenue" in text and "company" in text


@given(seed=st.integers(0, 10_000))
@settings(max_examples=100, deadline=None)
def test_rewording_leaves_alone_what_the_plan_quotes(seed):
    query = "According to the atlas, what is the total area of Mexico divided by that of Peru 2024?"
    quoted = '{"query": "Mexico total area"} {"query": "Peru 2024"}'
    text = reworded(query, quoted, ["firm", "quarter"], Random(seed))
    for word in ("Mexico", "Peru", "2024", "total", "area"):
        assert word in text
    assert set(text.replace(",", "").replace("?", "").split()) <= {*query.replace(",", "").replace("?", "").split(), "firm", "quarter"}  # fmt: skip  # noqa: E501


def test_rewordings_change_the_query_and_nothing_else():
    row = Demonstration(
        messages=[
            Said(role="user", content="please tell me quickly the area of Mexico"),
            Said(role="assistant", content="area Mexico", learn=True),
        ],
        query="please tell me quickly the area of Mexico",
    )
    rows = with_rewordings([row], 8, 0)
    assert len(rows) == 9 and rows[0] == row
    assert all(each.messages[1:] == row.messages[1:] for each in rows)
    assert len({each.messages[0].content for each in rows}) > 4


@pytest.mark.parametrize("name", SHIPPED)
def test_a_starter_is_whole_small_and_says_where_it_comes_from(name):
    folder = starter_folder(name)
    manifest = read_checkpoint(folder, verify=True)
    assert sum(file.stat().st_size for file in folder.iterdir()) < 30e6
    assert find_checkpoint(name)[0] == folder
    if manifest.stage != "base":
        assert manifest.pool is not None and manifest.recipe and manifest.pool.name == "starter"


def test_the_shipped_starters_are_there():
    assert {"base", "starter-sft", "starter-grpo"} <= set(SHIPPED)


def test_the_starter_plans_what_the_base_cannot():
    tasks = source_named("ledger,atlas,forge,itinerary").tasks("test", 24, levels=(1, 2, 3))

    async def scored(name: str) -> float:
        async with live_pool(starter_pool()) as pool:
            return (await evaluate(name, tasks, pool, concurrency=24)).mean

    assert asyncio.run(scored("base")) == 0.0
    assert asyncio.run(scored("starter-grpo")) >= 0.3
