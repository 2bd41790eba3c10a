"""A rejected call is tried with other words, and with what another worker makes of its words, before its worker is
given up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.reader.thresholds import Thresholds
from orchestrator.repairs import mend_calls
from orchestrator.repairs.mend_calls import list_values
from pool_registry.calls.live_pool import live_pool
from pool_registry.imports.functions import list_functions
from pool_registry.language_models.completion import Completion
from pool_registry.pool import Limits, Pool

KITCHEN = '''
PRICES = {"salmon": 31.0, "rice": 2.4}
MAIN = {"paella": "rice", "the Green Plate": "rice", "ave verum": "rice"}

def price(ingredient: str) -> float:
    """What one kilogram of an ingredient costs."""
    return PRICES[ingredient]

def main_ingredient(dish: str) -> str:
    """The ingredient that a dish mostly consists of."""
    return MAIN[dish]

def serves(dish: str) -> int:
    """How many people a dish feeds."""
    return {"paella": 5}[dish]

def origin(ingredient: str) -> str:
    """The country that an ingredient comes from."""
    return {"rice": "Vietnam"}[ingredient]

def bestseller(shop: str) -> str:
    """The ingredient that a shop sells most."""
    return {"corner shop": "rice"}[shop]

def headliner(board: str) -> str:
    """The headliner of a board."""
    return {"Harvest": "salmon"}[board]

def price_gap(one: str, other: str) -> float:
    """By how much one ingredient is dearer than another one."""
    return PRICES[one.lower()] - PRICES[other.lower()]

def times(a: float, b: float) -> float:
    """The product of two numbers."""
    return a * b
'''
PRICE, TIMES = "What one kilogram of an ingredient costs", "The product of two numbers"
GAP = "By how much one ingredient is dearer than another one"


@pytest.fixture
def ask(tmp_path):
    """Run a query on the kitchen with a model that writes these texts; `effects` are those of every function."""
    (tmp_path / "kitchen.py").write_text(KITCHEN)

    async def run(query: str, texts: Sequence[str], effects: str, limits: Limits) -> Episode:
        specs = [offer.spec for offer in await list_functions(str(tmp_path / "kitchen.py"))]
        workers = tuple(spec.model_copy(update={"effects": effects}) for spec in specs)
        lines = iter(texts)

        async def write(*_: object) -> Completion:
            return Completion(next(lines))

        async with live_pool(Pool(name="kitchen", workers=workers, limits=limits)) as pool:
            return await run_episode(EpisodeSpec(query), ReaderPolicy("r", pool, write, other_plans=0), pool)

    def ask_kitchen(query: str, *texts: str, effects: str = "none", **limits: int) -> Episode:
        return asyncio.run(run(query, texts, effects, Limits(**limits)))

    return ask_kitchen


def list_accepted(episode: Episode) -> list[tuple[str, dict[str, object]]]:
    return [(run.step.worker, dict(run.arguments)) for run in episode.steps.values() if run.observation.ok]


def test_a_part_of_a_rejected_value_takes_its_place_and_what_waited_goes_on(ask):
    episode = ask(
        "What do 2 kilos of salmon cost?",
        f"1. {PRICE}\n2. {TIMES} (1)",
        '1. {"ingredient": "kilos of salmon"}\n2. {"a": 2, "b": "$1"}\n= $2',
    )
    assert episode.answer == 62
    assert list_accepted(episode) == [("price", {"ingredient": "salmon"}), ("times", {"a": 2, "b": 31})]
    assert [done.turn.trial for done in episode.rounds] == [False, True, False]
    assert [len(done.steps) for done in episode.rounds][::2] == [2, 1]


def test_another_word_of_the_query_takes_the_place_of_a_wrong_one(ask):
    episode = ask("how much does salmon cost per kilo", f"1. {PRICE}", '1. {"ingredient": "kilo"}\n= it costs $1')
    assert episode.answer == "it costs 31"


def test_what_is_one_step_away_is_reached_through_the_worker_that_returns_it(ask):
    episode = ask("price of the main ingredient of paella", f"1. {PRICE}", '1. {"ingredient": "paella"}\n= $1')
    assert episode.answer == 2.4
    calls = [("main_ingredient", {"dish": "paella"}), ("price", {"ingredient": "rice"})]
    assert [call for call in list_accepted(episode) if call in calls] == calls


@pytest.mark.parametrize(
    ("query", "value", "answer"),
    [
        ("price of the main ingredient of ave verum", "ave verum", 2.4),  # both words are its name
        ("price of the headliner of Harvest", "Harvest", 31),  # the query names the worker in between
    ],
)
def test_the_worker_in_between_is_asked_about_whole_names_and_may_be_one_that_the_query_names(
    ask, query, value, answer
):
    assert ask(query, f"1. {PRICE}", f'1. {{"ingredient": "{value}"}}\n= $1').answer == answer


def test_a_worker_that_takes_the_same_thing_does_not_return_it(ask):
    episode = ask("price of the main ingredient of paella", f"1. {PRICE}", '1. {"ingredient": "paella"}\n= $1')
    assert "origin" not in {run.step.worker for run in episode.steps.values()}


def test_nothing_is_tried_for_a_need_that_is_not_much_like_its_worker(ask, monkeypatch):
    monkeypatch.setattr(mend_calls, "THRESHOLDS", Thresholds(is_sure=1.1))
    episode = ask("What do kilos of salmon cost?", f"1. {PRICE}", '1. {"ingredient": "kilos of salmon"}\n= $1')
    assert len(episode.steps) == 1 and episode.answer is None


def test_two_rejected_calls_of_one_worker_are_mended_by_different_words(ask):
    episode = ask(
        "Price of salmon times price of rice?",
        f"1. {PRICE}\n2. {PRICE}\n3. {TIMES} (1, 2)",
        '1. {"ingredient": "price"}\n2. {"ingredient": "times"}\n3. {"a": "$1", "b": "$2"}\n= $3',
    )
    assert episode.answer == pytest.approx(74.4)


@pytest.mark.parametrize(("effects", "rounds"), [("some", 6), ("auto", 6), ("none", 2)])
def test_nothing_is_tried_that_may_have_effects_or_comes_too_late(ask, effects, rounds):
    episode = ask(
        "What do kilos of salmon cost?",
        f"1. {PRICE}",
        '1. {"ingredient": "kilos of salmon"}\n= $1',
        *['1. {"dish": "salmon"}\n= $1'] * 2,
        effects=effects,
        max_rounds=rounds,
    )
    assert ("price", {"ingredient": "salmon"}) not in list_accepted(episode)
    assert all(done.turn.has_answer or done.turn.error for done in episode.rounds)


def test_trials_leave_half_of_the_steps_to_what_goes_on(ask):
    episode = ask("What do kilos of salmon cost?", f"1. {PRICE}", '1. {"ingredient": "kilos"}\n= $1', max_steps=6)
    assert episode.answer == 31 and len(episode.steps) == 3


def test_where_no_other_word_is_accepted_the_next_likely_worker_gets_the_need(ask):
    episode = ask(
        "What is in paella?", f"1. {PRICE}", '1. {"ingredient": "in it"}\n= $1', '1. {"dish": "paella"}\n= $1'
    )
    assert episode.answer in ("rice", 2.4)


@pytest.mark.parametrize(
    ("query", "value", "values"),
    [
        ("What do 2 kilos of salmon cost?", "kilos of salmon", ["salmon", "kilos", "cost"]),
        ("How much are 4 eclairs?", "4 eclairs", ["eclairs", "4"]),
        ("What would I pay for 6 croissants?", "6", ["croissants", "pay"]),
        ("price of 5 brioches", "5 brioches", ["brioches", "5", "price"]),
        ("price of two berries", "berries", ["two berries", "two", "price"]),
        ("who minds the glass boss?", "glass boss", ["boss", "glass", "minds"]),
        ("How long is Old Chimney on North Wall?", "long", ["North Wall", "Old Chimney", "Wall"]),
        ("T-102 was opened before T-101", "days", ["T-101", "T-102", "opened"]),
        ("how much ram does bruno have", "ram", ["bruno"]),
        ("how old is the north hive's queen", "north", ["north hive", "queen", "hive", "old"]),
        ("who opened 'Blue' then", "opened", ["Blue"]),
        ("what grows in room 12 now", "12", ["room 12", "now", "room", "grows"]),
        ("what grows in 12 rooms", "rooms", ["12", "grows"]),
    ],
)
def test_names_come_before_words_and_parts_of_the_value_before_the_rest(query, value, values):
    assert list_values(query, value) == values
