"""The check of a value against a JSON Schema: bounded in time, and in the length of what it says.

A check never takes more than the limits of schema_size.py allow. Errors cost a thousand times as much as the verdict
alone, above all within anyOf, so they are listed only where few are possible.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

import jsonschema_rs

from pool_registry.actions import JsonValue
from pool_registry.schemas.schema_size import SchemaSize, measure_value
from pool_registry.text import shorten
from pool_registry.validation_words import describe_schema_error, describe_violation

MAX_SCHEMA_CHARS = 100_000
MAX_ERROR_STEPS = 2_000  # each may cost 50 microseconds where errors are listed
SHOWN_VIOLATIONS = 3
MAX_REPEATS = 20  # lists whose entries are dropped
SHOWN_CHARS = 200  # of each violation: messages quote the value
QUOTED_CHARS = 10_000  # of a value: longer ones are not quoted in errors, which would write them out first
MASK = "this value"
# Of a pattern with lookaround, for each text: half a millisecond. Other patterns take linear time.
_PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=20_000)


class SchemaCheck:
    """A compiled schema. Raises SchemaTooLarge for one that asks for too much, ValueError for one that is none."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        if len(json.dumps(schema)) > MAX_SCHEMA_CHARS:
            raise ValueError(f"this schema has more than {MAX_SCHEMA_CHARS:,} characters; make it shorter")
        self._size = SchemaSize(schema)
        self._validator = _compile(schema)

    def accepts(self, value: JsonValue) -> bool:
        """Whether the value fits. What is too large to be checked does not. Raises ValueError where it is no JSON."""
        return not self._size.refuse_value(value) and bool(self._validator.is_valid(value))

    def explain(self, value: JsonValue, whole: str, shown: int = SHOWN_VIOLATIONS, chars: int = SHOWN_CHARS) -> str:
        """Describe the first violations in one sentence for a model. `whole` is what the value is called."""
        refusal = self._size.refuse_value(value)
        if refusal:
            return f"{whole}: {refusal}"
        size = measure_value(value)
        quotes = size.parts + size.chars <= QUOTED_CHARS
        errors = self._list_errors(value, shown + 1, quotes)
        parts = [shorten(describe_violation(error, whole, quotes), chars) for error in errors[:shown]]
        if not parts:
            return f"{whole}: it does not fit its schema; the two are too large to say where, so check each part of it"
        return "; ".join(parts) + (" ..." if len(errors) > shown else "")

    def drop_repeats(self, value: JsonValue) -> JsonValue:
        """The value without the entries that stand twice in a list that takes each once."""
        kept = copy.deepcopy(value)
        for error in [] if self._size.refuse_value(value) else self._list_errors(value, MAX_REPEATS, quotes=True):
            if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.UniqueItems):
                entries: Any = kept
                for part in error.instance_path:
                    entries = entries[part]
                firsts: dict[str, Any] = {}
                for entry in entries:
                    firsts.setdefault(json.dumps(entry, sort_keys=True), entry)
                entries[:] = firsts.values()
        return kept

    def _list_errors(self, value: JsonValue, count: int, quotes: bool) -> list[Any]:
        """List the first errors, or only one, or none, as many as can be found in little time."""
        validator = self._validator if quotes else _compile(self._schema, MASK)
        if self._size.takes_fewer_steps(value, MAX_ERROR_STEPS):
            return list(islice(validator.iter_errors(value), count))
        if self._size.branches:
            return []
        try:
            validator.validate(value)  # ends at the first error
        except jsonschema_rs.ValidationError as error:
            return [error]
        return []


def _compile(schema: Mapping[str, Any], mask: str | None = None) -> Any:
    """Compile a validator that reads no file and asks no server. Raises ValueError saying what is wrong."""
    try:
        return jsonschema_rs.validator_for(dict(schema), offline=True, pattern_options=_PATTERNS, mask=mask)
    except jsonschema_rs.ValidationError as error:
        raise ValueError(f"this is not valid JSON Schema: {describe_schema_error(error)}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is not valid JSON Schema: {str(error).splitlines()[0][:300]}") from error
