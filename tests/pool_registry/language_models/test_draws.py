"""Seeded draws of a local model: the same again in any company, others with another seed, and from its distribution."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from pool_registry.language_models.batched_model import LoadedModel, Sampling, _with_noise
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
def test_noise_makes_the_largest_logit_a_draw_from_the_softmax(temperature):
    import scipy.stats
    import torch

    logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
    count = 4000
    noisy = _with_noise(range(count), temperature)(None, logits.repeat(count, 1))
    found = Counter(noisy.argmax(-1).tolist())
    expected = torch.softmax(logits.double() / temperature, -1) * count
    chi2 = scipy.stats.chisquare([found[k] for k in range(4)], expected.numpy())
    assert chi2.pvalue > 1e-4
