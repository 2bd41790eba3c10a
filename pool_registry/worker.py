"""A worker: its stored description (`WorkerSpec`) and the interface that every kind implements.

The engine never asks whether a worker is an agent or a tool: it hands over a `Call` and gets
a `Reply`, or one of the two faults in errors.py. Statuses, time-outs, retries, prices and size
limits are the business of calls/layers.py, so an adapter is only the call itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, Field, field_validator

from pool_registry.actions import NO_USAGE, ContextUse, JsonValue, Observation, Usage
from pool_registry.schemas.output_check import Output
from pool_registry.schemas.result_outline import outline_result
from pool_registry.strict_model import FrozenModel, StrictModel
from pool_registry.text import shorten, show_hidden

Role = Literal["agent", "tool", "recursion"]  # decides colour, and who counts as a language model for policies
MAX_DESCRIPTION = 2000  # characters
NAME_PATTERN = r"^[a-z][a-z0-9_-]{0,47}$"


class WorkerSpec(FrozenModel):
    """Everything that is stored about a worker. `config` is checked against the kind's own model."""

    name: str = Field(pattern=NAME_PATTERN, description="What plans call it: a-z, 0-9, _ and -.")
    kind: str
    description: str = Field(min_length=1, max_length=MAX_DESCRIPTION, description="The orchestrator reads this.")
    config: dict[str, JsonValue] = Field(default_factory=dict)
    enabled: bool = True
    timeout_s: float = Field(default=60.0, gt=0, le=3600, description="Seconds from the worker's start.")
    max_concurrency: int = Field(default=4, ge=1, le=1024)
    retries: int = Field(default=2, ge=0, le=5, description="On 429, 5xx and connection errors only.")
    max_output_chars: int = Field(default=100_000, ge=1, le=1_000_000)
    price_in: float = Field(default=0.0, ge=0, description="US dollars per million tokens in.")
    price_out: float = Field(default=0.0, ge=0, description="US dollars per million tokens out.")
    price_call: float = Field(default=0.0, ge=0, description="US dollars per call.")
    output: Output | None = Field(default=None, description="What the result must be; empty means anything.")
    fallback: str = Field(
        default="",
        pattern=rf"{NAME_PATTERN}|^$",
        description="The worker that takes over when this one fails, times out or returns what it must not.",
    )
    rate_limit: float | None = Field(
        default=None, gt=0, le=100_000, description="Calls per minute; empty means no limit. Waiting is queueing."
    )
    cache: bool = Field(
        default=False, description="An equal call that may see the same gets the recorded result, for a week."
    )
    free: bool = Field(
        default=False,
        description="Its calls cost nothing. Where a pool caps the cost, a worker elsewhere without a price is called "
        "only when this is set.",
    )
    effects: Literal["auto", "none", "some"] = Field(
        default="auto",
        description="Whether a call changes something outside, such as sending a message. some: it waits for a person "
        "where the pool's mode asks one. auto: as the kind of worker and its source say.",
    )

    context_tokens: int | None = Field(
        default=None,
        ge=64,
        le=100_000_000,
        description="Of a language model: the most tokens of prompt and reply together. Outputs that it may see are "
        "shortened to fit, and a call that cannot fit is refused before it is paid for. Empty: not known.",
    )
    summarizer: str = Field(
        default="",
        pattern=rf"{NAME_PATTERN}|^$",
        description="Of a language model: the agent that shortens outputs which are too long for its prompt. Empty: "
        "their beginning is taken. The whole output stays in the trace.",
    )
    judge_only: bool = Field(
        default=False,
        description="Of a language model: it only grades answers. It never plans, answers, takes over or shortens "
        "outputs, and no plan may call it.",
    )

    @field_validator("description")
    @classmethod
    def _show_hidden(cls, text: str) -> str:
        return shorten(show_hidden(text), MAX_DESCRIPTION)

    @field_validator("config")
    @classmethod
    def _show_hidden_in_config(cls, config: dict[str, JsonValue]) -> dict[str, JsonValue]:
        return {key: _show_in_descriptions(value) for key, value in config.items()}

    @property
    def has_price(self) -> bool:
        return bool(self.price_in or self.price_out or self.price_call)


