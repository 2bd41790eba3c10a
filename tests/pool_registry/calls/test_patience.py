"""Calls of a job that wait for a peer: what they cost, what ends the wait, and whose cap a refusal is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pool_registry.actions import Action, Observation, Usage
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.calls.patience import RATE_LIMITED, Patience
from pool_registry.calls.spending import Spending, charge_calls_to
from pool_registry.errors import WorkerFault
from pool_registry.pool import Pool
from pool_registry.worker import Call, NoConfig, Reply, WorkerSpec
from tests.pool_registry.calls.test_layers import Echo

WAIT_S = 0.05


class Busy(Echo):
    """Takes no call before so many were refused."""

    def __init__(self, spec: WorkerSpec, config: NoConfig, refusals: int, wait_s: float | None = WAIT_S) -> None:
        super().__init__(spec, config)
        self.refusals, self.wait_s = refusals, wait_s

    async def call(self, call: Call) -> Reply:
        self.calls += 1
        if self.calls <= self.refusals:
            raise WorkerFault(RATE_LIMITED, "slow down", retryable=True, retry_after_s=self.wait_s)
        return Reply("at last")


def ask(spending: Spending, refusals: int, wait_s: float | None = WAIT_S, **changes: Any) -> tuple[Observation, Busy]:
    described = {"name": "echo", "kind": "echo", "description": "for tests", "price_call": 0.25, "retries": 0}
    spec = WorkerSpec(**described | changes)
    worker = Busy(spec, NoConfig(), refusals, wait_s)
    pool = LivePool(Pool(name="p", workers=()), {"echo": LiveWorker(spec, worker)})

    async def once() -> Observation:
        with charge_calls_to(spending):
            return await pool.call(Action("echo", {"text": "hello"}))

    return asyncio.run(once()), worker


def test_a_patient_call_outlasts_time_out_and_retries_and_pays_for_the_answer_alone():
    spending = Spending(max_cost=1.0, exact=True, patience=Patience())
    observation, worker = ask(spending, refusals=8, timeout_s=0.2)
    assert observation.value == "at last" and worker.calls == 9, "its breaker, too, did not open"
    assert spending.used.cost == 0.25 and spending.held_s >= 8 * WAIT_S and not spending.lost


def test_without_patience_a_person_learns_at_once_that_nobody_takes_the_call():
    spending = Spending(max_cost=1.0)
    observation, worker = ask(spending, refusals=8, wait_s=30.0)
    assert observation.error.code == RATE_LIMITED and worker.calls == 1 and spending.used.cost == 0.0


@pytest.mark.parametrize(
    ("patience", "reason"),
    [
        (Patience(longest_s=3 * WAIT_S), "echo has refused calls for 0 s: slow down"),
        (Patience(is_stopped=lambda: True), "the job was asked to stop while echo refused calls"),
    ],
)
def test_a_wait_ends_with_its_reason_and_the_refusal_is_no_answer(patience, reason):
    job = Spending(patience=patience)
    observation, _ = ask(Spending(parent=job), refusals=1000)
    assert observation.error.code == RATE_LIMITED and job.lost and patience.lost == reason


def test_a_peer_that_does_not_say_how_long_is_left_alone_longer_each_time(monkeypatch):
    slept: list[float] = []

    async def sleep(_self: Patience, _worker: str, seconds: float) -> bool:
        slept.append(seconds)
        return True

    monkeypatch.setattr(Patience, "_sleep", sleep)
    observation, _ = ask(Spending(patience=Patience()), refusals=9, wait_s=None)
    assert observation.ok and slept == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_the_cap_of_an_episode_says_nothing_of_what_its_job_may_spend():
    job = Spending(max_cost=10.0, exact=True)
    episode = Spending(max_cost=0.2, parent=job)
    episode.charge(Usage(cost=0.2))
    observation, _ = ask(Spending(parent=episode), refusals=0)
    assert observation.error.code == "max_cost" and episode.refused and not job.refused
