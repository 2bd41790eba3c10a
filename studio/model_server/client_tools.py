"""The client's own tools: workers of one request, whose calls are handed back to the client.

A call waits for the client's next request, which brings its output. Until then the episode stays open. It is handed
over when nothing else is under way, so that calls of one round reach the client together.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pool_registry.actions import Action, JsonValue, Observation
from pool_registry.calls.live_pool import LivePool, LiveWorker, OnStart
from pool_registry.calls.run_limits import RunLimits
from pool_registry.imports.latin_text import to_latin
from pool_registry.language_models.agent import Agent
from pool_registry.language_models.completion import Grammar
from pool_registry.schemas.mend_schema import mend_schema
from pool_registry.worker import Call, NoConfig, Reply, Scope, Visible, Worker, WorkerSpec

CLIENT_KIND = "client"
CALL_PREFIX = "call_"
MAX_NAME_CHARS = 48
WAIT_S = 3600.0  # the deadline of the episode ends the wait earlier
SETTLE_S = 0.02  # calls of one round begin one after another
_REFUSALS = ("bad_request", "bad_grammar", "no_grammar")  # the agent is then asked as it is
NO_PARAMETERS: Mapping[str, JsonValue] = {"type": "object", "properties": {}}
PARAMETER_FIELDS = ("parameters", "input_schema", "inputSchema")  # of OpenAI, Anthropic and MCP


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A function that the client can call, as the request describes it."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ClientCall:
    """A call for the client to make."""

    id: str
    name: str
    arguments: Mapping[str, JsonValue]


class ClientCalls:
    """The calls of one episode that wait for the client. `on_idle` is called when nothing else is under way."""

    def __init__(self, on_idle: Callable[[], None]) -> None:
        self._on_idle = on_idle
        self._waiting: dict[str, tuple[ClientCall, asyncio.Future[str]]] = {}
        self._active: set[_ActiveCall] = set()
        self.made = 0
        self.episode = ""

    async def make(self, name: str, arguments: Mapping[str, JsonValue]) -> str:
        """Wait until the client has answered this call."""
        self.made += 1
        call = ClientCall(f"{CALL_PREFIX}{self.episode}_{self.made}", name, arguments)
        output: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[call.id] = (call, output)
        current = _current.get()
        if current is not None:
            current.waits = True
        self._check_later()
        try:
            return await output
        finally:
            self._waiting.pop(call.id, None)
            if current is not None:
                current.waits = False

    def take(self, count: int | None = None) -> tuple[ClientCall, ...]:
        """The calls to hand over now, at most `count`: those that wait."""
        return tuple(call for call, _ in self._waiting.values())[:count]

    def answer(self, outputs: Mapping[str, str]) -> bool:
        """Give the outputs to the calls that wait for them; False where none does."""
        calls = [key for key in outputs if key in self._waiting]
        for key in calls:
            output = self._waiting[key][1]
            if not output.done():
                output.set_result(outputs[key])
        if calls:
            self._check_later()  # some may wait still
        return bool(calls)

    def begin(self) -> _ActiveCall:
        """Note that a worker is called, by whatever call is under way in this task."""
        call = _ActiveCall(_current.get())
        self._active.add(call)
        return call

    def end(self, call: _ActiveCall) -> None:
        self._active.discard(call)
        self._check_later()

    def _check_later(self) -> None:
        asyncio.get_running_loop().call_later(SETTLE_S, self._check)

    def _check(self) -> None:
        """Hand over when all calls wait for the client, but for those that wait for such a call themselves."""
        callers = {call.caller for call in self._active}
        leaves = [call for call in self._active if call not in callers]
        answered = any(output.done() for _, output in self._waiting.values())  # their callers go on in a moment
        if self._waiting and not answered and all(leaf.waits for leaf in leaves):
            self._on_idle()


@dataclass(eq=False, slots=True)
class _ActiveCall:
    """A worker's call that is under way, and the call that made it."""

    caller: _ActiveCall | None
    waits: bool = field(default=False)


_current: ContextVar[_ActiveCall | None] = ContextVar("current_call", default=None)


class ClientToolWorker(Worker[NoConfig]):
    """A client's tool as a worker."""

    label = "Tool of the client"

    def __init__(self, spec: WorkerSpec, tool: ClientTool, calls: ClientCalls) -> None:
        super().__init__(spec, NoConfig())
        self._tool, self._calls = tool, calls

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self._tool.parameters

    async def call(self, call: Call) -> Reply:
        return Reply(await self._calls.make(self._tool.name, call.arguments))


