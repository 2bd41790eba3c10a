"""Throw-away workers and orchestrators for the tests of the engine, and short ways to run them."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from orchestrator.engine.budget import Budget
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.events import Event, StepEnded, StepStarted
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Step, Turn
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.kinds import KINDS, add_kind
from pool_registry.language_models.completion import agent_messages, prompt_text
from pool_registry.pool import Limits, Pool
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec, one_string


@dataclass
class Stage:
    """What the workers do and what they saw. A call names its part by `#k` at the start of its text."""

    parts: dict[int, tuple[str, float]] = field(default_factory=dict)  # step -> (mode, seconds)
    shown: dict[int, str] = field(default_factory=dict)  # step -> everything its worker was given
    started: dict[int, float] = field(default_factory=dict)
    ended: dict[int, float] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)

    def clear(self) -> None:
        for table in (self.parts, self.shown, self.started, self.ended, self.running, self.most):
            table.clear()


STAGE = Stage()


def canary(k: int) -> str:
    return f"canary<{k}>"


class Actor(Worker[NoConfig]):
    """Plays the part of STAGE; its value is the step's canary."""

    parameter = "text"

    @property
    def parameters(self) -> Mapping[str, Any]:
        return one_string(self.parameter, "anything")

    async def call(self, call: Call) -> Reply:
        text = call.text(self.parameter)
        found = re.match(r"#(\d+)", text)
        k = int(found.group(1)) if found else 0
        mode, seconds = STAGE.parts.get(k, ("ok", 0.0))
        prompt = prompt_text(agent_messages("", text, call.visible)) if self.parameter == "instruction" else None
        STAGE.shown[k] = f"{call.arguments} {call.visible} {prompt}"
        STAGE.started[k] = time.perf_counter()
        name = self.spec.name
        STAGE.running[name] = STAGE.running.get(name, 0) + 1
        STAGE.most[name] = max(STAGE.most.get(name, 0), STAGE.running[name])
        try:
            if seconds:
                await asyncio.sleep(seconds)
            return Reply(await play(mode, k), prompt=prompt)
        finally:
            STAGE.running[name] -= 1
            STAGE.ended[k] = time.perf_counter()


async def play(mode: str, k: int) -> object:
    match mode:
        case "ok":
            return canary(k)
        case "number":
            return 42.5
        case "raise":
            raise KeyError("a bug in an adapter")
        case "fault":
            raise WorkerFault("broken", "out of order")
        case "bad":
            raise BadCall("makes no sense")
        case "hang":
            await asyncio.sleep(3600)
        case "huge":
            return "x" * 50_000_000
        case "not_json":
            return {"a": object()}
        case "deep":
            return deep(500)
        case "dirty":
            raise OSError("no file \udc80\x00")
        case "cancels_itself":
            raise asyncio.CancelledError
        case "exits":
            raise SystemExit(1)
        case "own_time_out":
            raise TimeoutError("the socket")
    raise AssertionError(mode)


class Agent(Actor):
    """The same as a language model sees it: with a prompt made of its access list."""

    role = "agent"
    parameter = "instruction"


class Number(Worker[NoConfig]):
    """A tool with typed arguments; gives them back."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        properties = {"value": {"type": "number"}, "note": {"type": "string"}, "any": True}
        return {"type": "object", "properties": properties, "required": ["value"], "additionalProperties": False}

    async def call(self, call: Call) -> Reply:
        return Reply(dict(call.arguments))


class Descends(Actor):
    """Runs an episode of its own: what kind `orchestrator` does."""

    role = "recursion"
    parameter = "query"

    async def call(self, call: Call) -> Reply:
        assert call.scope is not None
        return await call.scope.descend("same", call.text("query"), call.visible)


_KINDS: dict[str, type[Worker[Any]]] = {"actor": Actor, "agent": Agent, "number": Number, "inner": Descends}


@pytest.fixture(autouse=True, scope="module")
def engine_kinds() -> Iterator[None]:
    """Registers the kinds above for one test module, on an empty stage; import it there."""
    before = dict(KINDS.built_in)
    STAGE.clear()
    for name, cls in _KINDS.items():
        add_kind(name, cls)
    yield
    KINDS.built_in.clear()
    KINDS.built_in.update(before)


def worker(name: str, kind: str = "", **changes: Any) -> WorkerSpec:
    return WorkerSpec(**{"name": name, "kind": kind or name, "description": "for tests", **changes})


ALL = tuple(worker(name) for name in _KINDS)


def a_pool(workers: Sequence[WorkerSpec] = ALL, **limits: Any) -> LivePool:
    return open_live_pool(Pool(name="p", workers=tuple(workers), limits=Limits(**limits)))


def step(k: int, text: str = "", worker: str = "actor", access: Sequence[int] = ()) -> Step:
    name = "instruction" if worker == "agent" else "query" if worker == "inner" else "text"
    return Step(k, worker, {name: f"#{k} {text}"}, tuple(access))


class Scripted(Orchestrator):
    """An orchestrator that has its turns written down; a callable is asked with the episode."""

    name = "scripted"

    def __init__(self, *turns: Turn | Callable[[Episode], Any]) -> None:
        self.turns = list(turns)
        self.asked = 0

    async def turn(self, episode: Episode) -> Turn:
        turn = self.turns[min(self.asked, len(self.turns) - 1)]
        self.asked += 1
        if callable(turn):
            turn = turn(episode)
        return await turn if asyncio.iscoroutine(turn) else turn


class Events:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.of: dict[str, list[Event]] = {}

    def append(self, episode_id: str, event: Event) -> None:
        self.of.setdefault(episode_id, []).append(event)

    def all(self) -> list[Event]:
        return [event for events in self.of.values() for event in events]


def play_turns(
    *turns: Any,
    parts: Mapping[int, tuple[str, float]] | None = None,
    workers: Sequence[WorkerSpec] = ALL,
    query: str = "the query",
    sink: Events | None = None,
    stop_after: float | None = None,
    resolve: Any = None,
    **limits: Any,
) -> Episode:
    """One episode of a scripted orchestrator on a fresh stage."""
    STAGE.clear()
    STAGE.parts.update(parts or {})
    orchestrator = turns[0] if hasattr(turns[0], "turn") else Scripted(*turns)

    async def once() -> Episode:
        pool = a_pool(workers, **limits)
        budget = Budget(pool.pool.limits)
        if stop_after is not None:
            asyncio.get_running_loop().call_later(stop_after, budget.stop)
        return await run_episode(EpisodeSpec(query), orchestrator, pool, sink=sink, budget=budget, resolve=resolve)

    return asyncio.run(once())


def codes(episode: Episode) -> dict[int, str]:
    """What every step ended with: OK or the error's code."""
    seen = episode.observations()
    ends = {k: (seen[k].error, seen[k].status) for k in episode.steps}
    return {k: error.code if error else status.value for k, (error, status) in ends.items()}


def order(events: Sequence[Event]) -> list[tuple[str, int]]:
    """Starts and ends of steps as they happened."""
    return [
        ("start" if isinstance(event, StepStarted) else "end", event.step)
        for event in events
        if isinstance(event, StepStarted | StepEnded)
    ]


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value
