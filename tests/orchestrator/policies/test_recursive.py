"""Recursion on one's own answer: it is held back once, shown, and improved or kept."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.events import EpisodeEnded
from orchestrator.engine.release import Orchestrator
from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import TurnOptions, add_options, split_options
from orchestrator.plan import Turn
from orchestrator.policies.options.recursive import RecursivePolicy, find_draft
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.policies.registry import set_options
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Limits
from tests.orchestrator.support.endpoint import Endpoint, play, pool_of

FIRST = 'workers = [0]\nsubtasks = ["6*7"]\naccess = [[]]'
EMPTY = "workers = []\nsubtasks = []\naccess = []"
BETTER = 'workers = [0]\nsubtasks = ["$1 + 1"]\naccess = [[1]]'


def write(*turns: str):
    written = iter(turns)
    return lambda _: next(written)


@pytest.mark.parametrize(("second", "answer"), [(EMPTY, 42), (BETTER, 43)])
def test_the_first_answer_is_shown_and_kept_or_improved(endpoint, second, answer):
    episode = play("model:boss:conductor+recursive", endpoint, write(FIRST, second), max_rounds=2)
    assert (episode.answer, len(episode.rounds), find_draft(episode)) == (answer, 2, 1)
    assert episode.rounds[0].turn.draft == "$1" and not episode.rounds[0].turn.has_answer
    shown = Endpoint.bodies[1]["messages"][-1]["content"]
    assert "Step 1 (calc) OK: 42" in shown and "Your answer so far: $1." in shown and "last turn" in shown


def test_it_is_asked_once_more_and_not_again(endpoint):
    turns = write('{"answer": "a"}', '{"answer": "b"}', '{"answer": "c"}')
    episode = play("model:boss:plan+recursive", endpoint, turns, max_rounds=5)
    assert episode.answer == "b" and episode.started.orchestrator == "model:boss:plan+recursive"


def test_without_a_round_left_the_answer_stands(endpoint):
    episode = play("model:boss:conductor+recursive", endpoint, write(FIRST), max_rounds=1)
    assert episode.answer == 42 and find_draft(episode) is None


def test_a_draft_of_a_step_that_does_not_exist_is_an_error_like_an_answer(endpoint):
    turns = write('{"answer": "$7"}', '{"answer": "a"}', '{"answer": "b"}')
    episode = play("model:boss:plan+recursive", endpoint, turns, max_rounds=3)
    assert "$7" in episode.rounds[0].turn.error and episode.answer == "b" and find_draft(episode) == 2


def test_a_grammar_lets_the_lists_be_empty_once_there_are_steps():
    from orchestrator.grammars.conductor_grammar import conductor_grammar

    assert '"workers = ["  "]' not in conductor_grammar(2, 1, (), 3).lark
    assert '"workers = ["  "]' in conductor_grammar(2, 2, (1,), 3).lark


def test_the_option_is_part_of_a_name():
    assert split_options("a@3+samples=4+recursive") == ("a@3", TurnOptions(4, recursive=True))
    assert add_options("a+recursive", TurnOptions(2)) == "a+samples=2+recursive"


def test_a_reader_takes_no_recursion(endpoint):
    async def ask():
        async with live_pool(pool_of(endpoint, "boss")) as pool:
            return set_options(ReaderPolicy("r", pool, None), pool, TurnOptions(recursive=True))

    with pytest.raises(UnknownOrchestrator, match="takes no \\+recursive"):
        asyncio.run(ask())


def test_an_answer_that_is_kept_ends_the_episode(endpoint):
    class Twice(Orchestrator):
        name = "twice"

        async def turn(self, episode):
            return Turn(answer=f"answer {len(episode.rounds)}")

    async def ask():
        async with live_pool(pool_of(endpoint)) as pool:
            return await run_episode(EpisodeSpec("q"), RecursivePolicy(Twice()), pool, limits=Limits(max_rounds=9))

    ended = asyncio.run(ask()).ended
    assert isinstance(ended, EpisodeEnded) and (ended.outcome, ended.answer) == ("answered", "answer 2")
