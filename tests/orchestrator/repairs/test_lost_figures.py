"""A figure that mending a call loses: other plans with a step more decide."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.grammars.reader_grammars import needs_grammar
from orchestrator.policies.reader import OTHER_PLANS, ReaderPolicy
from orchestrator.reader.needs import MAX_NEEDS
from pool_registry.calls.live_pool import live_pool
from pool_registry.imports.functions import list_functions
from pool_registry.language_models.completion import Completion
from pool_registry.pool import Pool
from tests.orchestrator.support.grammar_walk import accepts

BAKERY = '''
PRICES = {"brioche": 2.5, "baguette": 1.5}

def price_of(pastry: str) -> float:
    """The price in euros of one piece of a pastry."""
    if pastry not in PRICES:
        raise ValueError(f"no pastry named {pastry!r}")
    return PRICES[pastry]

def times(a: float, b: float) -> float:
    """The product of two numbers."""
    return a * b
'''
PRICE = "1. price of a pastry"
PRODUCT = f"{PRICE}\n2. product of two numbers (1)"
SUM = f"{PRICE}\n2. sum of two numbers (1)"

pytestmark = pytest.mark.medium


class Model:
    """Plans one step, with `thing`, and another one, which takes an output twice, where its grammar wants it."""

    def __init__(self, longer: str, thing: str = "3 baguettes") -> None:
        self.longer, self.thing = longer, thing
        self.drawn = 0

    async def write(self, messages, grammar, _draw) -> Completion:
        if len(messages) == 2:
            is_short = accepts(grammar, PRICE)
            self.drawn += not is_short
            return Completion(PRICE if is_short else self.longer)
        if PRODUCT in messages[2].content:
            return Completion('1. {"pastry": "3 baguette"}\n2. {"a": "$1", "b": "$1"}\n= $2')
        return Completion(f'1. {{"pastry": "{self.thing}"}}\n= $1')


@pytest.fixture
def ask(tmp_path) -> Callable[[Model, str], Episode]:
    file = tmp_path / "bakery.py"
    file.write_text(BAKERY)

    async def run(model: Model, query: str) -> Episode:
        offers = await list_functions(str(file))
        workers = tuple(offer.spec.model_copy(update={"effects": "none"}) for offer in offers)
        async with live_pool(Pool(name="bakery", workers=workers)) as pool:
            return await run_episode(EpisodeSpec(query), ReaderPolicy("reader", pool, model.write), pool)

    return lambda model, query: asyncio.run(run(model, query))


def test_the_figure_is_put_into_a_step_more(ask):
    model = Model(PRODUCT)
    episode = ask(model, "What do 3 baguettes cost?")
    assert episode.answer == 4.5 and model.drawn == OTHER_PLANS
    vote = episode.rounds[-1].turn.vote or episode.rounds[-2].turn.vote
    assert vote.votes == OTHER_PLANS and vote.incomplete == 1, "the plan without the figure had no vote"


def test_a_mended_call_without_a_figure_is_enough(ask):
    model = Model(PRODUCT, "baguettes")
    assert ask(model, "What do baguettes cost?").answer == 1.5 and model.drawn == 0


def test_where_no_longer_plan_works_the_mended_one_stands(ask):
    model = Model(SUM)
    assert ask(model, "What do 3 baguettes cost?").answer == 1.5 and model.drawn == OTHER_PLANS


def test_needs_may_be_held_to_a_least_number_of_lines():
    assert accepts(needs_grammar(MAX_NEEDS), PRICE) and accepts(needs_grammar(MAX_NEEDS, least=2), PRODUCT)
    assert not accepts(needs_grammar(MAX_NEEDS, least=2), PRICE)
