"""Prompts that begin alike are computed once, and say the same as without that."""

from __future__ import annotations

import asyncio

import pytest

from pool_registry.language_models.batched_model import LoadedModel, Sampling
from pool_registry.language_models.model_files import TINY, model_path
from pool_registry.language_models.prefix_cache import PrefixCache, count_shared

pytestmark = pytest.mark.medium

LISTING = {"role": "system", "content": "Workers: " + " ".join(f"worker_{k} adds {k} to a number." for k in range(12))}
QUERIES = ["What is 36% of 2164?", "How far is it from LIS to GRU, in kilometers?", "7", "What is 36% of 2165?"]


def chats():
    return [[LISTING, {"role": "user", "content": query}] for query in QUERIES]


@pytest.fixture
def model():
    import torch

    torch.set_num_threads(1)
    return LoadedModel(model_path(TINY), "cpu")


def count_forwarded(model) -> list[int]:
    """The lengths of the inputs of every forward pass from now on."""
    lengths: list[int] = []
    forward = model.model.forward

    def counting(*arguments, **named):
        lengths.append(named["input_ids"].shape[1])
        return forward(*arguments, **named)

    model.model.forward = counting
    return lengths


def reply(model, *conversations, tokens: int = 12) -> list[str]:
    async def all_at_once():
        requests = [model.generate(chat, tokens, Sampling(0.0)) for chat in conversations]
        return [text for text, _ in await asyncio.gather(*requests)]

    return asyncio.run(all_at_once())


def test_replies_are_those_of_a_model_that_keeps_nothing(model):
    bare = LoadedModel(model_path(TINY), "cpu")
    bare.prefixes.start_batch = lambda prompts, adapter: None
    alone = [reply(bare, chat)[0] for chat in chats()]
    assert [reply(model, chat)[0] for chat in chats()] == alone, "one after the other"
    assert reply(model, *chats()) == alone, "all of them known, in one batch"
    assert len(set(alone)) > 1


def test_only_what_is_new_goes_through_the_model(model):
    first, second, *_ = chats()
    [said] = reply(model, first)
    lengths = count_forwarded(model)
    reply(model, second)
    ids = model._encode(second, None)
    shared = count_shared(model._encode(first, None), ids)
    assert shared > 100 and lengths[:2] == [len(ids) - 1 - shared, 1]
    lengths.clear()
    following = [*first, {"role": "assistant", "content": said}, {"role": "user", "content": "And half of it?"}]
    reply(model, following)
    assert lengths[0] < 40 < len(model._encode(following, None)), "the turn before and its reply are known"


def test_an_adapter_does_not_read_what_another_computed(model):
    tokens = list(range(5, 60))
    model.prefixes.start_batch([tokens], None)
    lengths = count_forwarded(model)
    model.prefixes.start_batch([tokens], "adapter0")
    model.prefixes.start_batch([tokens], None)
    assert lengths == [54]


def test_it_forgets_what_was_not_used_for_longest(model):
    one, two = list(range(5, 60)), list(range(105, 160))
    model.prefixes.start_batch([one], None)
    prefixes = PrefixCache(model.model, max_bytes=2 * model.prefixes.bytes)
    for prompt in (one, two, one, list(range(205, 260))):
        prefixes.start_batch([prompt], None)
        assert prefixes.bytes <= 2 * model.prefixes.bytes
    lengths = count_forwarded(model)
    prefixes.start_batch([one], None)
    prefixes.start_batch([two], None)
    assert lengths == [54], "the first is still there, the second is not"
