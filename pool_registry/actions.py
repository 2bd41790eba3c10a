"""What crosses the border between the engine and a worker: actions in, observations out.

This file depends on no worker, pool or plan; every other file of Podium uses these types.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

# A JSON document. `object` and not a recursive alias: values are checked by `as_json_value`
# where they enter, and a recursive alias costs pydantic more than it tells a reader.
JsonValue: TypeAlias = object

MAX_NESTING = 64  # traces, prompts and the page take some 150 levels; a quoted value adds to its argument's
_UNFIT = re.compile("[\x00\ud800-\udfff]")


class Status(StrEnum):
    """The four states of a call (ParaManager, arXiv 2604.17009). There is no fifth."""

    OK = "OK"
    PARSE_ERR = "PARSE_ERR"  # the call is malformed
    EXEC_ERR = "EXEC_ERR"  # the worker failed, or the step was skipped, denied or over budget
    TIMEOUT = "TIMEOUT"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call consumed. `cost` is in US dollars."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Usage) -> Usage:
        if other is NO_USAGE:  # most calls of tools
            return self
        return Usage(self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out, self.cost + other.cost)


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an observation is not OK: a machine-readable `code` and a sentence that says what to change."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ContextPart:
    """One part of what a language model was sent: where it comes from and about how many tokens it has.

    `origin` is role, skills, instruction, output (of `step`), workers, memory or history. `whole` are the tokens that
    it would have unshortened. `cut` says how it was shortened: excerpt, summary, or "" for not at all. `name` is that
    of a skill that was read.
    """

    origin: str
    tokens: int
    whole: int = 0
    step: int = 0
    cut: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ContextUse:
    """What filled the prompt of a call. `limit` is the most tokens of prompt and reply together, None where that is not
    known; `reply` are those that the reply may have."""

    parts: tuple[ContextPart, ...]
    limit: int | None = None
    reply: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """What an action returned. `value` is None unless the status is OK.

    `latency_s` counts from the moment the worker starts, never the time spent in a queue.
    `prompt` is what an agent was sent, word for word; tools leave it None.
    `episode` is the id of the episode that a recursive worker ran, so that a viewer can open it.
    `answered_by` names the worker that answered in place of the one that was called, and `instead_of` says
    why that one did not; `usage` counts both. `cached`: recorded at an earlier equal call, nothing was spent.
    `context` says what an agent's prompt was made of, `notes` how arguments were read that were written otherwise.
    """

    status: Status
    value: JsonValue = None
    latency_s: float = 0.0
    usage: Usage = NO_USAGE
    error: Failure | None = None
    prompt: str | None = None
    episode: str | None = None
    cached: bool = False
    answered_by: str | None = None
    instead_of: Failure | None = None
    context: ContextUse | None = None
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status is Status.OK

    @staticmethod
    def failure(status: Status, code: str, message: str, latency_s: float = 0.0) -> Observation:
        return Observation(status, latency_s=latency_s, error=Failure(code, message))


@dataclass(frozen=True, slots=True)
class Action:
    """One call: a worker's name and arguments that its JSON Schema accepts."""

    worker: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)


def as_text(value: JsonValue) -> str:
    """Return the text that stands for a value in a prompt or in place of `$k`.

    Strings stay as they are, everything else becomes JSON; a whole float loses its `.0`.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def as_json_value(value: object) -> JsonValue:
    """Return `value` fit for storage and prompts: JSON only, no NUL, no lone surrogates.

    Raises ValueError when it is not a JSON value (sets, objects, NaN, non-string keys ...).
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a JSON number")
        return value
    if isinstance(value, list | tuple):
        return [as_json_value(item) for item in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("an object's keys must be strings")
        return {clean_text(key): as_json_value(item) for key, item in value.items()}
    raise ValueError(f"{type(value).__name__} is not a JSON value")


def clean_text(text: str) -> str:
    """Replace NUL and lone surrogates, which databases, JSON and browsers refuse, with U+FFFD."""
    with suppress(UnicodeEncodeError):  # many times as fast as the pattern: megabytes hold nobody up
        text.encode()
        if "\0" not in text:
            return text
    return _UNFIT.sub("\ufffd", text)


def storable(value: object) -> JsonValue:
    """Return `as_json_value(value)`. Raises ValueError also when it is nested deeper than MAX_NESTING."""
    clean = as_json_value(value)
    if isinstance(clean, list | dict) and _deeper_than(clean, MAX_NESTING):
        raise ValueError(f"nested more than {MAX_NESTING} deep")
    return clean


def _deeper_than(value: JsonValue, levels: int) -> bool:
    if not isinstance(value, list | dict):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper_than(item, levels - 1) for item in items)
