"""The layers around a call, from the outside in. A new one is a function and a row.

`LivePool.call` finds the worker, checks the arguments and goes through ANSWER_LAYERS, which decide who answers;
`LiveWorker.call` makes an observation of whatever comes out of WORK_LAYERS, which guard the one worker. A layer gets
`proceed`, which goes on to the next: it may wait before, look at what comes back, go on again or not at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from operator import methodcaller
from typing import Any, NamedTuple, TypeAlias

import stamina

from pool_registry.actions import NO_USAGE, Observation, Usage
from pool_registry.calls.call_cache import CallCache, key_of
from pool_registry.calls.circuit_breaker import Admission
from pool_registry.calls.fallbacks import ask_in_turn
from pool_registry.calls.patience import RATE_LIMITED
from pool_registry.calls.run_limits import NO_RUN_LIMITS, RunLimits
from pool_registry.calls.spending import Bill, current_spending
from pool_registry.calls.summarize import shorten_outputs
from pool_registry.calls.time_limit import CallClock
from pool_registry.calls.worker_state import OnStart, WorkerState, clean_message, ends_the_task
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.worker import Call

NO_PRICE = (
    "{0} was not called: the cost of this run has a limit, and what a call of {0} costs is not known. "
    "Give it a price on the Pool page, or say there that it is free"
)
NOTHING_DUE = Bill(None, NO_USAGE, 0.0)


class Work(ABC):
    """What one worker is asked, on its way to the adapter."""

    __slots__ = ("bill", "clock", "on_start", "worker")

    def __init__(self, worker: WorkerState, on_start: OnStart | None = None) -> None:
        self.worker = worker
        self.on_start = on_start
        self.bill = NOTHING_DUE
        self.clock: CallClock | None = None

    @abstractmethod
    def check(self) -> None:
        """Raise WorkerFault where it can be seen to fail before anything is paid for it."""

    @abstractmethod
    def estimate(self) -> Usage:
        """What it may use."""

    @abstractmethod
    def attempt(self) -> Awaitable[Any]:
        """Ask the adapter. What comes back has a `usage`."""

    @property
    def elapsed_s(self) -> float:
        """Since the adapter was first asked, without the wait before."""
        return 0.0 if self.clock is None else self.clock.elapsed_s


@dataclass(frozen=True, slots=True)
class Peers:
    """What a pool has besides the worker that is called."""

    workers: Mapping[str, WorkerState]
    cache: CallCache
    run_limits: RunLimits = NO_RUN_LIMITS


Start: TypeAlias = OnStart | None
Answer: TypeAlias = Callable[[Call, Start], Awaitable[Observation]]
Proceed: TypeAlias = Callable[[Work], Awaitable[Any]]


class AnswerLayer(NamedTuple):
    """A layer that decides who answers, and the workers that have it."""

    run: Callable[[WorkerState, Peers, Answer, Call, Start], Awaitable[Observation]]
    applies: Callable[[WorkerState, Peers], bool]


class WorkLayer(NamedTuple):
    """A layer that guards one worker, the workers whose calls have it, and those whose completions have it."""

    run: Callable[[Proceed, Work], Awaitable[Any]]
    calls: Callable[[WorkerState], bool]
    completions: Callable[[WorkerState], bool]


# Who answers. Each layer returns an observation, and none raises.


async def use_cache(worker: WorkerState, peers: Peers, proceed: Answer, call: Call, start: Start) -> Observation:
    """Return the cached observation of an equal call, or make this call."""
    cache = peers.cache
    observation, cached = await cache.observation(key_of(worker.identity, call), lambda: proceed(call, start))
    if observation.answered_by is not None and observation.answered_by not in peers.workers:
        return await proceed(call, start)  # shared with a run that may call more workers
    if not cached:
        return observation
    if start is not None:
        start()
    return cache.as_recorded(observation)


async def shorten(worker: WorkerState, peers: Peers, proceed: Answer, call: Call, start: Start) -> Observation:
    """Go on with outputs that the worker's summarizer has shortened."""
    if start is not None:
        start()
    shortened = await shorten_outputs(worker, call, peers.workers)
    made = await proceed(shortened.call, None)
    return replace(made, latency_s=made.latency_s + shortened.latency_s, usage=made.usage + shortened.usage)


async def take_over(worker: WorkerState, peers: Peers, proceed: Answer, call: Call, start: Start) -> Observation:
    """Where the worker fails, call its fallbacks in turn, each with its own WORK_LAYERS."""
    return await ask_in_turn(proceed, call, start, worker, peers.workers, peers.run_limits.seen_by)


# What guards one worker. Each layer returns what comes back, or raises WorkerFault where it refuses.


