"""Training leaves a pool's finalizer off: a rollout is rewarded for what its plan answers."""

from __future__ import annotations

import asyncio

import pytest

from pool_registry.calls.live_pool import live_pool
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of
from tests.trainer.support.rollouts import Written, a_pool, a_task, an_engine, answer_of

__all__ = ["endpoint"]


@pytest.mark.medium
def test_training_leaves_the_finalizer_off(chat, endpoint):
    Endpoint.reply = staticmethod(lambda messages: "It is right.")
    plain = a_pool()
    writer = pool_of(endpoint, "writer").workers[1]
    limits = plain.pool.limits.model_copy(update={"finalizer": "writer"})
    pool = plain.pool.model_copy(update={"workers": (*plain.pool.workers, writer), "limits": limits})

    async def run():
        async with live_pool(pool) as live:
            generator = Written(chat, lambda _, number: answer_of("right"))
            return await an_engine(chat, live, max_rounds=1).run_episode(a_task(), generator)

    rollout = asyncio.run(run())
    assert rollout.sample.episode.final is None and rollout.sample.correct and Endpoint.bodies == []
