"""Whole episodes drawn from a seed: a pool, plans, latencies, faults, caps, a stop; and what must hold of each.

Time is the simulated loop's, chance is the seed's and the workers are the transport, so that a seed gives one trace.
`python -m tests.orchestrator.simulate --seeds 100000` runs many.
"""

from __future__ import annotations

import asyncio
import random as global_random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest.mock import patch

from orchestrator.engine.budget import Budget
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, Event, StepEnded, StepStarted, TurnTaken
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Step, Turn
from pool_registry.actions import Usage
from pool_registry.calls.circuit_breaker import Breaker
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.kinds import KINDS, add_kind
from pool_registry.pool import Limits, Pool
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec, one_string
from tests.orchestrator.support.engine import Events
from tests.orchestrator.support.simulated_loop import Deadlock, simulate

MODES = ("ok",) * 12 + ("busy", "busy", "broken", "refuses", "raises", "hangs", "cancels")
EPSILON = 1e-6
TOKENS = 100  # of a call, in and out each, at most


@dataclass(slots=True)
class World:
    """What happens in one simulation, and what its workers noticed."""

    random: Random
    running: dict[str, int] = field(default_factory=dict)
    overruns: list[str] = field(default_factory=list)
    shown: dict[str, set[int]] = field(default_factory=dict)  # by the text of a call: the steps that it could see
    cost: float = 0.0


_WORLD: World = World(Random(0))


class Simulated(Worker[NoConfig]):
    """A worker whose latency and fate are drawn at each call."""

    remote = True  # so that it is retried, and its breaker opens

    @property
    def parameters(self) -> Mapping[str, Any]:
        return one_string("text", "anything")

    def estimate_usage(self, call: Call) -> Usage:
        return Usage(TOKENS, TOKENS)

    async def call(self, call: Call) -> Reply:
        world, name = _WORLD, self.spec.name
        mode, seconds = world.random.choice(MODES), world.random.expovariate(1.0)
        world.shown.setdefault(_name_call(call.arguments), set()).update(item.step for item in call.visible)
        world.running[name] = world.running.get(name, 0) + 1
        if world.running[name] > self.spec.max_concurrency:
            world.overruns.append(name)
        try:
            await asyncio.sleep(3600.0 if mode == "hangs" else seconds)
            return await self._end(mode)
        finally:
            world.running[name] -= 1

    async def _end(self, mode: str) -> Reply:
        match mode:
            case "busy":
                raise WorkerFault("unavailable", "try again", retryable=True)
            case "broken":
                raise WorkerFault("broken", "out of order")
            case "refuses":
                raise BadCall("makes no sense")
            case "raises":
                raise KeyError("a bug in an adapter")
            case "cancels":
                raise asyncio.CancelledError
        _WORLD.cost += self.spec.price_call
        return Reply(
            f"done by {self.spec.name}", Usage(_WORLD.random.randrange(TOKENS), _WORLD.random.randrange(TOKENS))
        )


class Recursive(Worker[NoConfig]):
    """A worker that runs an episode of its own."""

    role = "recursion"

    @property
    def parameters(self) -> Mapping[str, Any]:
        return one_string("text", "anything")

    async def call(self, call: Call) -> Reply:
        assert call.scope is not None
        return await call.scope.descend("same", call.text("text"), call.visible)