async def wait_for_slot(proceed: Proceed, work: Work) -> Any:
    """Let so many through at a time; the others queue."""
    slots = work.worker.slots
    with hold_deadlines(work):
        await slots.acquire()
    try:
        return await proceed(work)
    finally:
        slots.release()


async def keep_rate(proceed: Proceed, work: Work) -> Any:
    """Let so many through a minute, and none while the worker's peer has asked to wait."""
    with hold_deadlines(work):
        await work.worker.pace.admit()
    return await proceed(work)


def hold_deadlines(work: Work) -> AbstractContextManager[None]:
    """Count the time of the body as a wait for a peer, where a job is patient with the worker's."""
    spending = current_spending()
    is_held = spending is not None and spending.patience is not None and has_peer(work.worker)
    return spending.hold_deadlines() if spending is not None and is_held else nullcontext()


def check_first(proceed: Proceed, work: Work) -> Awaitable[Any]:
    """Refuse what can be seen to fail, before anything is paid for it."""
    work.check()
    return proceed(work)


async def keep_within_caps(proceed: Proceed, work: Work) -> Any:
    """Reserve what the first attempt may use, once the caps on tokens and cost have room, and count what it used."""
    bill = work.bill = await _open_bill(work)
    try:
        reply = await proceed(work)
        bill.settle(work.worker.add_price(reply.usage))
        return reply
    finally:
        bill.close()


async def _open_bill(work: Work) -> Bill:
    """Reserve the first attempt. Raises WorkerFault when a cap is reached, or asks for a price."""
    worker, spending = work.worker, current_spending()
    price_call = worker.spec.price_call
    if spending is None:
        return Bill(None, NO_USAGE, price_call)
    if worker.lacks_price and spending.limits_cost:
        raise WorkerFault("no_price", NO_PRICE.format(worker.spec.name))
    if worker.role == "recursion":  # the episode inside is charged itself, and must not wait for this call to end
        price = Usage(cost=price_call)
        (await spending.reserve(price)).settle(price)
        return NOTHING_DUE
    bill = Bill(spending, worker.add_price(work.estimate()), price_call)
    await bill.reserve()
    return bill


async def break_circuit(proceed: Proceed, work: Work) -> Any:
    """Refuse at once while the worker fails again and again, and let one call try it from time to time."""
    breaker = work.worker.breaker
    assert breaker is not None, "what has no breaker has not this layer"
    admission = breaker.admit()
    if admission is Admission.NO:
        raise WorkerFault("circuit_open", f"{work.worker.spec.name} {breaker.say_when_tried()}")
    try:
        reply = await proceed(work)
    except BaseException as error:
        if ends_the_task(error):
            breaker.abandon(admission)
        else:
            breaker.settle(admission, _is_outage(error))
        raise
    breaker.settle(admission, failed=False)
    return reply


def _is_outage(error: BaseException) -> bool:
    """Whether an error says that the worker is out of order, and not that the call was wrong."""
    if not isinstance(error, WorkerFault) or isinstance(error, BadCall):
        return False
    return error.retryable or error.code == "timeout"


def tell_start(proceed: Proceed, work: Work) -> Awaitable[Any]:
    """Say that the waiting is over."""
    if work.on_start is not None:
        work.on_start()
    return proceed(work)


async def wait_out_refusals(proceed: Proceed, work: Work) -> Any:
    """Where a job is patient, ask again until the peer takes calls again: nobody is wrong for not having been asked."""
    spending = current_spending()
    patience = None if spending is None else spending.patience
    if spending is None or patience is None:
        return await proceed(work)
    worker, waited_s = work.worker, 0.0
    for tries in count():
        try:
            return await proceed(work)
        except WorkerFault as fault:
            if fault.code != RATE_LIMITED:
                raise
            with spending.hold_deadlines():
                seconds = await patience.wait(worker.spec.name, fault, tries, waited_s)
                if seconds is None:
                    spending.give_up()
                    raise
                waited_s += seconds
                await worker.pace.admit()
    raise AssertionError("a call ends with a reply or a fault")


async def limit_time(proceed: Proceed, work: Work) -> Any:
    """Cancel what takes longer than the worker's time-out, all its attempts together."""
    worker = work.worker
    clock = work.clock = worker.time_limit.start()
    try:
        try:
            return await proceed(work)
        finally:
            clock.stop()
    except WorkerFault:
        raise
    except BaseException as error:
        if clock.expired and not ends_the_task(error):
            sentence = f"{worker.spec.name} did not answer within {worker.spec.timeout_s:g} s"
            raise WorkerFault("timeout", sentence) from None
        raise


