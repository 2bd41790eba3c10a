"""A reader whose plan failed for good draws others: which one is taken, what is never run twice, what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.reader import OTHER_PLANS, ReaderPolicy
from orchestrator.reader import bind_needs
from orchestrator.reader.fill import BoundNeed
from orchestrator.reader.refusal import is_refusal, refuse
from orchestrator.repairs import repeat_steps
from pool_registry.actions import Usage
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.language_models.completion import Completion, Draw, Message
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec

CONVERT = "1. convert units of measure"
TO_KM, TO_NOTHING = (f'{{"value": 5, "from_unit": "{unit}", "to_unit": "km"}}' for unit in ("mile", "parsnip"))
USAGE = Usage(10, 5)


class Model:
    """Writes the same needs, and these arguments: the first ones greedily, the others one by one for drawn plans."""

    def __init__(self, greedy: str, *drawn: str, needs: str = CONVERT) -> None:
        self.greedy, self.drawn, self.needs = greedy, list(drawn), needs
        self.seeds: list[int | None] = []

    async def write(self, messages: list[Message], _grammar: object, draw: Draw | None) -> Completion:
        if len(messages) == 2:
            return Completion(self.needs, usage=USAGE)
        if draw is None or draw.temperature == 0:
            return Completion(self.greedy, usage=USAGE)
        self.seeds.append(draw.seed)
        return Completion(self.drawn[len(self.seeds) - 1], usage=USAGE)


@pytest.fixture(autouse=True)
def one_worker(monkeypatch):
    """Every need is like the unit converter alone, and no other words are tried for a rejected call."""
    monkeypatch.setattr(repeat_steps, "plan_trials", lambda *_: [])
    monkeypatch.setattr(bind_needs, "rank_workers", lambda need, _: [BoundNeed(need, "units", 0.9)])


def run(model: Model, pool: Pool | None = None) -> Episode:
    live = open_live_pool(pool or starter_pool())
    return asyncio.run(
        run_episode(EpisodeSpec("How far are 5 miles in km?"), ReaderPolicy("r", live, model.write), live)
    )


def fill(arguments: str, answer: str = "$1") -> str:
    return f"1. {arguments}\n= {answer}"


def list_votes(episode: Episode) -> Sequence[object]:
    return [done.turn.vote for done in episode.rounds if done.turn is not None]


def test_what_most_of_the_drawn_plans_agree_on_is_the_answer():
    other = TO_KM.replace("5", "6")
    model = Model(fill(TO_NOTHING), fill(other), fill(TO_NOTHING), fill(TO_KM), fill(TO_KM))
    episode = run(model)
    assert episode.answer == pytest.approx(8.04672) and episode.ended.outcome == "answered"
    assert [(k, run.observation.ok) for k, run in episode.steps.items()] == [(1, False), (2, True)]
    first, vote = list_votes(episode)
    assert first is None and (vote.sampled, vote.votes, vote.failed) == (OTHER_PLANS, 2, 1)
    assert len(set(model.seeds)) == OTHER_PLANS, "each is drawn for itself"
    assert episode.rounds[-1].turn.usage.tokens_in >= 2 * OTHER_PLANS * USAGE.tokens_in, "all of them are paid for"


def test_refusals_of_different_needs_agree():
    refusals = (refuse("convert units of measure"), refuse("the length of a mile"))
    model = Model(fill(TO_NOTHING), fill(TO_KM), *(f"= {text}" for text in refusals), fill(TO_NOTHING))
    assert is_refusal(run(model).answer)


def test_a_plan_that_works_draws_no_others():
    model = Model(fill(TO_KM))
    assert run(model).answer == pytest.approx(8.04672) and not model.seeds


def test_where_every_drawn_plan_fails_the_run_ends_with_what_the_worker_said():
    model = Model(fill(TO_NOTHING), *[fill(TO_NOTHING)] * OTHER_PLANS)
    episode = run(model)
    assert episode.answer is None and "parsnip" in episode.ended.reason
    assert len(model.seeds) == OTHER_PLANS, "once, not again and again"
    assert episode.usage.tokens_in >= 2 * OTHER_PLANS * USAGE.tokens_in


def test_where_every_drawn_plan_fails_a_query_that_is_like_no_worker_is_refused(monkeypatch):
    monkeypatch.setattr(ReaderPolicy, "_resembles_worker", lambda *_: False)
    model = Model(fill(TO_NOTHING), *[fill(TO_NOTHING)] * OTHER_PLANS)
    episode = run(model)
    assert episode.answer == refuse("convert units of measure")
    assert episode.usage.tokens_in >= 2 * OTHER_PLANS * USAGE.tokens_in


@pytest.mark.parametrize("more", [{"effects": "some"}, {"price_call": 0.01}])
def test_a_plan_that_may_have_effects_or_cost_money_is_not_begun_a_second_time(more):
    pool = starter_pool()
    workers = [spec.model_copy(update=more) if spec.name == "units" else spec for spec in pool.workers]
    model = Model(fill(TO_NOTHING), *[fill(TO_KM)] * OTHER_PLANS)
    episode = run(model, pool.model_copy(update={"workers": tuple(workers)}))
    assert episode.answer is None and list(episode.steps) == [1]


def test_functions_of_a_persons_own_pool_are_tried_where_their_calls_only_read():
    spec = WorkerSpec(
        name="units",
        kind="function",
        description="Converts.",
        config={"target": f"{__name__}:convert"},
        effects="none",
    )
    model = Model(fill('{"unit": "parsnip"}'), *[fill('{"unit": "mile"}')] * OTHER_PLANS)
    assert run(model, Pool(name="own", workers=(spec,))).answer == 1609.344


def convert(unit: str) -> float:
    return {"mile": 1609.344}[unit]


def test_an_unreadable_first_plan_has_others_too():
    class Babbler(Model):
        async def write(self, messages, grammar, draw):
            said = await super().write(messages, grammar, draw)
            return replace(said, text="hm") if len(messages) == 2 and (draw is None or draw.temperature == 0) else said

    episode = run(Babbler("", *[fill(TO_KM)] * OTHER_PLANS))
    assert episode.answer == pytest.approx(8.04672)
