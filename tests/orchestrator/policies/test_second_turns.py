"""A reader that learnt it reads what came of its plan and writes another one, before any repair."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.reader.cards import make_listing_format
from orchestrator.reader.conversation import STATES
from orchestrator.reader.refusal import REFUSAL
from orchestrator.repairs.table import ALL, leave_out
from pool_registry.calls.live_pool import live_pool
from pool_registry.imports.functions import list_functions
from pool_registry.language_models.completion import Completion, Message
from pool_registry.pool import Pool

CLUB = '''
FEES = {"Hannah": 51.5, "Oscar": 32.5}

def monthly_fee(member: str) -> float:
    """What a member of the club pays each month."""
    if member not in FEES:
        raise ValueError(f"there is no member {member!r}")
    return FEES[member]

def member_of_card(card: str) -> str:
    """Who holds a card of the club."""
    if card != "C-7":
        raise ValueError(f"there is no card {card!r}")
    return "Hannah"
'''
FEE, HOLDER = "What a member of the club pays each month", "Who holds a card of the club"
QUERY = "What does the holder of C-7 pay?"
WRONG = (f"1. {FEE}", '1. {"member": "C-7"}\n= $1')
RIGHT = (f"1. {HOLDER}\n2. {FEE} (1)", '1. {"card": "C-7"}\n2. {"member": "$1"}\n= $2')


class Model:
    """Writes these texts, one after the other, and keeps the conversations that it was shown."""

    def __init__(self, *texts: str) -> None:
        self._texts = list(texts)
        self.conversations: list[list[Message]] = []

    async def write(self, messages, _grammar, _draw) -> Completion:
        self.conversations.append(messages)
        return Completion(self._texts.pop(0))


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Ask a scripted reader of the club's functions."""
    monkeypatch.setattr("orchestrator.retrieval.sentence_vectors.find_weights", lambda: None)
    (tmp_path / "club.py").write_text(CLUB)

    async def run(model: Model, without: Sequence[str], style: str) -> Episode:
        offers = await list_functions(str(tmp_path / "club.py"))
        workers = tuple(offer.spec.model_copy(update={"effects": "none"}) for offer in offers)
        async with live_pool(Pool(name="club", workers=workers)) as live:
            reader = ReaderPolicy(
                "r", live, model.write, repairs=leave_out(without), listing=make_listing_format(style), other_plans=0
            )
            return await run_episode(EpisodeSpec(QUERY), reader, live)

    def ask(*texts: str, without: Sequence[str] = (ALL,), style: str = "reader-turns") -> tuple[Episode, Model]:
        model = Model(*texts)
        return asyncio.run(run(model, without, style)), model

    return ask


def test_the_model_reads_the_error_and_plans_again(ask):
    episode, model = ask(*WRONG, *RIGHT)
    assert episode.answer == 51.5
    first, second = (done.turn for done in episode.rounds)
    assert (first.repairs, second.repairs) == ((), ("second_turns",))
    states = model.conversations[2][-1].content
    assert states.startswith(STATES) and "there is no member 'C-7'" in states
    assert [message.content for message in model.conversations[2][2:5:2]] == list(WRONG)
    assert model.conversations[3][:-2] == model.conversations[2], "the conversation is only ever appended to"


def test_what_has_worked_is_not_called_again(ask):
    partly = (f"1. {HOLDER}\n2. {FEE} (1)", '1. {"card": "C-7"}\n2. {"member": "C-7"}\n= $2')
    episode, _ = ask(*partly, *RIGHT)
    assert episode.answer == 51.5
    assert [(run.step.worker, run.state) for run in episode.steps.values()] == [
        ("member_of_card", "OK"),
        ("monthly_fee", "EXEC_ERR"),
        ("monthly_fee", "OK"),
    ]


def test_a_third_plan_is_the_last(ask):
    other = (f"1. {FEE}", '1. {"member": "the holder"}\n= $1')
    episode, model = ask(*WRONG, *other, *RIGHT)
    assert episode.answer == 51.5 and len(episode.rounds) == 3
    assert model.conversations[4][4].content == other[1], "the last plan is what it reads of"
    others = [(f"1. {FEE}", f'1. {{"member": "{name}"}}\n= $1') for name in ("Anna", "Ben", "Carl", "Dora")]
    episode, model = ask(*WRONG, *others[0], *others[1], *others[2])
    assert episode.ended.outcome == "orchestrator_failed" and len(model.conversations) == 6


def test_a_model_that_gives_up_says_so(ask):
    episode, _ = ask(*WRONG, REFUSAL)
    assert episode.answer == REFUSAL and episode.rounds[-1].turn.repairs == ("second_turns",)


def test_the_same_plan_again_ends_the_episode(ask):
    episode, _ = ask(*WRONG, *WRONG)
    assert episode.ended.outcome == "orchestrator_failed" and "there is no member" in episode.ended.reason


@pytest.mark.parametrize("style", ["reader", "reader-fields"])
def test_a_model_that_has_not_learnt_it_is_not_asked(ask, style):
    episode, model = ask(*WRONG, style=style)
    assert episode.ended.outcome == "orchestrator_failed" and len(model.conversations) == 2


def test_it_has_a_switch(ask):
    _, model = ask(*WRONG, without=(ALL, "second_turns"))
    assert len(model.conversations) == 2
    assert leave_out([ALL]) == {"second_turns"} and not leave_out([ALL, "second_turns"])


def test_repairs_come_after_it_and_know_the_first_plan(ask):
    """The model has nothing new; then another word of the query, which another worker turns into a member."""
    episode, model = ask(*WRONG, *WRONG, without=("other_plans", "left_out_workers"))
    assert episode.answer == 51.5 and len(model.conversations) == 4
    assert "other_words" in episode.rounds[-1].turn.repairs