class RequestPool(LivePool):
    """The served pool with what one request adds: the client's tools, and agents with the client's settings.

    `adjusted` holds agents by name as the client wants them; where the endpoint refuses its settings the pool's own
    agent is called, and `on_refused` told its name and why. `held` has the grammars of calls of agents, by the agent's
    name and the instruction.
    """

    def __init__(
        self,
        pool: LivePool,
        tools: Mapping[str, LiveWorker],
        calls: ClientCalls,
        adjusted: Mapping[str, LiveWorker],
        on_refused: Callable[[str, str], None],
        held: dict[tuple[str, str], Grammar] | None = None,
    ) -> None:
        super().__init__(pool.pool, {**pool.workers, **tools}, pool.cache)
        self.stand_for(pool)
        self._base, self._calls, self._tools = pool, calls, tools
        self._adjusted, self._on_refused = adjusted, on_refused
        self._adjusted_pool = self._make_pool(adjusted)
        self._held = {} if held is None else held

    def hold(self, agent: str, instruction: str, grammar: Grammar) -> None:
        """Have the reply of an agent to this instruction follow a grammar."""
        self._held[agent, instruction] = grammar

    async def call(
        self,
        action: Action,
        visible: tuple[Visible, ...] = (),
        scope: Scope | None = None,
        on_start: OnStart | None = None,
    ) -> Observation:
        active = self._calls.begin()
        token = _current.set(active)
        try:
            grammar = self._held.get((action.worker, str(action.arguments.get("instruction"))))
            if grammar is not None:
                observation = await self._hold_pool(action.worker, grammar).call(action, visible, scope, on_start)
                if observation.error is None or observation.error.code not in _REFUSALS:
                    return observation
            if action.worker not in self._adjusted:
                return await super().call(action, visible, scope, on_start)
            observation = await self._adjusted_pool.call(action, visible, scope, on_start)
            if observation.error is None or observation.error.code not in _REFUSALS:
                return observation
            self._on_refused(action.worker, observation.error.message)
            return await super().call(action, visible, scope, None)
        finally:
            _current.reset(token)
            self._calls.end(active)

    def narrow(self, names: Collection[str], run_limits: RunLimits | None = None) -> RequestPool:
        kept = {name: tool for name, tool in self._tools.items() if name in names}
        adjusted = {name: agent for name, agent in self._adjusted.items() if name in names}
        base = self._base.narrow(names, run_limits)
        return RequestPool(base, kept, self._calls, adjusted, self._on_refused, self._held)

    def _hold_pool(self, agent: str, grammar: Grammar) -> LivePool:
        """The pool with one agent that follows a grammar."""
        live = self._adjusted.get(agent) or self.workers[agent]
        held = copy.copy(live)
        held.worker = live.worker.hold_to(grammar) if isinstance(live.worker, Agent) else live.worker
        return self._make_pool({agent: held})

    def _make_pool(self, agents: Mapping[str, LiveWorker]) -> LivePool:
        """The served pool with these agents in the place of its own."""
        pool = LivePool(self._base.pool, {**self._base.workers, **agents}, self._base.cache)
        pool.stand_for(self._base)
        return pool


def open_client_tools(tools: Sequence[ClientTool], taken: Collection[str], calls: ClientCalls) -> dict[str, LiveWorker]:
    """The tools as workers, by names that a pool can have and that no worker of it has.

    Raises InvalidPool where the parameters of one are no JSON Schema.
    """
    workers: dict[str, LiveWorker] = {}
    names = set(taken)
    for tool in tools:
        name = choose_worker_name(tool.name, names)
        names.add(name)
        spec = WorkerSpec(
            name=name,
            kind=CLIENT_KIND,
            description=tool.description[:2000] or f"The tool {tool.name} of the one who asks.",
            timeout_s=WAIT_S,
            max_concurrency=1024,
            retries=0,
            effects="none",  # the client makes the call, or does not
        )
        workers[name] = LiveWorker(spec, ClientToolWorker(spec, tool, calls))
    return workers


def choose_worker_name(name: str, taken: Collection[str]) -> str:
    """A worker's name for a client's tool: small letters, digits, _ and -, and not in use."""
    plain = "".join(
        char if char.isascii() and (char.isalnum() or char in "_-") else "_" for char in to_latin(name).lower()
    )
    plain = (plain if plain[:1].isalpha() else f"tool_{plain}")[:MAX_NAME_CHARS]
    choices = itertools.chain(
        (plain, f"client_{plain}"[:MAX_NAME_CHARS]), (f"{plain[:40]}_{k}" for k in itertools.count(2))
    )
    return next(choice for choice in choices if choice not in taken)


def read_episode_id(call: str) -> str:
    """The id of the episode that made a call, by the call's id; "" where it is none of ours."""
    return call.removeprefix(CALL_PREFIX).rpartition("_")[0] if call.startswith(CALL_PREFIX) else ""


def write_tool_call(call: ClientCall) -> dict[str, Any]:
    """A call of the client's tool as a message of the assistant has it."""
    function = {"name": call.name, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)}
    return {"id": call.id, "type": "function", "function": function}


def read_client_tool(function: Mapping[str, Any]) -> tuple[ClientTool, tuple[str, ...]]:
    """A function of a request, and what was changed in the schema of its arguments. Raises ValueError saying what is
    missing."""
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("a function needs a name")
    mended = mend_schema(next((function[field] for field in PARAMETER_FIELDS if field in function), None))
    if mended.problem:
        raise ValueError(f"the parameters of {name!r} must be a JSON Schema: {mended.problem}")
    return ClientTool(name, str(function.get("description") or ""), mended.schema), mended.notes
