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
from orchestrator.repairs.table import ALL, EVERY_REPAIR, REMOVED, REPAIRS, in_table_order, label_repair, leave_out
from pool_registry.calls.live_pool import live_pool, open_live_pool
from pool_registry.imports.functions import list_functions
from pool_registry.language_models.completion import Completion
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool

CLUB = '''
FEES = {"Hannah": 51.5, "Oscar": 32.5}

def monthly_fee(member: str) -> float:
    """What a member of the club pays each month."""
    if member not in FEES:
        raise ValueError(f"nobody is called {member!r}")
    return FEES[member]
'''
NEED = "1. What a member of the club pays each month"


@dataclass
class Model:
    """Plans one step, for this member at first and for another one in plans that are drawn."""

    member: str
    drawn: str = "nobody"

    async def write(self, messages, _grammar, draw) -> Completion:
        member = self.drawn if draw is not None and draw.temperature else self.member
        return Completion(NEED if len(messages) == 2 else f'1. {{"member": "{member}"}}\n= $1')


SCENES = {
    "other_words": ("What does our Hannah pay?", Model("our Hannah"), 51.5),
    "other_plans": ("What does the first of them pay?", Model("the first", drawn="Oscar"), 32.5),
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
    query, model, mended = SCENES[name]
    shipped = ask(query, model, EVERY_REPAIR)
    assert shipped.answer == mended and name in list_marks(shipped)
    without = ask(query, model, leave_out([name]))
    assert name not in list_marks(without) and without.answer is None
    alone = ask(query, model, leave_out([ALL]))
    assert list_marks(alone) == set() and alone.answer is None and len(alone.rounds) <= 2


def test_every_row_says_what_it_does_in_a_sentence():
    assert all(row.does.endswith(".") and row.label == row.label.lower() for row in REPAIRS.values())
    assert in_table_order(EVERY_REPAIR) == tuple(REPAIRS)


def test_an_orchestrators_name_carries_what_is_off():
    name = add_options("smollm2-reader+samples=4", TurnOptions(without=("other_plans", "other_words")))
    assert name == "smollm2-reader+samples=4+without=other_plans,other_words"
    assert split_options(name) == ("smollm2-reader", TurnOptions(4, without=("other_plans", "other_words")))
    assert label_orchestrator("smollm2-reader+without=all") == "SmolLM2 reader, the model alone"
    assert label_orchestrator("smollm2-reader+without=other_words") == "SmolLM2 reader, without other words"


@pytest.mark.parametrize("name", REMOVED)
def test_a_repair_that_is_no_more_is_off_wherever_it_is_still_named(name):
    assert leave_out([name]) == EVERY_REPAIR and leave_out([name, "other_words"]) == leave_out(["other_words"])
    assert split_options(f"smollm2-reader+without={name}") == ("smollm2-reader", TurnOptions(without=(name,)))
    live = open_live_pool(starter_pool())
    reader = set_options(ReaderPolicy("reader", live, None), live, TurnOptions(without=(name,)))
    assert reader.repairs == EVERY_REPAIR
    assert label_repair(name) == name.replace("_", " ") and label_repair("other_plans") == REPAIRS["other_plans"].label


def test_a_name_that_is_no_repair_is_refused_with_those_that_there_are():
    with pytest.raises(UnknownOrchestrator, match="no repair 'spelling'; there are: named_operations"):
        leave_out(["spelling"])
    live = open_live_pool(starter_pool())
    with pytest.raises(UnknownOrchestrator, match="no repair 'spelling'"):
        set_options(ReaderPolicy("reader", live, None), live, TurnOptions(without=("spelling",)))


def test_an_orchestrator_without_repairs_takes_no_switch():
    live = open_live_pool(starter_pool())
    with pytest.raises(UnknownOrchestrator, match="only checkpoints and model:AGENT"):
        make_orchestrator("fan_out:solver+without=all", live)
