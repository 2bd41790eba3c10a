"""Argument schemas from other sources: whether they can be used, and how they differ."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from pool_registry.checked_documents import CheckedDocuments
from pool_registry.schemas.schema_check import SchemaCheck
from pool_registry.schemas.schema_size import SchemaTooLarge, size_problem

_usable = CheckedDocuments()  # compiling a schema takes a millisecond


def schema_problem(schema: object) -> str:
    """Explain why `schema` cannot describe a worker's arguments; "" when it can."""
    try:
        _check_usable(schema)
    except SchemaTooLarge as error:
        return f"its arguments: {error}"
    except (ValueError, RecursionError) as error:
        return " ".join(str(error).split())[:300]
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


def size_problem_of_arguments(schema: object) -> str:
    """Explain why a schema of arguments asks for too much; "" when it does not."""
    return "" if _usable.holds(schema) else size_problem(schema)


def _check_usable(schema: object) -> None:
    """Raises SchemaTooLarge, or ValueError where the schema is none of arguments."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ValueError("the schema of its arguments does not describe an object")
    if _usable.holds(schema):
        return
    try:
        SchemaCheck(schema)
    except SchemaTooLarge:
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the schema of its arguments: {error}") from error
    _usable.add(schema)


def stored_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that a configuration holds. One that asks for too much passes here, for what is stored must load:
    check_pool refuses it where a pool is saved, and a call of its worker where one is not. Raises ValueError."""
    with suppress(SchemaTooLarge):
        _check_usable(schema)
    return schema


# A field of a worker's configuration that holds the JSON Schema of its arguments.
ArgumentsSchema = Annotated[
    dict[str, Any],
    AfterValidator(stored_schema),
    Field(
        default_factory=lambda: {"type": "object"}, description="JSON Schema of its arguments, as recorded at import."
    ),
]

# What importers changed in such a schema so that it can be used, in sentences that the worker's card shows.
SchemaNotes = Annotated[
    tuple[str, ...], Field(default=(), description="What was changed in the schema of its arguments at import.")
]
