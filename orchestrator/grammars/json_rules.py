"""Lark rules (llguidance's) for JSON values of a schema that may quote earlier steps as `$k`.

Separators are ", " and ": ", as everywhere in turns. Properties come in the schema's order; required ones are there,
optional ones may be left out. In the place of any value may stand a string that is nothing but a quote, and texts may
hold quotes: of the given steps only, so that no value names a step that it cannot have. What a schema says beyond
types, enums, properties and non-empty strings (lengths, patterns, formats, bounds) is left to the check of arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pool_registry.actions import JsonValue

MAX_LEVELS = 4  # of arrays and objects inside each other
_DIGITS = "[0-9]"
_ESCAPE = r'\\["\\\/bfnrt]'
_JSON_CHAR = rf'([^"\\$0-9\x00-\x1f\x7f]|{_ESCAPE})'  # neither a digit nor a dollar
_LINE_CHAR = r"[^$0-9\x00-\x1f\x7f-\x9f\u2028\u2029]"

# The tokens of text that the grammar forces are the model's choice: another cut of it is not what it was trained on.
OPTIONS = '%llguidance {"no_forcing": true}'
QUOTE = r"^\$[1-9][0-9]{0,5}(\.[A-Za-z_][A-Za-z0-9_]*|\[([0-9]+|\*)\])*$"  # a JSON Schema pattern: nothing but a quote
_PATH = r"(\.[A-Za-z_][A-Za-z0-9_]*|\[([0-9]+|\*)\])*"  # to a field of what a quoted step returned
Quotes = tuple[int, ...]  # ids of the steps that a value may quote


class JsonRules:
    """Collects rules and terminals under names; `write` puts them together."""

    def __init__(self) -> None:
        self._definitions: dict[str, str] = {}

    def write(self, start: str) -> str:
        """The Lark text of all rules, with `start` as the body of the first."""
        return (
            "\n".join([OPTIONS, f"start: {start}", *(f"{name}: {body}" for name, body in self._definitions.items())])
            + "\n"
        )

    def define(self, name: str, body: str) -> str:
        """Add a rule, or a terminal if the name is in capitals, unless it is there already; return its name."""
        self._definitions.setdefault(name, body)
        return name

    def add_value(self, schema: object, quotes: Quotes, root: Mapping[str, JsonValue], levels: int = MAX_LEVELS) -> str:
        """An expression for the values of a schema; `root` is the one that its references point into."""
        schema = resolve_local(schema, root)
        if not isinstance(schema, Mapping) or levels == 0:
            return self.add_any(quotes, levels)
        parts = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(parts, list):
            return join_choices([self.add_value(part, quotes, root, levels - 1) for part in parts])
        literals = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(literals, list) and literals:
            return join_choices([*map(write_literal, literals), *self._add_quote(quotes)])
        types = schema.get("type")
        names = types if isinstance(types, list) else [types]
        return join_choices([self._add_type(str(name), schema, quotes, root, levels) for name in names])

    def add_object(
        self, schema: Mapping[str, JsonValue], quotes: Quotes, root: Mapping[str, JsonValue], levels: int = MAX_LEVELS
    ) -> str:
        """An expression for the objects of a schema with properties."""
        properties = schema.get("properties")
        required = schema.get("required")
        rules = dict(properties) if isinstance(properties, Mapping) else {}
        needed = [str(name) for name in required] if isinstance(required, list) else []
        rules |= {name: True for name in needed if name not in rules}
        members = []
        for name, rule in rules.items():
            key = write_text(f"{json.dumps(name, ensure_ascii=False)}: ")
            members.append((f"{key} {self.add_value(rule, quotes, root, levels - 1)}", name in needed))
        return f'"{{" {_join_members(members)} "}}"' if members else '"{}"'

    def add_any(self, quotes: Quotes, levels: int = MAX_LEVELS) -> str:
        """A rule for any JSON value but null, nested at most so deep."""
        name = f"any{levels}_{mark(quotes)}"
        if name in self._definitions:
            return name
        plain = [self.add_string(quotes), self._add_number(), '"true"', '"false"']
        if levels > 0:
            inner = self.add_any(quotes, levels - 1)
            member = f'{self.add_string(())} ": " {inner}'
            plain += [
                f'"[" ({inner} (", " {inner})*)? "]"',
                f'"{{" ({member} (", " {member})*)? "}}"',
            ]
        return self.define(name, " | ".join(plain))

    def add_string(self, quotes: Quotes, empty: bool = True) -> str:
        """A terminal for JSON strings whose `$k` name these steps only, with or without the empty string."""
        name, times = ("STRING", "*") if empty else ("FILLED", "+")
        return self.define(f"{name}_{mark(quotes)}", f'/"{text_pattern(_JSON_CHAR, quotes, times)}"/')

    def add_line(self, quotes: Quotes) -> str:
        """A terminal for one line of text whose `$k` name these steps only."""
        return self.define(f"LINE_{mark(quotes)}", f"/{text_pattern(_LINE_CHAR, quotes, '+')}/")

    def add_access(self, ids: Quotes) -> str:
        """An expression for lists of these step ids."""
        if not ids:
            return '"[]"'
        step = self.define(f"STEP_{mark(ids)}", f"/{'|'.join(map(str, ids))}/")
        more = f'(", " {step}){{0,{len(ids) - 1}}}' if len(ids) > 1 else ""
        return f'"[" ({step} {more})? "]"'

    def _add_type(
        self, name: str, schema: Mapping[str, JsonValue], quotes: Quotes, root: Mapping[str, JsonValue], levels: int
    ) -> str:
        match name:
            case "string":
                return self.add_string(quotes, empty=not schema.get("minLength"))
            case "integer":
                integer = self.define("INTEGER", r"/-?(0|[1-9][0-9]{0,14})/")
                return join_choices([integer, *self._add_quote(quotes)])
            case "number":
                return join_choices([self._add_number(), *self._add_quote(quotes)])
            case "boolean":
                return join_choices(['"true"', '"false"', *self._add_quote(quotes)])
            case "null":
                return '"null"'
            case "array":
                item = self.add_value(schema.get("items"), quotes, root, levels - 1)
                return join_choices([f'"[" ({item} (", " {item})*)? "]"', *self._add_quote(quotes)])
            case "object" if isinstance(schema.get("properties"), Mapping):
                return join_choices([self.add_object(schema, quotes, root, levels), *self._add_quote(quotes)])
            case _:
                return self.add_any(quotes, levels - 1)

    def _add_number(self) -> str:
        return self.define("NUMBER", r"/-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,12})?/")

    def _add_quote(self, quotes: Quotes) -> list[str]:
        """A terminal for a string that is nothing but a quote; none where no step can be quoted."""
        if not quotes:
            return []
        return [self.define(f"QUOTE_{mark(quotes)}", rf'/"\$({"|".join(map(str, quotes))}){_PATH}"/')]


def text_pattern(char: str, quotes: Quotes, times: str = "*") -> str:
    """A pattern of texts in which `$` is doubled, stands before what makes it no quote, or quotes one of these steps.

    After a quote comes no digit, which would make it another number. `char` is neither a digit nor a dollar.
    """
    plain = rf"({char}|\$\$|\$({char}|0))"
    if not quotes:
        return rf"({plain}|{_DIGITS}){times}"
    quote = rf"\$({'|'.join(map(str, quotes))})"
    unit = f"({plain}|{_DIGITS}|({quote})+{plain})"
    return f"{unit}*({quote})*" if times == "*" else f"({unit}+({quote})*|({quote})+)"


def write_literal(value: JsonValue) -> str:
    """A JSON value as a literal of Lark."""
    return write_text(json.dumps(value, ensure_ascii=False))


def write_text(text: str) -> str:
    """A text as a literal of Lark."""
    return json.dumps(text, ensure_ascii=False)


def join_choices(choices: Sequence[str]) -> str:
    """An expression for one of these, without repeats."""
    different = list(dict.fromkeys(choices))
    return different[0] if len(different) == 1 else f"({' | '.join(different)})"


def _join_members(members: Sequence[tuple[str, bool]]) -> str:
    """An expression for an object's members, each with whether it is required, and with commas between those there."""
    choices = []
    for index, (member, required) in enumerate(members):
        rest = [f'", " {other}' if needed else f'(", " {other})?' for other, needed in members[index + 1 :]]
        choices.append(" ".join([member, *rest]))
        if required:
            return f"({' | '.join(choices)})"
    return f"({' | '.join(choices)})?"


def resolve_local(schema: object, root: Mapping[str, JsonValue], hops: int = 8) -> object:
    """The schema that a local reference points to; None (any value) where it points nowhere."""
    while isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
        place: object = root
        for part in str(schema["$ref"]).removeprefix("#").strip("/").split("/"):
            place = place.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
        schema, hops = (place, hops - 1) if hops else (None, 0)
    return schema


def mark(quotes: Quotes) -> str:
    """The end of names of rules whose values may quote these steps."""
    return "_".join(map(str, quotes)) or "0"