class Drawn(Orchestrator):
    """An orchestrator that draws its turns: plans with access lists, quotes and now and then a mistake."""

    name = "drawn"

    def __init__(self, random: Random, workers: list[str]) -> None:
        self._random = random
        self._workers = workers

    async def turn(self, episode: Episode) -> Turn:
        await asyncio.sleep(self._random.expovariate(2.0))
        if self._random.random() < 0.04:
            raise WorkerFault("unavailable", "the model is away")
        if self._random.random() < 0.05:
            return Turn(error="could not be read")
        return self._draw_plan(episode)

    def _draw_plan(self, episode: Episode) -> Turn:
        random, first = self._random, episode.next_step_id
        steps = [self._draw_step(k) for k in range(first, first + random.randint(0, 6))]
        known = first + len(steps) - 1
        answers = random.random() < 0.5 or not steps
        answer = f"it is ${random.randint(1, known)}" if answers and known and random.random() < 0.8 else "it is so"
        return Turn(tuple(steps), answer) if answers else Turn(tuple(steps))

    def _draw_step(self, k: int) -> Step:
        random = self._random
        access = tuple(sorted(random.sample(range(1, k), min(k - 1, random.choice((0, 0, 1, 1, 2, 3))))))
        quoted = f" with ${random.choice(access)}" if access and random.random() < 0.5 else ""
        worker = random.choice(self._workers) if random.random() > 0.03 else "nobody"
        text = f"step {k} of plan {random.randrange(10**9)}{quoted}"
        arguments = {"text": text} if random.random() > 0.03 else {"wrong": 1}
        return Step(k, worker, arguments, access)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One simulated episode: its events by episode, and what its world noticed."""

    episode: Episode
    events: dict[str, list[Event]]
    world: World
    limits: Limits
    pool: Pool
    used: Usage


def run_seed(seed: int) -> Outcome:
    """The episode of a seed. Raises Deadlock when it can never end."""
    global _WORLD
    random = Random(seed)
    _WORLD = World(Random(f"world {seed}"))
    pool = draw_pool(random)
    with _simulated_surroundings(seed):
        return simulate(_run(random, pool, _WORLD))


async def _run(random: Random, pool: Pool, world: World) -> Outcome:
    loop, sink = asyncio.get_running_loop(), Events()
    live, limits = open_live_pool(pool), pool.limits
    budget = Budget(limits)
    names = [spec.name for spec in pool.workers]

    def resolve(_name: str, _query: str, _pool: LivePool) -> Drawn:
        return Drawn(Random(world.random.random()), names)

    run = asyncio.create_task(
        run_episode(
            EpisodeSpec("a query", id="outer"), Drawn(random, names), live, sink=sink, budget=budget, resolve=resolve
        )
    )
    if random.random() < 0.15:
        loop.call_later(random.uniform(0, limits.deadline_s), budget.stop)
    if random.random() < 0.05:
        loop.call_later(random.uniform(0, limits.deadline_s), run.cancel)
    await asyncio.wait([run])
    episode = Episode("outer")
    for event in sink.of["outer"]:
        episode.apply(event)
    if not run.cancelled():
        assert run.result() == episode, "the events tell another episode than the one that was returned"
    await asyncio.sleep(0)
    return Outcome(episode, sink.of, world, limits, pool, budget.usage)


def draw_pool(random: Random) -> Pool:
    """A pool of two to five workers under limits that are often reached."""
    workers = [_draw_worker(random, place) for place in range(random.randint(2, 5))]
    if random.random() < 0.3:
        workers.append(WorkerSpec(name="inner", kind="recursive", description="for tests"))
    limits = Limits(
        max_rounds=random.randint(1, 4),
        max_steps=random.randint(1, 14),
        max_depth=random.randint(0, 2),
        deadline_s=random.uniform(0.5, 40.0),
        max_tokens=random.choice((10**6, random.randint(100, 2000))),
        max_cost=random.choice((None, random.uniform(0.5, 8.0))),
    )
    return Pool(name="p", workers=tuple(workers), limits=limits)


def _draw_worker(random: Random, place: int) -> WorkerSpec:
    return WorkerSpec(
        name=f"w{place}",
        kind="simulated",
        description="for tests",
        timeout_s=random.uniform(0.2, 6.0),
        max_concurrency=random.randint(1, 3),
        retries=random.randint(0, 2),
        rate_limit=random.choice((None, None, random.randint(5, 60))),
        price_call=random.choice((0.0, random.uniform(0.1, 1.0))),
        free=True,
    )


@contextmanager
def _simulated_surroundings(seed: int) -> Iterator[None]:
    """Names, dates, jitter and breakers that depend on nothing but the seed."""
    state, numbers, kinds = global_random.getstate(), iter(range(10**9)), dict(KINDS.built_in)
    global_random.seed(seed)
    add_kind("simulated", Simulated)
    add_kind("recursive", Recursive)
    try:
        with (
            patch("secrets.token_hex", lambda _=None: f"{next(numbers):08x}"),
            patch("orchestrator.engine.episode_loop._utc_now", lambda: "2026-01-01T00:00:00.000+00:00"),
            patch("pool_registry.calls.worker_state.breaker_of", lambda _: Breaker(asyncio.get_running_loop().time)),
        ):
            yield
    finally:
        global_random.setstate(state)
        KINDS.built_in.clear()
        KINDS.built_in.update(kinds)


def list_violations(outcome: Outcome) -> list[str]:
    """What does not hold of an episode, and should; nothing when all is well."""
    found = [f"{name} ran more calls at a time than it may" for name in outcome.world.overruns]
    found += [f"a call of {name} goes on after the end" for name, n in outcome.world.running.items() if n]
    found += [line for events in outcome.events.values() for line in _check_events(events)]
    found += _check_access(outcome)
    started = sum(isinstance(event, StepStarted) for events in outcome.events.values() for event in events)
    if started > outcome.limits.max_steps:
        found.append(f"{started} steps started, {outcome.limits.max_steps} may")
    ends = [event.at for events in outcome.events.values() for event in events if isinstance(event, EpisodeEnded)]
    if len(ends) != len(outcome.events):
        found.append("an episode has not ended")
    if ends and max(ends) > outcome.limits.deadline_s + EPSILON:
        found.append(f"it ended at {max(ends)}, after its deadline {outcome.limits.deadline_s}")
    return found + _check_caps(outcome)


def _check_caps(outcome: Outcome) -> list[str]:
    """Cost and tokens exceed their caps by one call at most, by what the workers counted and by the budget's count."""
    limits, world, used = outcome.limits, outcome.world, outcome.used
    dearest = max(spec.price_call for spec in outcome.pool.workers)
    found = []
    if limits.max_cost is not None and max(world.cost, used.cost) > limits.max_cost + dearest + EPSILON:
        found.append(f"it cost {world.cost} ({used.cost}), the cap is {limits.max_cost}, a call {dearest} at most")
    if used.tokens > limits.max_tokens + 2 * TOKENS:
        found.append(f"it used {used.tokens} tokens, the cap is {limits.max_tokens}, a call {2 * TOKENS} at most")
    if used.cost < world.cost - EPSILON:
        found.append(f"{used.cost} was counted of {world.cost}")
    return found