async def retry(proceed: Proceed, work: Work) -> Any:
    """Try again what may pass by itself, after a while that grows or that the peer has asked for."""
    worker = work.worker
    async for trial in stamina.retry_context(
        on=partial(find_wait, worker), attempts=worker.retries + 1, wait_initial=0.5, wait_max=20.0, timeout=None
    ):
        with trial:
            if trial.num > 1:
                await worker.pace.admit()
            return await proceed(work)
    raise AssertionError("stamina re-raises the last fault")


def find_wait(worker: WorkerState, error: Exception) -> bool | float:
    """Tell stamina whether to retry, or how many seconds the peer asked to wait: longer than a time-out is no use."""
    if not (isinstance(error, WorkerFault) and error.retryable):
        return False
    spending = current_spending()
    if error.code == RATE_LIMITED and spending is not None and spending.patience is not None:
        return False  # wait_out_refusals waits, outside of the time-out
    if error.retry_after_s is None:
        return True
    return error.retry_after_s if error.retry_after_s < worker.spec.timeout_s else False


async def heed_peer(proceed: Proceed, work: Work) -> Any:
    """Hold back every call of this worker for as long as its peer asks, where that is less than a time-out."""
    try:
        return await proceed(work)
    except WorkerFault as fault:
        fault.args = (clean_message(fault),)  # stamina logs what it catches
        if fault.retry_after_s is not None and fault.retry_after_s < work.worker.spec.timeout_s:
            work.worker.pace.pause(fault.retry_after_s)
        raise


def pay_attempt(proceed: Proceed, work: Work) -> Awaitable[Any]:
    """Charge every attempt, those that fail, too."""
    return work.bill.pay_attempt(proceed, work)


# Which workers have a layer, and the layers from the outside in.


def always(_worker: WorkerState) -> bool:
    return True


def never(_worker: WorkerState) -> bool:
    return False


def is_queued(worker: WorkerState) -> bool:
    """Not so with tools of its own: what it asks its model and what it calls wait and are paid for themselves."""
    return not worker.has_tools


def is_paced(worker: WorkerState) -> bool:
    return is_queued(worker) and (has_peer(worker) or worker.spec.rate_limit is not None)


def is_shortened(worker: WorkerState, peers: Peers) -> bool:
    """It reads what its summarizer writes."""
    summarizer = worker.spec.summarizer
    return bool(summarizer) and peers.run_limits.may_see(worker.spec.name, summarizer)


def has_peer(worker: WorkerState) -> bool:
    return worker.worker.remote


def has_own_peer(worker: WorkerState) -> bool:
    """It is its own calls that a peer may refuse, and not those of its model alone."""
    return is_queued(worker) and has_peer(worker)


def has_breaker(worker: WorkerState) -> bool:
    return is_queued(worker) and worker.breaker is not None


def is_retried(worker: WorkerState) -> bool:
    return worker.retries > 0


ANSWER_LAYERS = (
    #           layer      workers that have it
    AnswerLayer(use_cache, lambda worker, peers: peers.cache.records(worker)),
    AnswerLayer(shorten, is_shortened),
    AnswerLayer(take_over, lambda worker, _: bool(worker.spec.fallback)),
)
WORK_LAYERS = (
    #         layer             around calls  around completions, which orchestrators ask of a worker's model
    WorkLayer(wait_for_slot, is_queued, always),
    WorkLayer(keep_rate, is_paced, always),
    WorkLayer(check_first, is_queued, always),
    WorkLayer(keep_within_caps, is_queued, always),
    WorkLayer(break_circuit, has_breaker, never),
    WorkLayer(tell_start, always, never),
    WorkLayer(wait_out_refusals, has_own_peer, has_peer),
    WorkLayer(limit_time, always, always),
    WorkLayer(retry, is_retried, is_retried),
    WorkLayer(heed_peer, has_peer, always),
    WorkLayer(pay_attempt, is_queued, always),
)


def stack_answer_layers(worker: WorkerState, peers: Peers) -> Answer:
    """Put those layers around a worker that decide who answers for it."""
    answer: Answer = worker.call
    for layer in reversed(ANSWER_LAYERS):
        if layer.applies(worker, peers):
            answer = partial(layer.run, worker, peers, answer)
    return answer


def stack_work_layers(worker: WorkerState, completions: bool = False) -> Proceed:
    """Put those layers around a worker's adapter that guard it. They do not hold the worker, which holds them: it ends,
    and its breaker with it, when its last pool does."""
    proceed: Proceed = methodcaller("attempt")
    for layer in reversed(WORK_LAYERS):
        if (layer.completions if completions else layer.calls)(worker):
            proceed = partial(layer.run, proceed)
    return proceed
