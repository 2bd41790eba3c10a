"""What a worker must return, and the check of what it returned.

An agent answers in text. Where a schema wants more than text, the JSON in the answer (bare, or in one
``` fence) is read first, and the value that was read is what the next step gets.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress

from pydantic import Field, field_validator, model_validator

from pool_registry.actions import JsonValue, as_text, storable
from pool_registry.schemas.regex import MATCH_S, MAX_PATTERN_CHARS, matches_whole, pattern_problem
from pool_registry.schemas.schema_check import SHOWN_CHARS, SchemaCheck
from pool_registry.schemas.schema_size import SchemaTooLarge
from pool_registry.strict_model import FrozenModel
from pool_registry.text import shorten

_FENCE = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\n(.*?)```", re.DOTALL)


class Output(FrozenModel):
    """What a worker's result must be: a value that a JSON Schema accepts, or text that a pattern matches."""

    json_schema: dict[str, JsonValue] | None = Field(
        default=None, description="JSON Schema of the result; JSON in an agent's answer is read before the check."
    )
    pattern: str | None = Field(
        default=None,
        max_length=MAX_PATTERN_CHARS,
        description="Regular expression that the whole result must match, as text.",
    )

    @field_validator("json_schema")
    @classmethod
    def _compiles(cls, schema: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        if schema is not None:
            with suppress(SchemaTooLarge):  # check_pool refuses it; what is stored must load
                SchemaCheck(schema)
        return schema

    @field_validator("pattern")
    @classmethod
    def _is_pattern(cls, pattern: str | None) -> str | None:
        problem = None if pattern is None else pattern_problem(pattern)
        if problem is not None:
            raise ValueError(problem)
        return pattern

    @model_validator(mode="after")
    def _says_one_thing(self) -> Output:
        if (self.json_schema is None) == (self.pattern is None):
            raise ValueError("give either a JSON Schema or a pattern")
        return self


class BadOutput(Exception):
    """The result is not what the worker must return; the message says how it differs."""


class OutputChecker:
    """A compiled `Output` that checks results. Raises SchemaTooLarge."""

    def __init__(self, output: Output) -> None:
        self._pattern = output.pattern
        self._schema = None if output.json_schema is None else SchemaCheck(output.json_schema)

    def check(self, value: JsonValue) -> JsonValue:
        """Return `value`, or the JSON that it holds as text, if it fits. Raises BadOutput."""
        if self._schema is None:
            return self._matching(value, self._pattern or "")
        if self._schema.accepts(value):
            return value
        parsed = _read(value) if isinstance(value, str) else value
        if parsed is not value and self._schema.accepts(parsed):
            return parsed
        raise BadOutput(self._schema.explain(parsed, "result"))

    def _matching(self, value: JsonValue, pattern: str) -> JsonValue:
        try:
            if matches_whole(pattern, as_text(value)):
                return value
        except TimeoutError:
            raise BadOutput(f"the pattern {pattern!r} takes more than {MATCH_S} s on it") from None
        raise BadOutput(f"{shorten(as_text(value), SHOWN_CHARS)!r} does not match the pattern {pattern!r}")


def _read(text: str) -> JsonValue:
    """Parse the JSON that a text is, or holds in its only fence; return `text` when there is none."""
    fenced = _FENCE.findall(text)
    try:
        return storable(json.loads(fenced[0] if len(fenced) == 1 else text, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
