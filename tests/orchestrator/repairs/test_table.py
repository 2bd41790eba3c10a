"""Each repair has a switch, and a turn that it changed says so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import TurnOptions, add_options, split_options
from orchestrator.policies.labels import label_orchestrator
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.policies.registry import make_orchestrator, set_options
from orchestrator.reader.refusal import refuse
from orchestrator.repairs.table import ALL, EVERY_REPAIR, REPAIRS, in_table_order, leave_out
from pool_registry.calls.live_pool import live_pool, open_live_pool
from pool_registry.imports.functions import list_functions
from pool_registry.language_models.completion import Completion
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from tests.orchestrator.support.grammar_walk import accepts

CLUB = '''
FEES = {"Hannah": 51.5, "Oscar": 32.5}

def monthly_fee(member: str) -> float:
    """What a member of the club pays each month."""
    if member not in FEES:
        raise ValueError(f"nobody is called {member!r}")
    return FEES[member]

def times(a: float, b: float) -> float:
    """The product of two numbers."""
    return a * b

def plus(a: float, b: float) -> float:
    """The sum of two numbers."""
    return a + b
'''
FEE, PRODUCT, SUM = "What a member of the club pays each month", "The product of two numbers", "The sum of two numbers"
HANNAH = '1. {"member": "Hannah"}'
BOTH = f'{HANNAH}\n2. {{"member": "Oscar"}}\n3. {{"a": "$1", "b": "$2"}}\n= $3'


@dataclass
class Model:
    """Writes the first needs and arguments, and the longer ones where its grammar wants more steps than those have."""

    needs: str
    arguments: str
    longer_needs: str = f"1. {FEE}\n2. {FEE}\n3. {SUM} (1, 2)"
    longer_arguments: str = BOTH

    async def write(self, messages, grammar, _draw) -> Completion:
        if len(messages) == 2:
            return Completion(self.needs if grammar is None or accepts(grammar, self.needs) else self.longer_needs)
        return Completion(self.longer_arguments if self.longer_needs in messages[2].content else self.arguments)


SCENES = {
    "joined_names": (
        "What do Hannah and Oscar pay together?",
        Model(f"1. {FEE}", f"{HANNAH}\n= $1"),
        84,
        51.5,
    ),
    "other_words": (
        "What does our Hannah pay?",
        Model(f"1. {FEE}", '1. {"member": "our Hannah"}\n= $1'),
        51.5,
        None,
    ),
    "repeated_outputs": (
        "What does Hannah pay for 4 months?",
        Model(f"1. {FEE}\n2. {PRODUCT} (1)", HANNAH + '\n2. {"a": "$1", "b": "$1"}\n= $2'),
        206,
        51.5 * 51.5,
    ),
    "doubted_refusals": (
        "What a member of the club pays each month: Hannah and Oscar",
        Model(refuse(), ""),
        84,
        refuse(),
    ),
}


@pytest.fixture
def ask(tmp_path):
    """Run a query on the club with a scripted model and these repairs."""
    (tmp_path / "club.py").write_text(CLUB)

    async def run(query: str, model: Model, repairs: frozenset[str]) -> Episode:
        offers = await list_functions(str(tmp_path / "club.py"))
        workers = tuple(offer.spec.model_copy(update={"effects": "none"}) for offer in offers)
        async with live_pool(Pool(name="club", workers=workers)) as pool:
            return await run_episode(EpisodeSpec(query), ReaderPolicy("r", pool, model.write, repairs=repairs), pool)

    return lambda *arguments: asyncio.run(run(*arguments))


def list_marks(episode: Episode) -> set[str]:
    return {name for done in episode.rounds if done.turn is not None for name in done.turn.repairs}


@pytest.mark.medium
@pytest.mark.parametrize("name", SCENES)
def test_a_repair_marks_the_turn_that_it_changed_and_can_be_switched_off(ask, name):
    query, model, mended, unmended = SCENES[name]
    shipped = ask(query, model, EVERY_REPAIR)
    assert shipped.answer == mended and name in list_marks(shipped)
    without = ask(query, model, leave_out([name]))
    assert name not in list_marks(without) and without.answer != mended
    alone = ask(query, model, leave_out([ALL]))
    assert list_marks(alone) == set() and alone.answer == unmended and len(alone.rounds) <= 2


def test_every_row_says_what_it_does_in_a_sentence():
    assert all(row.does.endswith(".") and row.label == row.label.lower() for row in REPAIRS.values())
    assert in_table_order(EVERY_REPAIR) == tuple(REPAIRS)


def test_an_orchestrators_name_carries_what_is_off():
    name = add_options("smollm2-reader+samples=4", TurnOptions(without=("joined_names", "other_words")))
    assert name == "smollm2-reader+samples=4+without=joined_names,other_words"
    assert split_options(name) == ("smollm2-reader", TurnOptions(4, without=("joined_names", "other_words")))
    assert label_orchestrator("smollm2-reader+without=all") == "SmolLM2 reader, the model alone"
    assert label_orchestrator("smollm2-reader+without=idle_steps") == "SmolLM2 reader, without idle steps"


def test_a_name_that_is_no_repair_is_refused_with_those_that_there_are():
    with pytest.raises(UnknownOrchestrator, match="no repair 'spelling'; there are: doubted_refusals"):
        leave_out(["spelling"])
    live = open_live_pool(starter_pool())
    with pytest.raises(UnknownOrchestrator, match="no repair 'spelling'"):
        set_options(ReaderPolicy("reader", live, None), live, TurnOptions(without=("spelling",)))


def test_an_orchestrator_without_repairs_takes_no_switch():
    live = open_live_pool(starter_pool())
    with pytest.raises(UnknownOrchestrator, match="only checkpoints and model:AGENT"):
        make_orchestrator("fan_out:solver+without=all", live)
