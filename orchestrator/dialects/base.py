"""The protocol of dialects, and helpers of their parsers.

Parsers never raise: any text gives a `Turn`, at worst one whose `error` tells the model what to change.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

from orchestrator.plan import Step, Turn
from pool_registry.actions import JsonValue, clean_text, storable
from pool_registry.calls.live_pool import LivePool

MAX_TURN_CHARS = 200_000
MAX_TURN_STEPS = 1000


class Dialect(Protocol):
    """A way to write a turn. `format` is the inverse of `parse` (for demonstrations and history)."""

    @property
    def name(self) -> str: ...

    @property
    def calls_tools(self) -> bool:
        """Whether outputs come back as messages of the role tool, and an answer stands in a turn of its own."""

    def instructions(self, pool: LivePool) -> str:
        """The part of the system prompt that says how to write a turn."""

    def system_prompt(self, pool: LivePool) -> str | None:
        """The whole system prompt of a dialect that has one of its own; None for the usual one (prompt.py)."""

    def name_workers(self, pool: LivePool) -> Mapping[str, str]:
        """The names under which this dialect shows workers, where they are not the pool's own."""

    def tools(self, pool: LivePool) -> list[Mapping[str, JsonValue]] | None:
        """Function definitions for a chat template's own tool calling, or None."""

    def call_arguments(self, step: Step) -> Mapping[str, JsonValue]:
        """The arguments of a step as the message of the assistant that made the call states them."""

    def parse(self, text: str, first_id: int, workers: Sequence[str]) -> Turn:
        """The turn in `text`; its steps get ids from `first_id` on. Never raises."""

    def format(self, turn: Turn, workers: Sequence[str]) -> str:
        """The turn as a model would write it."""


class BaseDialect(ABC):
    """What most dialects share: the limit on a turn's length, the usual prompt, no tool calling by the template."""

    calls_tools = False

    def system_prompt(self, pool: LivePool) -> str | None:
        return None

    def name_workers(self, pool: LivePool) -> Mapping[str, str]:
        return {}

    def tools(self, pool: LivePool) -> list[Mapping[str, JsonValue]] | None:
        return None

    def call_arguments(self, step: Step) -> Mapping[str, JsonValue]:
        return {**step.arguments, "access": list(step.access)}

    def parse(self, text: str, first_id: int, workers: Sequence[str]) -> Turn:
        if len(text) > MAX_TURN_CHARS:
            error = f"the turn has {len(text):,} characters; {MAX_TURN_CHARS:,} are allowed"
            return Turn(error=error, text=clean_text(text[:2000]) + " …")
        return self._parse(clean_text(text), first_id, workers)

    @abstractmethod
    def _parse(self, text: str, first_id: int, workers: Sequence[str]) -> Turn:
        """The turn in a text of usual length, whose characters can be stored."""


def load_json(text: str) -> JsonValue:
    """Parse JSON. Raises ValueError, also for deep nesting (never RecursionError)."""
    try:
        parsed: JsonValue = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return parsed


def parse_answer(answer: object, text: str) -> Turn:
    """A turn with only this answer, or an error turn when it is no JSON value (NaN, nested too deeply)."""
    try:
        return Turn(answer=storable(answer), text=text)
    except (ValueError, RecursionError) as error:
        return Turn(error=f"the answer cannot be kept: {error}", text=text)


def build_step(
    step_id: int, worker: object, arguments: object, access: object, all_ids: Sequence[int] | None = None
) -> Step:
    """A step from the fields that a model wrote, marked as malformed where one has the wrong type.

    `all_ids` is the access list that "all" stands for, in dialects that have this word.
    """
    name = clean_text(worker) if isinstance(worker, str) else ""
    ids = parse_access(access, all_ids)
    try:
        cleaned = storable(arguments)
    except (ValueError, RecursionError) as error:
        return Step(step_id, name, access=ids or ()).with_problem(f"arguments: {error}")
    step = Step(step_id, name, cleaned if isinstance(cleaned, dict) else {}, ids or ())
    if not name:
        return step.with_problem("worker must be the name of a worker, as a string")
    if not isinstance(cleaned, dict):
        return step.with_problem("arguments must be an object")
    if ids is None:
        return step.with_problem("access must be a list of step numbers, for example [1, 2]")
    return step


def parse_access(access: object, all_ids: Sequence[int] | None = None) -> tuple[int, ...] | None:
    """The step ids of an access list in order, without repeats; None when it is not a list of whole numbers."""
    if access is None:
        return ()
    if access == "all" and all_ids is not None:
        return tuple(all_ids)
    if not isinstance(access, list | tuple) or len(access) > MAX_TURN_STEPS:
        return None
    ids: dict[int, None] = {}
    for item in access:
        number = int(item) if isinstance(item, str) and re.fullmatch("[0-9]{1,7}", item) else item
        if isinstance(number, bool) or not isinstance(number, int) or abs(number) > 10**6:
            return None
        ids[number] = None
    return tuple(ids)


def shorthand(arguments: Mapping[str, JsonValue]) -> JsonValue:
    """The text behind a lone `instruction`, or None when arguments must be written out."""
    return arguments["instruction"] if set(arguments) == {"instruction"} else None
