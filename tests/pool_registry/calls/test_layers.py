"""The layers around a call: their order, a new row, and that nothing but a cancellation comes through."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping
from typing import Any

import pytest

from pool_registry.actions import Action, Observation, Status, Usage
from pool_registry.calls import layers
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.calls.spending import Spending, charge_calls_to
from pool_registry.errors import WorkerFault
from pool_registry.language_models.completion import Completion, Message
from pool_registry.pool import Pool
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec, one_string


class Echo(Worker[NoConfig]):
    """Answers what it is asked, as a call and as a model, and counts."""

    cacheable = True
    remote = True
    calls = 0

    @property
    def parameters(self) -> Mapping[str, Any]:
        return one_string("text", "anything")

    async def call(self, call: Call) -> Reply:
        self.calls += 1
        return Reply(call.text("text"))

    async def complete(self, messages: Any, options: Any) -> Completion:
        return Completion(messages[-1].content)


class Careless(Echo):
    """Cannot say what it may use."""

    def estimate_usage(self, call: Call) -> Usage:
        raise KeyError("tokens")


def open_pool(kind: type[Echo] = Echo, **changes: Any) -> LivePool:
    spec = WorkerSpec(name="echo", kind="echo", description="for tests", **changes)
    return LivePool(Pool(name="p", workers=()), {"echo": LiveWorker(spec, kind(spec, NoConfig()))})


def ask(pool: LivePool) -> Observation:
    async def once() -> Observation:
        with charge_calls_to(Spending(max_tokens=1000)):
            return await pool.call(Action("echo", {"text": "hello"}))

    return asyncio.run(once())


def test_the_layers_stand_in_the_order_in_which_a_call_meets_them():
    rows = [layer.run.__name__ for layer in (*layers.ANSWER_LAYERS, *layers.WORK_LAYERS)]
    assert rows[:3] == ["use_cache", "shorten", "take_over"]
    assert rows[3:7] == ["wait_for_slot", "keep_rate", "check_first", "keep_within_caps"]
    assert rows[7:10] == ["break_circuit", "tell_start", "wait_out_refusals"]
    assert rows[10:] == ["limit_time", "retry", "heed_peer", "pay_attempt"]


def test_one_row_is_all_that_a_new_layer_takes(monkeypatch):
    met = []

    async def refuse(proceed: Any, work: Any) -> Any:
        met.append(work.worker.spec.name)
        raise WorkerFault("not_now", "ask tomorrow")

    row = layers.WorkLayer(refuse, layers.always, layers.always)
    monkeypatch.setattr(layers, "WORK_LAYERS", (*layers.WORK_LAYERS, row))
    pool = open_pool(retries=0)
    observation = ask(pool)
    assert observation.status is Status.EXEC_ERR and observation.error is not None
    assert (observation.error.code, observation.error.message) == ("not_now", "ask tomorrow")
    with pytest.raises(WorkerFault, match="ask tomorrow"):
        asyncio.run(pool.workers["echo"].complete([Message("user", "hello")]))
    assert met == ["echo", "echo"]


def test_a_row_among_those_who_answer_sees_the_observation(monkeypatch):
    seen = []

    async def listen(worker: Any, peers: Any, proceed: Any, call: Call, start: Any) -> Observation:
        observation = await proceed(call, start)
        seen.append(observation.value)
        return observation

    row = layers.AnswerLayer(listen, lambda worker, peers: True)
    monkeypatch.setattr(layers, "ANSWER_LAYERS", (row, *layers.ANSWER_LAYERS))
    assert ask(open_pool()).ok and seen == ["hello"]


def test_an_adapter_that_fails_to_estimate_its_call_is_an_observation():
    observation = ask(open_pool(Careless))
    assert observation.status is Status.EXEC_ERR and observation.error is not None
    assert observation.error.code == "worker_raised" and "KeyError" in observation.error.message


def test_the_breaker_of_a_worker_ends_with_its_last_pool():
    pool = open_pool(retries=0, timeout_s=7.0)  # a worker of its own: equal ones share a breaker
    ask(pool)
    breaker = weakref.ref(pool.workers["echo"].breaker)
    del pool
    assert breaker() is None, "an edited worker starts afresh, and so does the same one when it is opened again"


def test_a_narrowed_pool_of_a_job_goes_on_recording():
    pool = CachingPool(open_pool()).narrow({"echo"})
    first, second = ask(pool), ask(pool)
    assert not first.cached and second.cached, "the narrowed pool has its job's cache"
