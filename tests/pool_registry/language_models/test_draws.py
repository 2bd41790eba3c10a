"""Seeded draws of a local model: the same again in any company, others with another seed, and from its distribution."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from pool_registry.language_models.batched_model import LoadedModel, Sampling
from pool_registry.language_models.model_files import TINY, model_path

pytestmark = pytest.mark.medium

CHAT = [{"role": "user", "content": "What is 36% of company 2164's paid sales revenue?"}]
OTHER = [{"role": "user", "content": "How far is it from LIS to GRU, in kilometers?"}]


@pytest.fixture(scope="module")
def model():
    import torch

    torch.set_num_threads(1)
    return LoadedModel(model_path(TINY), "cpu")


def drawn(model, *wanted, tokens: int = 10) -> list[str]:
    async def all_at_once():
        requests = [model.generate(chat, tokens, sampling) for chat, sampling in wanted]
        return [text for text, _ in await asyncio.gather(*requests)]

    return asyncio.run(all_at_once())


def test_a_seed_gives_the_same_text_alone_and_in_any_company(model):
    seeded = (CHAT, Sampling(2.0, 7))
    [alone] = drawn(model, seeded)
    company = [(OTHER, Sampling(2.0, k)) for k in range(3)] + [(OTHER, Sampling(0.0)), (CHAT, Sampling(2.0))]
    assert drawn(model, *company[:2], seeded, *company[2:])[2] == alone
    assert len(set(drawn(model, *((CHAT, Sampling(2.0, seed)) for seed in range(6))))) > 3
    greedy = drawn(model, *((CHAT, Sampling(0.0, seed)) for seed in range(3)))
    assert len(set(greedy)) == 1 == len(set(drawn(model, (CHAT, Sampling(0.0))))), "without heat a seed changes nothing"


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_are_drawn_from_the_softmax(temperature):
    import scipy.stats
    import torch

    from pool_registry.language_models.token_draws import draw_with_seeds

    logits = torch.tensor([float("-inf"), 2.0, 1.0, 0.0, -1.0])
    count = 4000
    left = draw_with_seeds(range(count), temperature)(None, logits.repeat(count, 1))
    found = Counter(left.argmax(-1).tolist())
    expected = torch.softmax(logits[1:].double() / temperature, -1) * count
    chi2 = scipy.stats.chisquare([found[k] for k in range(1, 5)], expected.numpy())
    assert chi2.pvalue > 1e-4 and not found[0]


@pytest.mark.parametrize("number", [0.0, 0.3, 1 - 2**-24])
def test_no_number_chooses_a_token_that_is_ruled_out(number):
    import torch

    from pool_registry.language_models.token_draws import choose_tokens

    allowed = {1, 40_000}
    logits = torch.full((1, 49_152), float("-inf"))
    logits[0, list(allowed)] = torch.tensor([0.0, 1.0])
    assert choose_tokens(logits, torch.tensor([[number]])).item() in allowed