def _check_events(events: list[Event]) -> list[str]:
    """One episode's events: times that never go back, one end for every step, no step before those that it may see."""
    found: list[str] = []
    steps: dict[int, Step] = {}
    started: set[int] = set()
    ended: set[int] = set()
    last = 0.0
    for event in events:
        at = 0.0 if isinstance(event, EpisodeStarted) else event.at
        if at < last - EPSILON:
            found.append(f"{event} is earlier than what came before")
        last = max(last, at)
        if isinstance(event, TurnTaken):
            steps.update((step.id, step) for step in event.turn.steps)
        elif isinstance(event, StepStarted):
            if event.step in started or event.step in ended:
                found.append(f"step {event.step} started twice, or after its end")
            started.add(event.step)
            found += [f"step {event.step} started before {k}" for k in steps[event.step].access if k not in ended]
        elif isinstance(event, StepEnded):
            if event.step in ended:
                found.append(f"step {event.step} ended twice")
            ended.add(event.step)
    ran = {k for k in steps if k in ended}
    if started - ran:
        found.append(f"steps {sorted(started - ran)} started and never ended")
    return found


def _check_access(outcome: Outcome) -> list[str]:
    """What each call was shown is what its step's access list names."""
    turns = [event.turn for events in outcome.events.values() for event in events if isinstance(event, TurnTaken)]
    access = {_name_call(step.arguments): set(step.access) for turn in turns for step in turn.steps}
    return [
        f"the call {name!r} was shown {sorted(shown)}, its access list is {sorted(access[name])}"
        for name, shown in outcome.world.shown.items()
        if shown != access[name]
    ]


def _name_call(arguments: Mapping[str, Any]) -> str:
    """What a call is known by, whatever it quotes."""
    return str(arguments.get("text")).partition(" with ")[0]


def check_seed(seed: int) -> list[str]:
    """What does not hold of a seed's episode: a deadlock, a violation, another trace the second time."""
    try:
        outcome, again = run_seed(seed), run_seed(seed)
    except Deadlock:
        return ["it never ends"]
    return list_violations(outcome) + ([] if outcome.events == again.events else ["its second run was another one"])
