"""What the layers around one worker's calls share: its adapter, its schemas, its prices and its limits."""

from __future__ import annotations

import asyncio
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from pool_registry.actions import JsonValue, Observation, Usage, clean_text
from pool_registry.calls.circuit_breaker import breaker_of
from pool_registry.calls.limit_share import count_slots, make_pace
from pool_registry.calls.time_limit import TimeLimit
from pool_registry.errors import InvalidPool
from pool_registry.schemas.coerce_arguments import Coerced, coerce_arguments
from pool_registry.schemas.output_check import OutputChecker
from pool_registry.schemas.schema_check import SchemaCheck
from pool_registry.schemas.schema_size import SchemaTooLarge
from pool_registry.secrets import list_references, redact
from pool_registry.worker import Call, Worker, WorkerSpec

MAX_ERROR_CHARS = 1000
MAX_ERRORS = 10  # of the arguments of one call
OnStart = Callable[[], None]


def lacks_price(spec: WorkerSpec, kind: type[Worker[Any]], config: Any) -> bool:
    """Whether calls may cost something that nobody has said. With a key, somebody's account is charged, if anything
    is."""
    may_charge = kind.may_charge(config) or (kind.remote and bool(list_references(spec.config)))
    return may_charge and not (spec.has_price or spec.free)


def has_effects(spec: WorkerSpec, worker: Worker[Any]) -> bool:
    """Whether a call may change something outside: as the configuration says, or else every tool whose kind does not
    promise that it only reads."""
    if spec.effects != "auto":
        return spec.effects == "some"
    return worker.role == "tool" and not worker.only_reads


class WorkerState(ABC):
    """One worker of an open pool: its adapter, its limits and its compiled schemas.

    Raises InvalidPool when its argument schema is none.
    """

    def __init__(self, spec: WorkerSpec, worker: Worker[Any]) -> None:
        self.spec = spec
        self.worker = worker
        self.role = worker.role
        self.parameters: Mapping[str, JsonValue] = worker.parameters
        # A recursive call holds its slot while the inner episode may need the same worker: no queue there.
        slots = count_slots(spec, worker.remote) if self.role != "recursion" else 1_000_000
        self.slots = asyncio.Semaphore(slots)
        self.pace = make_pace(spec)
        self.time_limit = TimeLimit(spec.timeout_s)
        self.retries = spec.retries if worker.remote else 0
        self.breaker = breaker_of(spec) if worker.remote else None  # what runs here fails by what it is asked
        self.has_tools = bool(getattr(worker.config, "tools", ()))
        self.output_checker: OutputChecker | None = None
        self._schema: SchemaCheck | None = None
        self._refusal = self._compile_schemas()
        self.lacks_price = lacks_price(spec, type(worker), worker.config)
        self.instruction_parameter = _instruction_parameter(self.parameters)

    @abstractmethod
    async def call(self, call: Call, on_start: OnStart | None = None) -> Observation:
        """Make the call within the worker's limits. Never raises."""

    @cached_property
    def identity(self) -> str:
        """The hash of what the worker does: changed by any edit but of its description and limits."""
        what = self.spec.model_dump(mode="json", include={"name", "kind", "config", "output", "max_output_chars"})
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    @property
    def has_effects(self) -> bool:
        """Whether a call may change something outside."""
        return has_effects(self.spec, self.worker)

    def _compile_schemas(self) -> str:
        """Compile both schemas; return why every call is refused where a stored one asks for too much, else ""."""
        try:
            self._schema = SchemaCheck(self.parameters)
            self.output_checker = OutputChecker(self.spec.output) if self.spec.output else None
        except SchemaTooLarge as error:
            return f"{self.spec.name} cannot be called: {error}"
        except ValueError as error:
            raise InvalidPool([("parameters", str(error))]) from error
        return ""

    def argument_problem(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """Explain to a model why the schema refuses `arguments`; None when it accepts them."""
        if self._schema is None or self._refusal:
            return self._refusal
        try:
            if self._schema.accepts(arguments):
                return None
            problem = self._schema.explain(arguments, "arguments", MAX_ERRORS, MAX_ERROR_CHARS)
        except ValueError as error:  # no JSON at all: a policy's bug, or NaN
            problem = f"arguments: {error}"
        return problem[:MAX_ERROR_CHARS]

    def coerce(self, arguments: Mapping[str, JsonValue]) -> Coerced | None:
        """Arguments that the schema refuses, as it accepts them, and what was read how; None where it refuses them
        however they are read."""
        if self._schema is None or self._refusal:
            return None
        try:
            coerced = coerce_arguments(self.parameters, arguments)
            return coerced if coerced.notes and self._schema.accepts(coerced.arguments) else None
        except ValueError:  # no JSON at all, as argument_problem says
            return None

    def add_price(self, usage: Usage) -> Usage:
        """What was used, with what the worker's prices make of it."""
        spec = self.spec
        if not spec.has_price:
            return usage
        cost = (usage.tokens_in * spec.price_in + usage.tokens_out * spec.price_out) / 1e6 + spec.price_call
        return Usage(usage.tokens_in, usage.tokens_out, usage.cost + cost)

    async def close(self) -> None:
        self.time_limit.close()
        await self.worker.close()


def clean_message(error: BaseException) -> str:
    """What an error says, fit for traces and prompts."""
    return clean_text(redact(str(error)))[:MAX_ERROR_CHARS]


def ends_the_task(error: BaseException) -> bool:
    """Whether an error is not the worker's: the call was cancelled from outside, or the program ends."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0  # else a task of the worker's own was cancelled
    return not isinstance(error, Exception | SystemExit)


def _instruction_parameter(schema: Mapping[str, JsonValue]) -> str | None:
    """Return the only required parameter if it is a string: a plan may write `instruction` for it."""
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    if not (isinstance(required, list) and len(required) == 1 and isinstance(properties, dict)):
        return None
    name = str(required[0])
    rule = properties.get(name)
    return name if isinstance(rule, dict) and rule.get("type") == "string" else None
