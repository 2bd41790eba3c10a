"""Execution-guided choice: which of several drawn plans is taken, what it costs, and what is never run."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from orchestrator.answers import write_answer_key
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import OrchestratorName, TurnOptions, add_options, split_options
from orchestrator.plan import Step, Turn
from orchestrator.policies.options.voting import PlanSampler, VotingPolicy
from orchestrator.policies.registry import make_orchestrator, set_options
from pool_registry.actions import Usage
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

POOL = Pool(
    name="sums",
    workers=(
        WorkerSpec(name="calculator", kind="calculator", description="Evaluates an expression."),
        WorkerSpec(name="units", kind="units", description="Converts units."),
        WorkerSpec(
            name="solver",
            kind="chat",
            description="Answers.",
            config={"base_url": "http://127.0.0.1:9/v1", "model": "none"},
        ),
    ),
)


class Sampler(PlanSampler):
    """Draws the given turns in order."""

    name, draw = "sampler", None

    def __init__(self, *turns: Turn) -> None:
        self.turns, self.draws = list(turns), []

    async def turn(self, episode):
        return await self.draw_turn(episode, self.draw)

    async def draw_turn(self, _episode, draw):
        self.draws.append(draw)
        return replace(self.turns[len(self.draws) - 1], usage=Usage(10, 5))


def compute(expression: str, answer="$1", worker="calculator") -> Turn:
    arguments = {"expression": expression} if worker == "calculator" else {"instruction": expression}
    return Turn((Step(1, worker, arguments),), answer)


def run(*turns: Turn):
    async def once():
        async with live_pool(POOL) as pool:
            sampler = Sampler(*turns)
            assert isinstance(sampler, PlanSampler)
            episode = await run_episode(EpisodeSpec("2+2"), VotingPolicy(sampler, pool, len(turns)), pool)
            return episode, sampler.draws

    return asyncio.run(once())


def test_the_answer_of_most_plans_wins_and_its_turn_is_the_real_one():
    episode, draws = run(compute("2*3"), compute("2+2"), compute("8/2", "$1"), compute("4.0"))
    turn = episode.rounds[0].turn
    assert episode.answer == 4 and turn.steps[0].arguments == {"expression": "2+2"}
    assert turn.usage == Usage(40, 20), "every plan is paid for"
    assert (turn.vote.sampled, turn.vote.votes, turn.vote.failed, turn.vote.untried) == (4, 3, 0, 0)
    assert turn.vote.answers == {"6": 1, "4": 3}
    assert turn.vote.chosen_answer == "4" and turn.vote.chosen_usage == Usage(10, 5)
    assert draws[0].temperature == 0 and all(draw.temperature > 0 for draw in draws[1:])
    assert len({draw.seed for draw in draws}) == 4


def test_plans_that_fail_or_cannot_be_read_have_no_vote():
    bad = [Turn(error="no turn"), compute("1/0"), compute("x", worker="nobody")]
    episode, _ = run(*bad, compute("2+2"))
    vote = episode.rounds[0].turn.vote
    assert episode.answer == 4
    assert (vote.unreadable, vote.failed, vote.votes) == (1, 2, 1)


def test_the_first_plan_wins_ties_and_stands_where_no_plan_works():
    assert run(compute("1+1"), compute("2+2"))[0].answer == 2
    episode, _ = run(compute("1/0"), Turn(error="no turn"))
    assert episode.rounds[0].turn.steps[0].arguments == {"expression": "1/0"}
    assert episode.rounds[0].turn.vote.votes == 0


def test_workers_that_may_have_effects_are_not_called_for_a_vote():
    ask = compute("what is 2+2?", worker="solver")
    episode, _ = run(ask, ask, compute("2+2"))
    vote = episode.rounds[0].turn.vote
    assert (vote.untried, vote.votes) == (2, 2), "equal plans that are not run agree"
    assert len(episode.steps) == 1, "the one real call"


@pytest.mark.parametrize(("one", "other"), [(4, "4.0"), ("1,234.50", 1234.5), (" Paris", "paris "), (0.1 + 0.2, 0.3)])
def test_answers_agree_by_number_and_by_words(one, other):
    assert write_answer_key(one) == write_answer_key(other)
    assert write_answer_key(one) != write_answer_key("5")


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("smollm2-sft+samples=4", "smollm2-sft", TurnOptions(4)),
        ("model:solver:plan+constrained", "model:solver:plan", TurnOptions(1, True)),
        ("job@3+samples=8+unconstrained", "job@3", TurnOptions(8, False)),
        ("/data/c++/model", "/data/c++/model", TurnOptions()),
        ("x+samples=0", "x+samples=0", TurnOptions()),
    ],
)
def test_options_stand_behind_a_name(text, name, options):
    assert split_options(text) == (name, options)
    assert split_options(add_options(name, options)) == (name, options)
    assert split_options(str(OrchestratorName.parse(text)))[1] == options


def test_only_language_models_take_options():
    async def once():
        async with live_pool(POOL) as pool:
            voting = make_orchestrator("model:solver:plan+samples=3", pool)
            assert voting.name == "model:solver:plan+samples=3"
            with pytest.raises(UnknownOrchestrator, match="takes no option"):
                make_orchestrator("direct:solver+samples=3", pool)
            plain = make_orchestrator("direct:solver", pool)
            assert set_options(plain, pool, TurnOptions()) is plain

    asyncio.run(once())
