"""Drafted tokens save passes of the model and change no reply."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.language_models.batched_model import LoadedModel, Sampling
from pool_registry.language_models.completion import Grammar
from pool_registry.language_models.drafted_decoding import MAX_LOOKED_UP, look_up
from pool_registry.language_models.model_files import TINY, model_path

pytestmark = pytest.mark.medium

SUM = "What is 36% of company 2164's paid sales revenue?"
ROUTE = "How far is it from LIS to GRU, in kilometers? And from GRU to LIS, by the way?"
RECORD = Grammar(
    'start: "{" "\\"distance_in_kilometers\\": " NUMBER ", \\"route\\": " WORD "}"\n'
    "NUMBER: /[0-9]{1,3}/\nWORD: /[a-z]{2,9}/\n"
)
FREE = Grammar("start: /(?s:.*)/\n")


@pytest.fixture(scope="module")
def drafting():
    return open_tiny()


@pytest.fixture(scope="module")
def plain():
    model = open_tiny()
    model.draft_arguments = lambda *_: {}
    return model


def open_tiny() -> LoadedModel:
    import torch

    torch.set_num_threads(1)
    return LoadedModel(model_path(TINY), "cpu")


def ask(model: LoadedModel, query: str, tokens: int, grammar: Grammar | None) -> tuple[str, int, int]:
    """The reply, its tokens, and the passes of the model that it took."""
    passes = 0
    forward = type(model.model).forward

    def count_pass(*arguments, **named):
        nonlocal passes
        passes += 1
        return forward(model.model, *arguments, **named)

    model.model.forward = count_pass
    text, usage = asyncio.run(model.generate([{"role": "user", "content": query}], tokens, Sampling(), grammar=grammar))
    return text, usage.tokens_out, passes


@pytest.mark.parametrize("grammar", [None, FREE, RECORD], ids=["no grammar", "free", "record"])
@pytest.mark.parametrize("query", [SUM, ROUTE])
@pytest.mark.parametrize("tokens", [1, 7, 60])
def test_a_reply_is_that_of_plain_greedy_decoding(drafting, plain, query, grammar, tokens):
    assert ask(drafting, query, tokens, grammar)[:2] == ask(plain, query, tokens, grammar)[:2]


@pytest.mark.parametrize("query", [SUM, ROUTE])
def test_what_a_grammar_forces_takes_no_passes_of_its_own(drafting, plain, query):
    ask(drafting, query, 1, None), ask(plain, query, 1, None)  # the prompt is known to both
    assert ask(drafting, query, 60, RECORD)[2] <= ask(plain, query, 60, RECORD)[2] / 2


def test_a_turn_after_a_drafted_one_goes_on_from_its_keys_and_values(drafting, plain):
    for grammar in (None, RECORD):
        for query in (SUM, SUM + " " + ROUTE, SUM):
            assert ask(drafting, query, 40, grammar)[:2] == ask(plain, query, 40, grammar)[:2]


@given(st.lists(st.integers(0, 3), max_size=30))
def test_a_draft_is_what_followed_the_newest_pair_before(tokens: list[int]):
    places = [end for end in range(2, len(tokens)) if tokens[end - 2 : end] == tokens[-2:]]
    draft = look_up(tokens)
    assert bool(draft) == bool(places)
    assert not places or draft in [tokens[end : end + MAX_LOOKED_UP] for end in places]