def _show_in_descriptions(value: JsonValue) -> JsonValue:
    """A value whose descriptions, which orchestrators read, hide nothing."""
    if isinstance(value, list):
        return [_show_in_descriptions(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: show_hidden(item) if key == "description" and isinstance(item, str) else _show_in_descriptions(item)
        for key, item in value.items()
    }


@dataclass(frozen=True, slots=True)
class Visible:
    """One entry of a step's access list, as the worker receives it."""

    step: int
    worker: str
    observation: Observation
    whole_chars: int = 0  # of an output that a summarizer has shortened: its length before


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A step of a plan that a worker brings along; its number is its place in the plan, from 1 on, and `access` are
    the numbers of earlier steps whose outputs it may see."""

    worker: str
    arguments: Mapping[str, JsonValue]
    access: tuple[int, ...] = ()


class Scope(Protocol):
    """What a running episode offers to a worker that runs an episode of its own."""

    async def descend(self, orchestrator: str, query: str, visible: tuple[Visible, ...]) -> Reply: ...

    async def use_tools(
        self, agent: str, tools: Collection[str], query: str, visible: tuple[Visible, ...]
    ) -> Reply: ...

    async def follow(self, skill: str, plan: Sequence[PlannedCall], answer: JsonValue, call: Call) -> Reply: ...


@dataclass(frozen=True, slots=True)
class Call:
    """One call as the worker sees it: `$k` already replaced, access list already enforced."""

    arguments: Mapping[str, JsonValue]
    visible: tuple[Visible, ...] = ()
    scope: Scope | None = None

    def text(self, name: str) -> str:
        """Return the string argument `name` (the schema has already checked that it is one)."""
        value = self.arguments[name]
        assert isinstance(value, str), f"{name} is {type(value).__name__}; its schema must say string"
        return value


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of an adapter's call: the value, what it used, and for agents the prompt that was sent."""

    value: JsonValue
    usage: Usage = field(default=NO_USAGE)
    prompt: str | None = None
    episode: str | None = None
    context: ContextUse | None = None


@dataclass(frozen=True, slots=True)
class SampleCall:
    """Arguments that a worker can do something with. `request` says in words what they ask for, where the worker's
    description alone would not: "the number of rows in the table orders"."""

    arguments: Mapping[str, JsonValue]
    request: str = ""


@dataclass(frozen=True, slots=True)
class PackedFiles:
    """The files of this machine that a copy of a worker elsewhere needs, by their paths there, and the fields of its
    configuration that are others there. `imports` are the modules that its code imports."""

    files: Mapping[str, Path]
    config: Mapping[str, JsonValue]
    imports: tuple[str, ...] = ()


class NoConfig(StrictModel):
    """For kinds that have nothing to configure."""


C = TypeVar("C", bound=BaseModel)


class Copier(Protocol):
    """Copies the files and folders that a worker may change (pool_registry/forks). Only below `folder` may a worker on
    copies write; `scratch` is for its temporary files."""

    folder: Path
    scratch: Path

    def add(self, path: Path) -> Path:
        """Where the copy of a file or folder stands, which is made if need be. Raises CannotFork."""
        ...

    def find(self, path: Path) -> Path | None:
        """Where the copy of a path stands; None where nothing that holds it was copied."""
        ...


class Worker(ABC, Generic[C]):
    """Base of every kind. One instance serves all calls to one worker of one open pool.

    `label`, `summary` and `icon` (the path of an SVG on a 24 px grid, drawn with a 2 px line; "" for the role's own)
    are what people see of the kind. `template` is what its card in the gallery says beyond them, with the keys of
    `gallery.templates.WorkerTemplate`; None keeps the kind out of the gallery. `Config` is the pydantic model of
    `spec.config` (the page builds its form from it), `parameters` the JSON Schema of the arguments. `remote` says that
    faults may pass: only then are calls retried. `cacheable` says that the reply to an equal call may stand for a new
    one, at least for as long as a job runs. `sandboxed`: it runs code that its caller wrote. `wording`: settings that
    say how a worker is called and where its figures come from; workers that differ in these alone do the same work.
    """

    role: ClassVar[Role] = "tool"
    label: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    icon: ClassVar[str] = ""
    template: ClassVar[Mapping[str, JsonValue] | None] = {}
    Config: ClassVar[type[BaseModel]] = NoConfig
    remote: ClassVar[bool] = False
    cacheable: ClassVar[bool] = False
    sandboxed: ClassVar[bool] = False
    wording: ClassVar[tuple[str, ...]] = ()
    sample: Mapping[str, JsonValue] = {}  # what "Try it" offers in the page,
    sample_seen: str = ""  # and the output of an earlier step that goes with it
    returns: Mapping[str, JsonValue] = {}  # JSON Schema of what a call returns, where the kind knows it
    described_by: Literal["", "name", "request"] = ""  # what says in words what a call returns, for a person to read

    def __init__(self, spec: WorkerSpec, config: C) -> None:
        self.spec = spec
        self.config = config

    @property
    def output_schema(self) -> Mapping[str, JsonValue]:
        """An outline of what a call returns: of what it must fit, or of what the kind knows; {} where nobody does."""
        output = self.spec.output
        return outline_result(output.json_schema) if output and output.json_schema else self.returns

    @property
    def is_repeatable(self) -> bool:
        """Whether an equal call gets an equal reply, so that a job need not pay for it twice."""
        return self.cacheable

    @property
    def only_reads(self) -> bool:
        """Whether no call can change anything outside."""
        return self.cacheable

    @property
    def called_workers(self) -> tuple[str, ...]:
        """The workers of its pool that every call of it calls, by name: what they may change, it may change."""
        return ()

    def is_ready(self) -> bool:
        """Whether a call can begin now, and need not wait until something is loaded."""
        return True

    async def prepare(self) -> None:
        """Load what calls need. Raises WorkerFault."""

    @classmethod
    def runs(cls, config: C) -> str:  # noqa: ARG003
        """Name what a call starts on this machine with the user's own rights, for a person to approve; "" for nothing.

        Such workers arrive disabled when a pool is imported (see wants.py)."""
        return ""

    @classmethod
    def reads(cls, config: C) -> tuple[str, ...]:
        """Name the files, folders and databases of this machine that a call reads, for a person to approve.

        By default every `Path` of the configuration. Override this where a file is named by plain text.
        """
        return tuple(f"the file {value}" for _, value in config if isinstance(value, Path))

    @classmethod
    def list_missing(cls, config: C) -> Sequence[tuple[str, str]]:  # noqa: ARG003
        """List the fields that name something unusable, with the reason. Asked when a pool is saved in which the worker
        is new or changed, and switched on."""
        return ()

    @classmethod
    def sends_to(cls, config: C) -> str:  # noqa: ARG003
        """Name who gets a key of the configuration, where no URL in it says so."""
        return ""

    @classmethod
    def may_charge(cls, config: C) -> bool:  # noqa: ARG003
        """Whether somebody may take money for a call: then a cap on cost asks for a price."""
        return False

    def estimate_usage(self, call: Call) -> Usage:  # noqa: ARG002
        """The tokens that a call may use at most, or about: a cap holds them back until the reply says how many."""
        return NO_USAGE

    @classmethod
    def inner_workers(cls, config: C) -> tuple[WorkerSpec, ...]:  # noqa: ARG003
        """Return the workers that this one calls: they are published with it, or keep it here."""
        return ()

    @classmethod
    def stays_because(cls, config: C) -> str:
        """Say why the worker cannot be published to a Space; "" when it can.

        By default it stays when it starts something here (`runs`) or when a field of its configuration is a `Path`.
        What is published is checked for addresses that a Space cannot reach besides (portable_pool.py).
        Override this for other ties to this machine, such as a file that is named by plain text.
        """
        if cls.runs(config):
            return "it starts a program on this machine"
        if any(isinstance(value, Path) for _, value in config):
            return "it needs a file or folder of this machine"
        return ""

    @classmethod
    def pack(cls, config: C, folder: str) -> PackedFiles | None:  # noqa: ARG003
        """List the files that go along below `folder` when a person lets them; None where files do not help.

        Raises WorkerFault or OSError when they cannot be read.
        """
        return None

    @classmethod
    def move_state(cls, config: C, copier: Copier) -> Mapping[str, JsonValue] | None:  # noqa: ARG003
        """The fields of the configuration with which calls work on copies of what they may change, made by `copier`.

        None where that cannot be copied, {} where there is nothing to copy. Raises CannotFork.
        """
        return None

    @property
    @abstractmethod
    def parameters(self) -> Mapping[str, JsonValue]:
        """JSON Schema (type object) of the arguments."""

    @abstractmethod
    async def call(self, call: Call) -> Reply:
        """Do the work. Raise BadCall (PARSE_ERR) or WorkerFault (EXEC_ERR); anything else is a bug
        that live_worker.py turns into EXEC_ERR. Must end soon after it is cancelled."""

    def check_call(self, call: Call) -> None:
        """Raise WorkerFault when a call can be seen to fail before anything is paid for it."""

    async def list_sample_calls(self, count: int) -> Sequence[SampleCall]:  # noqa: ARG002
        """List at most `count` calls that should work, from what this worker reads; by default its sample."""
        return [SampleCall(self.sample)] if self.sample else []

    async def describe_source(self) -> str:
        """Say what this worker reads, for its description: tables, topics; "" where there is nothing to say. Raises
        WorkerFault when it cannot be read."""
        return ""

    async def check(self) -> str:
        """Probe health without side effects: a short sentence, or WorkerFault saying what is missing."""
        return "ready"

    async def close(self) -> None:
        """Release what the worker holds."""
        return


def one_string(name: str, description: str) -> dict[str, JsonValue]:
    """Build the most common schema: one required string (plans may then write `instruction` for it)."""
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": description, "minLength": 1}},
        "required": [name],
        "additionalProperties": False,
    }
