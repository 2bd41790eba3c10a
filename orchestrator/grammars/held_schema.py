"""A JSON Schema in the words that a grammar can hold a reply to (llguidance's).

What a grammar has no word for is written in others that ask for at least as much: `if` and `then` become two forms, a
name that needs another one is left out or brings it, `not` becomes what is left. What cannot be written so is left to
the check of the reply, and named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pool_registry.actions import JsonValue

Schema = dict[str, Any]
MAX_EXCLUSIVE = 4  # forms of a oneOf of which each is kept apart from all others
MAX_LEVELS = 30
MAX_LEFT_OUT = 400  # characters of the texts that a `not` names: each is a step of a regular expression
_TYPES = ("string", "number", "boolean", "array", "object", "null")
_IN_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_IN_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_ALONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_COMPOSED = ("allOf", "anyOf", "oneOf", "$ref", "if", "then", "else")
# The type that a rule is about, and the rule that a value keeps which breaks it, with the step between their limits.
_OPPOSITES: Mapping[str, tuple[str, str, int]] = {
    "minimum": ("number", "exclusiveMaximum", 0), "exclusiveMinimum": ("number", "maximum", 0),
    "maximum": ("number", "exclusiveMinimum", 0), "exclusiveMaximum": ("number", "minimum", 0),
    "minLength": ("string", "maxLength", -1), "maxLength": ("string", "minLength", 1),
    "minItems": ("array", "maxItems", -1), "maxItems": ("array", "minItems", 1),
}  # fmt: skip
_LOOKS_AROUND = re.compile(r"\(\?<?[=!]|\\[1-9]")


@dataclass(frozen=True, slots=True)
class HeldSchema:
    """The schema of a grammar, and the words of the original that it does not hold a reply to."""

    schema: Mapping[str, JsonValue]
    unheld: tuple[str, ...]


def hold_schema(schema: Mapping[str, Any]) -> HeldSchema:
    """Write a schema in the words of a grammar. It never takes what the original refuses, but for its `unheld`."""
    unheld: dict[str, None] = {}
    rewrite = _rewrite({word: rule for word, rule in schema.items() if word != "$schema"}, unheld, 0)
    return HeldSchema(rewrite if isinstance(rewrite, dict) else {}, tuple(unheld))


def _rewrite(schema: Any, unheld: dict[str, None], level: int) -> Any:
    if not isinstance(schema, Mapping) or level > MAX_LEVELS:
        return schema
    plain = dict(schema)
    if isinstance(plain.get("items"), list):  # of older drafts
        plain["prefixItems"], plain["items"] = plain["items"], plain.pop("additionalItems", True)
    for word in _IN_MAPS:
        if isinstance(plain.get(word), Mapping):
            plain[word] = {name: _rewrite(rule, unheld, level + 1) for name, rule in plain[word].items()}
    for word in _IN_LISTS:
        if isinstance(plain.get(word), list):
            plain[word] = [_rewrite(rule, unheld, level + 1) for rule in plain[word]]
    for word in _ALONE:
        if word in plain:
            plain[word] = _rewrite(plain[word], unheld, level + 1)
    for word, write in _WRITERS.items():
        if word in plain and not write(plain, plain.pop(word)):
            unheld[word] = None
    return plain


def _write_not(schema: Schema, rule: Any) -> bool:
    return _add_forms(schema, _negate(rule, schema))


def _write_condition(schema: Schema, rule: Any) -> bool:
    """Either the condition and what follows from it, or what breaks it and what follows from that."""
    then, otherwise = schema.pop("then", True), schema.pop("else", True)
    opposites = _negate(rule, schema)
    forms = [_join(rule, then), *(_join(form, otherwise) for form in opposites)]
    return _add_forms(schema, forms if opposites else [forms[0], otherwise]) and bool(opposites)


def _write_dependent(schema: Schema, rules: Any) -> bool:
    """Names that bring others, or a schema of the whole object."""
    for name, rule in rules.items() if isinstance(rules, Mapping) else ():
        consequence = {"required": rule} if isinstance(rule, list) else rule
        _add_forms(schema, [_join({"required": [name]}, consequence), {"properties": {name: False}}])
    return isinstance(rules, Mapping)


def _write_contains(schema: Schema, rule: Any) -> bool:
    """The entries that must be there stand first."""
    least, most = schema.pop("minContains", 1), schema.pop("maxContains", None)
    if "prefixItems" in schema or not isinstance(least, int):
        return False
    schema["prefixItems"] = [_join(schema.get("items", True), rule)] * least
    schema["minItems"] = max(least, schema.get("minItems", 0))
    return most is None


def _write_names(schema: Schema, rule: Any) -> bool:
    rest = schema.get("additionalProperties", True)
    if not isinstance(rule, Mapping) or "patternProperties" in schema or rest is False:
        return rest is False and "patternProperties" not in schema
    if isinstance(rule.get("enum"), list):
        schema["properties"] = dict.fromkeys(rule["enum"], rest) | schema.get("properties", {})
    elif isinstance(rule.get("pattern"), str):
        schema["patternProperties"] = {rule["pattern"]: rest}
    else:
        return False
    schema["additionalProperties"] = False
    return True


def _write_unevaluated(schema: Schema, rule: Any) -> bool:
    if any(word in schema for word in _COMPOSED):
        return False
    schema.setdefault("additionalProperties", rule)
    return True


def _write_unevaluated_items(schema: Schema, rule: Any) -> bool:
    if any(word in schema for word in _COMPOSED):
        return False
    schema.setdefault("items", rule)
    return True


def _write_one_of(schema: Schema, forms: Any) -> bool:
    """Any of the forms, each without what another one takes."""
    if not isinstance(forms, list):
        return False
    opposites = [
        [_negate(other, form) for other in forms if other is not form] if len(forms) <= MAX_EXCLUSIVE else []
        for form in forms
    ]
    exclusive = [
        _join(form, *({"anyOf": ways} for ways in others if ways))
        for form, others in zip(forms, opposites, strict=True)
    ]
    return _add_forms(schema, exclusive) and all(others and all(others) for others in opposites)


def _write_pattern(schema: Schema, pattern: Any) -> bool:
    if not isinstance(pattern, str) or _LOOKS_AROUND.search(pattern):
        return False
    schema["pattern"] = pattern
    return True


def _write_patterns(schema: Schema, rules: Any) -> bool:
    if not isinstance(rules, Mapping) or any(_LOOKS_AROUND.search(pattern) for pattern in rules):
        schema.pop("additionalProperties", None)
        return False
    schema["patternProperties"] = rules
    return True


def _write_anchor(schema: Schema, name: Any) -> bool:
    schema["$anchor"] = name
    return True


def _write_reference(schema: Schema, place: Any) -> bool:
    schema["$ref"] = place
    return True


def _leave_to_check(schema: Schema, rule: Any) -> bool:  # noqa: ARG001
    return rule is False


# How each word that a grammar lacks is written in others; False where it is not held by them. Taken in this order.
_WRITERS: Mapping[str, Callable[[Schema, Any], bool]] = {
    "$dynamicRef": _write_reference,
    "$dynamicAnchor": _write_anchor,
    "unevaluatedProperties": _write_unevaluated,
    "unevaluatedItems": _write_unevaluated_items,
    "not": _write_not,
    "if": _write_condition,
    "dependentRequired": _write_dependent,
    "dependentSchemas": _write_dependent,
    "dependencies": _write_dependent,
    "contains": _write_contains,
    "propertyNames": _write_names,
    "oneOf": _write_one_of,
    "pattern": _write_pattern,
    "patternProperties": _write_patterns,
    "uniqueItems": _leave_to_check,
}


def _negate(rule: Any, base: Any) -> list[Schema]:
    """Forms that break a rule, each of which is enough; none where none can be written. `base` is what else a value
    must be."""
    if not isinstance(rule, Mapping) or not isinstance(base, Mapping):
        return []
    forms: list[Schema] = []
    for word, limit in rule.items():
        if word in ("const", "enum"):
            forms += _leave_out([limit] if word == "const" else _as_list(limit), base)
        elif word == "type":
            others = [name for name in _list_types(base) if name not in _list_types(rule)]
            forms += [{"type": others}] if others else []
        elif word == "required":
            missing = [name for name in _as_list(limit) if name not in base.get("required", ())]
            forms += [{"type": "object", "properties": {name: False}} for name in missing]
        elif word == "properties" and isinstance(limit, Mapping):
            rules = base.get("properties", {})
            forms += [
                {"type": "object", "properties": {name: form}, "required": [name]}
                for name, inner in limit.items()
                for form in _negate(inner, rules.get(name))
            ]
        elif word == "not":
            forms += [dict(limit)] if isinstance(limit, Mapping) else []
        elif word == "allOf":
            forms += [form for inner in _as_list(limit) for form in _negate(inner, base)]
        elif word == "anyOf":
            ways = [_negate(inner, base) for inner in _as_list(limit)]
            forms += [_join(*({"anyOf": way} for way in ways))] if ways and all(ways) else []
        elif word in _OPPOSITES and isinstance(limit, int | float):
            kind, opposite, step = _OPPOSITES[word]
            forms.append({"type": kind, opposite: limit + step})
    return forms


def _list_types(rule: Mapping[str, Any]) -> list[str]:
    """The types that a rule takes; a whole number counts as a number."""
    names = rule.get("type", list(_TYPES))
    return list(dict.fromkeys("number" if name == "integer" else name for name in _as_list(names)))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _leave_out(values: Sequence[JsonValue], base: Mapping[str, Any]) -> list[Schema]:
    """What a schema takes but for these values: the rest of those that it lists, or forms of each of its types."""
    choices = [base["const"]] if "const" in base else base.get("enum")
    if choices is not None:
        rest = [value for value in choices if value not in values]
        return [{"enum": rest}] if rest else []
    return [form for name in _list_types(base) for form in _LEFT_OF[name](values)]


def _leave_out_texts(values: Sequence[JsonValue]) -> list[Schema]:
    texts = frozenset(value for value in values if isinstance(value, str))
    if sum(map(len, texts)) > MAX_LEFT_OUT:
        return []
    return [{"type": "string", "pattern": f"^(?:{_write_other_texts(texts)})$"} if texts else {"type": "string"}]


def _write_other_texts(texts: frozenset[str]) -> str:
    """A regular expression, without lookaround, of all texts but these."""
    if not texts:
        return r"[\s\S]*"
    heads = sorted({text[0] for text in texts if text})
    ways = [
        f"[{_escape_mark(head)}]{_write_other_texts(frozenset(text[1:] for text in texts if text[:1] == head))}"
        for head in heads
    ]
    ways.append(f"[^{''.join(map(_escape_mark, heads))}]" r"[\s\S]*" if heads else r"[\s\S]+")
    return f"(?:{'|'.join(ways)}){'' if '' in texts else '?'}"


def _escape_mark(mark: str) -> str:
    return f"\\{mark}" if mark in r"\]^-[" else mark


def _leave_out_numbers(values: Sequence[JsonValue]) -> list[Schema]:
    limits = sorted({value for value in values if isinstance(value, int | float) and not isinstance(value, bool)})
    below = [{"exclusiveMaximum": limit} for limit in limits]
    above = [{"exclusiveMinimum": limit} for limit in limits]
    return [{"type": "number", **low, **high} for low, high in zip([{}, *above], [*below, {}], strict=True)]


def _leave_out_flags(values: Sequence[JsonValue]) -> list[Schema]:
    rest = [flag for flag in (True, False) if not any(value is flag for value in values)]
    return [{"enum": rest}] if rest else []


def _leave_out_documents(name: str, kind: type, values: Sequence[JsonValue]) -> list[Schema]:
    """Of lists, objects and null: all of the type, or none where one of them is left out."""
    return [] if any(isinstance(value, kind) for value in values) else [{"type": name}]


# The forms of a type that leave out some values.
_LEFT_OF: Mapping[str, Callable[[Sequence[JsonValue]], list[Schema]]] = {
    "string": _leave_out_texts,
    "number": _leave_out_numbers,
    "boolean": _leave_out_flags,
    "array": partial(_leave_out_documents, "array", list),
    "object": partial(_leave_out_documents, "object", dict),
    "null": partial(_leave_out_documents, "null", type(None)),
}


def _add_forms(schema: Schema, forms: Sequence[Any]) -> bool:
    """Have a value take one of these forms too."""
    if not forms:
        return False
    schema["allOf"] = [*schema.get("allOf", ()), forms[0] if len(forms) == 1 else {"anyOf": list(forms)}]
    return True


def _join(*rules: Any) -> Any:
    """What keeps all of these rules."""
    parts = [rule for rule in rules if rule is not True and rule != {}]
    return (parts[0] if parts else True) if len(parts) < 2 else {"allOf": parts}
