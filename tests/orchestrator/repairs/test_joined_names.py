"""Names that a query joins with one in a call, and that no call has: other plans with a step more decide."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Step
from orchestrator.policies.reader import OTHER_PLANS, ReaderPolicy
from orchestrator.repairs.joined_names import list_card_words, list_left_out_names
from pool_registry.calls.live_pool import live_pool, open_live_pool
from pool_registry.imports.functions import list_functions
from pool_registry.language_models.completion import Completion
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from tests.orchestrator.support.grammar_walk import accepts
from trainer.tasks.registry import open_source

CARDS = frozenset({"stock", "price", "bed"})


def make_steps(*values: str) -> list[Step]:
    return [Step(place, "look_up", {"name": value}, need="what a thing costs") for place, value in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("query", "values", "names"),
    [
        ("together Hannah and Oscar transfer how much", ["Hannah"], ["Oscar"]),
        ("together Hannah and Oscar transfer how much", ["Oscar"], ["Hannah"]),
        ("together Hannah and Oscar transfer how much", ["Hannah", "Oscar"], []),
        ("a scoop each of strawberry and hazelnut", ["strawberry and hazelnut"], []),
        ("one scoop of strawberry and one of hazelnut", ["strawberry"], ["hazelnut"]),
        ("is T-101 or T-102 open", ["T-102"], ["T-101"]),
        ("how much more is the stilton than a comté", ["stilton"], ["comté"]),
        ("price of tea and stock of it", ["tea"], []),  # another worker, not another name
        ("who owns T-101, and when is it due?", ["T-101"], []),
        ("tea and 3 more", ["tea"], []),
        ("tea, please", ["tea"], []),
    ],
)
def test_what_is_joined_with_a_name_and_in_no_call_is_left_out(query, values, names):
    assert list_left_out_names(query, make_steps(*values), CARDS) == names


def test_a_longer_plan_is_not_doubted():
    assert list_left_out_names("Ann and Bob", make_steps("Ann", "x", "y"), CARDS) == []


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=2))
def test_any_query_and_any_values_are_read(query, values):
    names = list_left_out_names(query, make_steps(*values), CARDS)
    assert all(name in query and not any(name.casefold() in value.casefold() for value in values) for name in names)


@pytest.mark.parametrize("query", ["x" * 10_000 + " and a", "a" + " " * 10_000 + "b", "and a " * 1_700])
def test_a_query_as_long_as_a_page_is_read_in_time(query):
    started = time.perf_counter()
    list_left_out_names(query, make_steps("a"), CARDS)
    assert time.perf_counter() - started < 1


@pytest.mark.medium
@pytest.mark.parametrize(
    ("source", "split"),
    [
        ("everyday", "train"),
        ("everyday:held_out", "test"),
        ("worlds:held_out", "test"),
        ("projects", "train"),
        ("projects:held_out", "test"),
        ("ledger,atlas,forge,itinerary", "train"),
    ],
)
def test_of_a_hundred_right_plans_at_most_two_leave_out_a_name(source, split):
    starter = open_live_pool(starter_pool())
    tasks = [task for task in open_source(source).tasks(split, 200) if task.oracle_turn and task.oracle_turn.steps]
    pools = [open_live_pool(task.pool) if task.pool else starter for task in tasks]
    left_out = [
        task.query
        for task, pool in zip(tasks, pools, strict=True)
        if list_left_out_names(task.query, task.oracle_turn.steps, list_card_words(pool.workers.values()))
    ]
    assert len(tasks) >= 100 and len(left_out) <= len(tasks) / 50, left_out


@pytest.mark.medium
def test_of_two_equal_steps_the_one_that_is_left_out_is_mostly_known():
    results = []
    for task in open_source("projects").tasks("train", 400):
        steps = task.oracle_turn.steps if task.oracle_turn else ()
        if len(steps) > 1 and steps[0].worker == steps[1].worker and not (steps[0].references or steps[1].references):
            words = list_card_words(open_live_pool(task.pool).workers.values())
            results.append(bool(list_left_out_names(task.query, steps[:1], words)))
    assert len(results) >= 30 and sum(results) >= len(results) / 2


CLUB = '''
FEES = {"Hannah": 51.5, "Oscar": 32.5}

def monthly_fee(member: str) -> float:
    """What a member of the club pays each month."""
    if member not in FEES:
        raise ValueError(f"nobody is called {member!r}")
    return FEES[member]

def plus(a: float, b: float) -> float:
    """The sum of two numbers."""
    return a + b
'''
FEE = "1. what a member pays each month"
BOTH = f"{FEE}\n2. what a member pays each month\n3. sum of two numbers (1, 2)"


class Model:
    """Plans one step, for `name`; where its grammar wants more of them, two and their sum."""

    def __init__(self, name: str, other: str = "Oscar") -> None:
        self.name, self.other = name, other
        self.drawn = 0

    async def write(self, messages, grammar, _draw) -> Completion:
        if len(messages) == 2:
            is_short = accepts(grammar, FEE)
            self.drawn += not is_short
            return Completion(FEE if is_short else BOTH)
        if BOTH in messages[2].content:
            lines = ('1. {"member": "Hannah"}', f'2. {{"member": "{self.other}"}}', '3. {"a": "$1", "b": "$2"}')
            return Completion("\n".join((*lines, "= $3")))
        return Completion(f'1. {{"member": "{self.name}"}}\n= $1')


@pytest.fixture
def ask(tmp_path) -> Callable[[Model, str], Episode]:
    (tmp_path / "club.py").write_text(CLUB)

    async def run(model: Model, query: str) -> Episode:
        offers = await list_functions(str(tmp_path / "club.py"))
        workers = tuple(offer.spec.model_copy(update={"effects": "none"}) for offer in offers)
        async with live_pool(Pool(name="club", workers=workers)) as pool:
            return await run_episode(EpisodeSpec(query), ReaderPolicy("reader", pool, model.write), pool)

    return lambda model, query: asyncio.run(run(model, query))


@pytest.mark.medium
@pytest.mark.parametrize("name", ["Hannah", "Hannah and Oscar"])  # the second is rejected, and mended to one of them
def test_the_other_name_gets_a_step_of_its_own(ask, name):
    model = Model(name)
    assert ask(model, "What do Hannah and Oscar pay together?").answer == 84
    assert model.drawn == OTHER_PLANS


@pytest.mark.medium
def test_where_the_other_name_is_unknown_the_short_plan_stands(ask):
    model = Model("Hannah", "friends")
    assert ask(model, "What do Hannah and friends pay?").answer == 51.5 and model.drawn == OTHER_PLANS


@pytest.mark.medium
def test_a_plan_with_the_only_name_is_not_doubted(ask):
    model = Model("Hannah")
    assert ask(model, "What does Hannah pay?").answer == 51.5 and model.drawn == 0
