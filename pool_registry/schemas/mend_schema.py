"""Argument schemas as people have them, as JSON Schema: types by other names, keywords of older drafts, parts that are
none, and parts that are too large.

A schema that can be used stays as it is. What is changed is said in notes, which the worker's card shows: no call is
refused for more than before, and a part that cannot be read takes any value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pool_registry.actions import JsonValue
from pool_registry.schemas.argument_schema import schema_problem
from pool_registry.schemas.translate_schema import Notes, Translator
from pool_registry.text import shorten

NO_ARGUMENTS: Mapping[str, JsonValue] = {"type": "object", "properties": {}}
MAX_TEXT_CHARS = 300  # of a description, where a schema is too long
MAX_WORK = 50_000_000  # characters that are checked again, once for each argument
_DEFINITIONS = ("$defs", "definitions")
_CORE = frozenset(("type", "title", "description", "properties", "required", *_DEFINITIONS))


@dataclass(frozen=True, slots=True)
class MendedSchema:
    """A schema that describes the arguments of a worker, and what was changed in it, in sentences. `problem` says why
    it can describe none even so; then it is that of no arguments."""

    schema: dict[str, JsonValue]
    notes: tuple[str, ...] = ()
    problem: str = ""


def mend_schema(schema: object) -> MendedSchema:
    """The schema of a worker's arguments, however it is written: whatever comes in, one that can be used comes out, or
    why there is none."""
    try:
        return _mend(schema)
    except RecursionError:
        return MendedSchema(dict(NO_ARGUMENTS), (), "the schema of its arguments is nested too deep")


def _mend(schema: object) -> MendedSchema:
    if isinstance(schema, dict) and not schema_problem(schema):
        return MendedSchema(schema)
    if schema is None or schema == {}:
        return MendedSchema(dict(NO_ARGUMENTS))
    notes = Notes()
    mended = Translator(notes).read(schema)
    if mended is None:
        return MendedSchema(dict(NO_ARGUMENTS), (), "its arguments are not described as an object with named fields")
    problem = schema_problem(mended)
    for cut in (_shorten_texts, _drop_rules, _relax_arguments) if problem else ():
        mended = cut(mended, notes)
        if not (problem := schema_problem(mended)):
            break
    return MendedSchema(dict(NO_ARGUMENTS), (), problem) if problem else MendedSchema(mended, notes.write())


def _shorten_texts(schema: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """Cut long descriptions, which restrict nothing."""
    changed: list[str] = []

    def cut(node: Any) -> Any:
        if isinstance(node, list):
            return [cut(item) for item in node]
        if not isinstance(node, dict):
            return node
        text = node.get("description")
        copy = {key: cut(value) for key, value in node.items()}
        if isinstance(text, str) and len(text) > MAX_TEXT_CHARS:
            changed.append(text)
            copy["description"] = shorten(text, MAX_TEXT_CHARS)
        return copy

    shortened: dict[str, Any] = cut(schema)
    if changed:
        notes.add("long descriptions are shortened", "")
    return shortened


def _drop_rules(schema: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """Leave out what is said of the arguments together and cannot be checked."""
    frame = {key: value for key, value in schema.items() if key in _DEFINITIONS} | {"type": "object"}
    loose = [key for key in schema if key not in _CORE and schema_problem({**frame, key: schema[key]})]
    for key in loose:
        notes.add(f"{key} cannot be checked here and is left out", "")
    return {key: value for key, value in schema.items() if key not in loose}


def _relax_arguments(schema: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """Let arguments take any value: those that cannot be checked by themselves, then the largest ones until the rest
    can be, optional ones first."""
    required = schema.get("required") or []
    arguments: dict[str, Any] = dict(schema.get("properties") or {})
    if len(arguments) * len(json.dumps(schema)) > MAX_WORK:
        return schema

    def relax(name: str, sentence: str) -> None:
        relaxed = _relax(arguments[name])
        if relaxed != arguments[name]:
            arguments[name] = relaxed
            notes.add(sentence, name)

    for name, rule in list(arguments.items()):
        if schema_problem({**schema, "properties": {name: rule}}):
            relax(name, "its schema is too large, or cannot be checked, and was cut")
    by_size = sorted(arguments, key=lambda name: (name in required, -len(json.dumps(arguments[name]))))
    for name in by_size:
        if not schema_problem({**schema, "properties": arguments}):
            break
        relax(name, "its schema was cut: all together were too large")
    return _drop_unused_definitions({**schema, "properties": arguments})


def _relax(rule: Any) -> dict[str, Any]:
    """What is left of a rule without its inner parts."""
    words = ("type", "title", "description", "default")
    kept: dict[str, Any] = {key: rule[key] for key in words if key in rule} if isinstance(rule, dict) else {}
    if isinstance(kept.get("description"), str):
        kept["description"] = shorten(kept["description"], MAX_TEXT_CHARS)
    return kept


def _drop_unused_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Without `$defs` and `definitions` that no reference leads to."""
    for holder in _DEFINITIONS:
        definitions = schema.get(holder)
        if not isinstance(definitions, dict):
            continue
        rest = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
        reached, waiting = set[str](), [rest]
        while waiting:
            for name in re.findall(rf'"#/{re.escape(holder)}/([^"/]+)', json.dumps(waiting.pop())):
                if name in definitions and name not in reached:
                    reached.add(name)
                    waiting.append(definitions[name])
        schema = {**schema, holder: {name: definitions[name] for name in definitions if name in reached}}
    return schema
