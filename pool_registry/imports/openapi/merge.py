"""Schemas joined by `allOf` as one, where one says the same: a model fills in arguments, not compositions.

What cannot be said by one schema stays an `allOf`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

NOTES = frozenset({"title", "description", "default"})  # the outer one is kept
# Keywords that look at each other: they must come from one schema.
_GROUPS = ({"items", "prefixItems"}, {"if", "then", "else"}, {"contains", "minContains", "maxContains"})
_OPEN: tuple[Any, ...] = (True, {})  # rules for other properties that allow all
_UNEVALUATED = {"unevaluatedProperties", "unevaluatedItems"}
_PLAIN_OBJECT = NOTES | {"type", "properties", "required", "minProperties", "maxProperties"}


def merge_all_of(schema: dict[str, Any], definitions: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """`schema` without its `allOf` where that can be; equal values fit both. A part that is a reference to one of
    `definitions` is looked up."""
    parts = schema.get("allOf")
    if not isinstance(parts, list) or not parts:
        return schema
    whole = {key: value for key, value in schema.items() if key != "allOf"}
    closed = whole.pop("unevaluatedProperties", None) is False
    for part in parts:
        joined = _join(whole, __look_up(part, definitions or {}))
        if joined is None:
            return schema
        whole = joined
    if not closed:
        return schema if "unevaluatedProperties" in schema else whole
    return {**whole, "additionalProperties": False} if whole.keys() <= _PLAIN_OBJECT else schema


def __look_up(part: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema merged; for a reference with nothing but notes beside, the definition that it leads to."""
    if not isinstance(part, dict):
        return part
    name = str(part.get("$ref", "")).removeprefix("#/$defs/")
    target = definitions.get(name) if part.keys() <= NOTES | {"$ref"} else None
    if not isinstance(target, dict):
        return merge_all_of(part, definitions)
    notes = {key: value for key, value in part.items() if key != "$ref"}
    others = {key: value for key, value in definitions.items() if key != name}  # one may lead back to itself
    return merge_all_of({**target, **notes}, others)


def _join(left: dict[str, Any], right: Any) -> dict[str, Any] | None:
    """One schema that says what both say; None where there is none."""
    if not isinstance(right, dict) or (left.keys() | right.keys()) & _UNEVALUATED:
        return None
    if "$ref" in left.keys() | right.keys() and left.keys() - NOTES and right.keys() - NOTES:
        return None
    if any(left.keys() & group and right.keys() & group for group in _GROUPS):
        return None
    if _shuts_out(left, right) or _shuts_out(right, left):
        return None
    whole = {**right, **left}
    for key in left.keys() & right.keys() - NOTES:
        if left[key] == right[key] and type(left[key]) is type(right[key]):
            continue
        joined = _JOINS[key](left[key], right[key]) if key in _JOINS else None
        if joined is None:
            return None
        whole[key] = joined
    return whole


def _shuts_out(closed: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether properties of `other` would come under the rule that `closed` has for those that it does not name."""
    if closed.get("additionalProperties", True) in _OPEN:
        return False
    names, own = other.get("properties", {}), closed.get("properties", {})
    if not isinstance(names, dict) or not isinstance(own, dict):
        return True
    return "patternProperties" in other or not names.keys() <= own.keys()


def _join_types(left: Any, right: Any) -> Any:
    """Return the types that both allow: an integer is a number, too."""
    first, second = ([item] if isinstance(item, str) else item for item in (left, right))
    if not isinstance(first, list) or not isinstance(second, list):
        return None
    both = [item for item in first if item in second or (item == "integer" and "number" in second)]
    both += [item for item in second if item == "integer" and "number" in first and item not in both]
    return (both[0] if len(both) == 1 else both) or None


def _join_properties(left: Any, right: Any) -> Any:
    if not isinstance(left, dict) or not isinstance(right, dict):
        return None
    whole = {**right, **left}
    for name in left.keys() & right.keys():
        joined = _join(left[name], right[name]) if isinstance(left[name], dict) else None
        whole[name] = joined if joined is not None else {"allOf": [left[name], right[name]]}
    return {name: whole[name] for name in (*left, *(name for name in right if name not in left))}


def _join_required(left: Any, right: Any) -> Any:
    if not isinstance(left, list) or not isinstance(right, list):
        return None
    return [*left, *(name for name in right if name not in left)]


def _join_rules_for_others(left: Any, right: Any) -> Any:
    """The rule for other properties that is none for all."""
    return right if left in _OPEN else left if right in _OPEN else None


def _join_bounds(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def join(left: Any, right: Any) -> Any:
        are_numbers = all(isinstance(item, int | float) and not isinstance(item, bool) for item in (left, right))
        return choose(left, right) if are_numbers else None

    return join


_JOINS: dict[str, Callable[[Any, Any], Any]] = {
    "type": _join_types,
    "properties": _join_properties,
    "required": _join_required,
    "additionalProperties": _join_rules_for_others,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), _join_bounds(max)),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), _join_bounds(min)),
}
