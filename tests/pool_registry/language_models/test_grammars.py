"""Grammars on a real small model: replies in one batch follow each its own, a cut-off reply is closed, and a grammar
changes nothing about a reply that follows it anyway."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from pool_registry.errors import WorkerFault
from pool_registry.language_models.batched_model import LoadedModel, Sampling
from pool_registry.language_models.completion import Grammar
from pool_registry.language_models.model_files import TINY, model_path

pytestmark = pytest.mark.medium

CHAT = [{"role": "user", "content": "What is 36% of company 2164's paid sales revenue?"}]
LONG = [{"role": "user", "content": "How far is it from LIS to GRU, in kilometers? And from GRU to LIS, by the way?"}]
WORD = Grammar('start: "red" | "green"\n')
PAIR = Grammar('start: "{" "\\"name\\": " TEXT ", \\"size\\": " NUMBER "}"\nTEXT: /"[a-z ]*"/\nNUMBER: /[0-9]{1,3}/\n')
ANY = Grammar("start: /(?s:.*)/\n")


@pytest.fixture(scope="module")
def model():
    import torch

    torch.set_num_threads(1)
    return LoadedModel(model_path(TINY), "cpu")


def replies(model, *requests):
    async def together():
        made = [model.generate(chat, tokens, sampling, grammar=grammar) for chat, tokens, sampling, grammar in requests]
        return [text for text, _ in await asyncio.gather(*made)]

    return asyncio.run(together())


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.5, 3), Sampling(1.5)], ids=["greedy", "seeded", "drawn"])
def test_each_row_of_a_batch_follows_its_own_grammar(model, sampling):
    requests = [(LONG, 12, None), (CHAT, 8, WORD), (LONG, 40, PAIR), (CHAT, 3, PAIR)]
    free, word, pair, cut = replies(model, *((chat, tokens, sampling, held) for chat, tokens, held in requests))
    assert word in ("red", "green")
    assert all(set(json.loads(text)) == {"name", "size"} for text in (pair, cut)), (pair, cut)
    if sampling.seed is not None or sampling.temperature == 0:
        assert [free] == replies(model, (LONG, 12, sampling, None)), "its company does not matter"


def test_a_grammar_changes_nothing_that_follows_it(model):
    one, other = replies(model, (CHAT, 30, Sampling(), None), (CHAT, 30, Sampling(), ANY))
    assert one == other


@pytest.mark.parametrize("pattern", [r"[a-z}]+@[a-z]+", "(a|b)*c", r"[0-9]{3}-[0-9]+\/x", "[a-z0]{30}z"])
def test_a_cut_reply_finds_the_letter_that_its_text_waits_for(model, pattern):
    compiler = model.compiler()
    closing = compiler.close(compiler.make_matcher(Grammar(f'start: /"{pattern}"/\n')), [])
    assert re.fullmatch(f'"{pattern}"', model.tokenizer.decode(closing)) and len(closing) < 100


def test_a_grammar_that_is_none_fails_its_request_alone(model):
    async def both():
        bad = model.generate(CHAT, 4, Sampling(), grammar=Grammar("start: ("))
        good = model.generate(CHAT, 8, Sampling(), grammar=WORD)
        return await asyncio.gather(bad, good, return_exceptions=True)

    bad, (good, _) = asyncio.run(both())
    assert isinstance(bad, WorkerFault) and bad.code == "bad_grammar"
    assert good in ("red", "green")
