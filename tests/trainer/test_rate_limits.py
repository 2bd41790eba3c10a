"""Agents whose provider takes no calls for a while: a job waits, and nobody is wrong for not having been asked."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from typing import Any

import pytest

from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.live_pool import live_pool
from pool_registry.calls.patience import RATE_LIMITED, Patience
from pool_registry.pool import Limits, Pool
from tests.orchestrator.support.endpoint import Endpoint, RateLimit, agent, endpoint
from tests.trainer.methods.grpo.conftest import chat
from tests.trainer.support.rollouts import Written, a_task, an_engine
from tests.trainer.test_outcome_stage import crew, run
from trainer.errors import TrainingFailed
from trainer.results.rows import read_results
from trainer.spend_cap import sum_costs

__all__ = ["chat", "crew", "endpoint"]
pytestmark = pytest.mark.medium
PRICE = 5e-6  # of an answer: five tokens at a dollar a million


def shorten_deadline(pool: Pool, seconds: float) -> Pool:
    return pool.model_copy(update={"limits": Limits(deadline_s=seconds)})


def check_every_answer_was_paid_once(folder) -> None:
    rows = read_results(folder.outcomes)
    assert Counter((row.orchestrator, row.correct) for row in rows) == {
        (f"direct:{name}", correct): 12 for name in ("first", "second") for correct in (True, False)
    }
    assert {row.outcome for row in rows} == {"answered"}
    assert len(Endpoint.bodies) == 48, "no call that was taken is made again"
    assert sum_costs(folder)["who"] == pytest.approx(48 * PRICE)


def test_agents_that_are_limited_answer_every_question_all_the_same(crew):
    _, folder, pool, _ = crew
    Endpoint.refuse = staticmethod(RateLimit(12, 0.6))
    assert run(crew, pool, concurrency=8)[0]
    assert Endpoint.refused > 4, "the limit was met"
    check_every_answer_was_paid_once(folder)


def test_an_outage_that_is_longer_than_the_deadline_of_an_episode_costs_none(crew):
    _, folder, pool, _ = crew
    opens_at = time.monotonic() + 2.5
    Endpoint.refuse = staticmethod(lambda: 0.4 if time.monotonic() < opens_at else None)
    assert run(crew, shorten_deadline(pool, 1.0), concurrency=8)[0]
    check_every_answer_was_paid_once(folder)


def test_a_stop_does_not_wait_for_the_provider_and_what_was_refused_is_asked_later(crew):
    _, folder, pool, _ = crew
    taken = iter([None] * 10)
    Endpoint.refuse = staticmethod(lambda: _refuse_after(taken, folder))
    began = time.monotonic()
    assert run(crew, pool, concurrency=4)[0] is False and time.monotonic() - began < 10
    done = read_results(folder.outcomes)
    assert len(done) == len(Endpoint.bodies) == 10 and {row.outcome for row in done} == {"answered"}
    folder.stop_file.unlink()
    Endpoint.refuse = staticmethod(lambda: None)
    assert run(crew, pool, concurrency=4)[0]
    check_every_answer_was_paid_once(folder)


def _refuse_after(taken, folder) -> float | None:
    """Take the calls that are left, then none, and have the job stopped."""
    if next(taken, "none left") is None:
        return None
    folder.stop_file.touch()
    return 30.0


def test_a_provider_that_takes_no_calls_for_too_long_ends_the_stage_with_what_is_finished(crew, monkeypatch):
    _, folder, pool, _ = crew
    taken = iter([None] * 10)
    Endpoint.refuse = staticmethod(lambda: next(taken, 0.3))
    monkeypatch.setattr(Patience.__init__, "__defaults__", (lambda: False, 1.0))
    with pytest.raises(TrainingFailed, match=r"has refused calls for \d s.*Go on when .* jobs resume JOB") as failure:
        run(crew, pool, concurrency=4)
    assert failure.value.code == RATE_LIMITED and len(read_results(folder.outcomes)) == 10
    Endpoint.refuse = staticmethod(lambda: None)
    assert run(crew, pool)[0]
    check_every_answer_was_paid_once(folder)


def call_expert(query: str) -> str:
    step = {"worker": "expert", "arguments": {"instruction": query}, "access": []}
    return json.dumps({"steps": [step], "answer": "$1"})


def roll_out(chat, url: str, groups: int, **changes: Any):
    """Groups of rollouts, each of which asks an agent once; and what they cost."""
    spec = agent("expert", url, price_out=1.0, **changes)

    async def sample():
        async with live_pool(Pool(name="p", workers=(spec,), limits=Limits(deadline_s=1.0))) as pool:
            engine = an_engine(chat, CachingPool(pool), max_rounds=1)
            generator = Written(chat, lambda query, _: call_expert(query))
            tasks = [a_task(f"question {number}", number) for number in range(groups)]
            rows = await asyncio.gather(*(engine.run_group(task, generator, 2) for task in tasks))
            return rows, engine.cost

    return asyncio.run(sample())


def test_rollouts_wait_for_an_agent_that_is_limited_and_learn_from_no_refusal(chat, endpoint):
    Endpoint.reply = staticmethod(lambda messages: "right")
    opens_at = time.monotonic() + 1.5
    limit = RateLimit(4, 0.5)
    Endpoint.refuse = staticmethod(lambda: 0.4 if time.monotonic() < opens_at else limit())
    groups, cost = roll_out(chat, endpoint, 8)
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    assert Endpoint.refused > 4 and [rollout.sample.correct for rollout in rollouts] == [True] * 16
    assert len(Endpoint.bodies) == 16 and cost == pytest.approx(16 * PRICE)
    failures = [run.observation.error for rollout in rollouts for run in rollout.sample.episode.steps.values()]
    assert failures == [None] * 16


def test_rollouts_end_where_an_agent_takes_no_calls_for_too_long(chat, endpoint, monkeypatch):
    Endpoint.refuse = staticmethod(lambda: 0.3)
    monkeypatch.setattr(Patience.__init__, "__defaults__", (lambda: False, 1.0))
    with pytest.raises(ExceptionGroup) as failures:
        roll_out(chat, endpoint, 1)
    assert failures.group_contains(TrainingFailed, match="expert has refused calls for")
