"""Random arguments that a worker's schema accepts, for random plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from orchestrator.quotes import escape
from pool_registry.calls.live_pool import LiveWorker

ATTEMPTS = 4  # to draw arguments that a schema accepts
MAX_NESTING = 6
MAX_ITEMS = 10


def draw_arguments(worker: LiveWorker, query: str, random: Random) -> dict[str, Any] | None:
    """Random arguments that the worker's schema accepts, with every `$` escaped; None when no attempt was
    accepted."""
    for arguments in _candidates(worker, query, random):
        literal: dict[str, Any] = _escape_strings(arguments)
        if worker.argument_problem(arguments) is None and worker.argument_problem(literal) is None:
            return literal
    return None


def _candidates(worker: LiveWorker, query: str, random: Random) -> Iterator[dict[str, Any]]:
    if worker.instruction_parameter is not None:
        yield {worker.instruction_parameter: query}
    if worker.worker.sample:
        yield dict(worker.worker.sample)
    for _ in range(ATTEMPTS):
        value = _draw_value(worker.parameters, query, random, MAX_NESTING)
        if isinstance(value, dict):
            yield value


def _draw_value(rule: object, query: str, random: Random, levels: int) -> Any:
    """A value of the type that a JSON Schema asks for. Only common keywords are read; the caller validates the
    value against the whole schema."""
    if not isinstance(rule, Mapping) or levels == 0:
        return query
    for listed in ("enum", "examples"):
        if isinstance(rule.get(listed), list) and rule[listed]:
            return random.choice(rule[listed])
    for given in ("const", "default"):
        if given in rule:
            return rule[given]
    kind = rule.get("type", "object" if "properties" in rule else "string")
    match random.choice(kind) if isinstance(kind, list) and kind else kind:
        case "object":
            return _draw_object(rule, query, random, levels - 1)
        case "array":
            count = _read_bound(rule, "minItems", 0)
            return [_draw_value(rule.get("items"), query, random, levels - 1) for _ in range(min(count, MAX_ITEMS))]
        case "integer" | "number":
            low = _read_bound(rule, "minimum", _read_bound(rule, "exclusiveMinimum", -1) + 1)
            return random.randint(low, max(low, _read_bound(rule, "maximum", low + 100)))
        case "boolean":
            return random.random() < 0.5
        case "null":
            return None
    return query


def _draw_object(rule: Mapping[str, Any], query: str, random: Random, levels: int) -> dict[str, Any]:
    """Every required property, and some of the others."""
    properties = rule.get("properties")
    required = rule.get("required")
    names = list(required) if isinstance(required, list) else []
    if isinstance(properties, Mapping):
        names += [name for name in properties if name not in names and random.random() < 0.5]
    rules = properties if isinstance(properties, Mapping) else {}
    return {str(name): _draw_value(rules.get(name), query, random, levels) for name in names}


def _read_bound(rule: Mapping[str, Any], bound: str, otherwise: int) -> int:
    value = rule.get(bound, otherwise)
    return int(value) if isinstance(value, int | float) and abs(value) < 1e9 else otherwise


def _escape_strings(value: Any) -> Any:
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, Mapping):
        return {name: _escape_strings(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_escape_strings(item) for item in value]
    return value
