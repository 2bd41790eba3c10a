"""Argument schemas from other sources: whether they can be used, and how they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import jsonschema_rs
from pydantic import AfterValidator, Field

from pool_registry.actions import as_text

MAX_SCHEMA_CHARS = 100_000


def schema_problem(schema: object) -> str:
    """Explain why `schema` cannot describe a worker's arguments; "" when it can."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "the schema of its arguments does not describe an object"
    try:
        if len(as_text(schema)) > MAX_SCHEMA_CHARS:
            return f"the schema of its arguments has more than {MAX_SCHEMA_CHARS:,} characters"
        # offline: a reference in a foreign schema must not fetch a file or an address
        jsonschema_rs.validator_for(schema, offline=True)
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        return f"the schema of its arguments is not valid JSON Schema: {reason}"
    return ""


def describe_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Describe how two argument schemas differ: "new: unit; gone: scale"; "" when they mean the same."""
    before, after = without_wording(before), without_wording(after)
    if before == after:
        return ""
    old, new = before.get("properties") or {}, after.get("properties") or {}
    parts = [
        ("new", sorted(new.keys() - old.keys())),
        ("gone", sorted(old.keys() - new.keys())),
        ("changed", sorted(name for name in old.keys() & new.keys() if old[name] != new[name])),
    ]
    differences = "; ".join(f"{word}: {', '.join(names)}" for word, names in parts if names)
    return differences or "another rule"


def without_wording(schema: Any, words: tuple[str, ...] = ("title", "description")) -> Any:
    """Return `schema` without the keys that restrict nothing (an argument called "title" keeps its rule)."""
    if isinstance(schema, list):
        return [without_wording(item, words) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {}
    for key, value in schema.items():
        if key in ("properties", "$defs", "definitions", "patternProperties") and isinstance(value, Mapping):
            kept[key] = {name: without_wording(rule, words) for name, rule in value.items()}
        elif key in ("default", "const", "enum", "examples"):
            kept[key] = value
        elif not (key in words and isinstance(value, str)):
            kept[key] = without_wording(value, words)
    return kept


def _usable(schema: dict[str, Any]) -> dict[str, Any]:
    problem = schema_problem(schema)
    if problem:
        raise ValueError(problem)
    return schema


# A field of a worker's configuration that holds the JSON Schema of its arguments.
ArgumentsSchema = Annotated[
    dict[str, Any],
    AfterValidator(_usable),
    Field(
        default_factory=lambda: {"type": "object"}, description="JSON Schema of its arguments, as recorded at import."
    ),
]
