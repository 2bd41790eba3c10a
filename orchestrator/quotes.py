"""Quotes of outputs: what `$k`, `$k.rates.EUR` and `$k[*].name` stand for in arguments and answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from pool_registry.actions import JsonValue, as_text
from pool_registry.text import shorten

MAX_QUOTED_CHARS = 1_000_000
LENGTH = "length"  # of a list: the number of its items
MAX_NAMES_CHARS = 200  # of the fields of an output in an error

# A reference in a text: `$$` is a dollar, `$12` quotes step 12, and `$12.rates.EUR` or `$12[0].name` a field of its
# output, `$12[*].name` that field of all items, `$12.length` how many there are; a `$` before anything else stands for
# itself.
_PATH = r"(?:\.[A-Za-z_]\w{0,99}|\[(?:[0-9]{1,4}|\*)\]){0,8}"
REFERENCE = re.compile(rf"\$(\$|[1-9][0-9]{{0,5}})({_PATH})")
WHOLE_QUOTE = re.compile(rf"\$[1-9][0-9]{{0,5}}{_PATH}")
_FIELD = re.compile(r"\.(\w+)|\[([0-9]+|\*)\]")


def references(value: JsonValue) -> set[int]:
    """The ids of all steps that a JSON value quotes as `$k`, in strings at any depth."""
    return set(_quotes(value))


def count_quoted_chars(value: JsonValue, values: Mapping[int, JsonValue]) -> int:
    """The characters that replacing every `$k` brings in: a short plan can ask for gigabytes."""
    times = Counter(_quotes(value))
    return sum(count * len(as_text(values[k])) for k, count in times.items())


def _quotes(value: JsonValue) -> list[int]:
    ids: list[int] = []
    _collect(value, ids)
    return ids


def _collect(value: JsonValue, ids: list[int]) -> None:
    if isinstance(value, str):
        if "$" in value:
            ids.extend(int(k) for k, _ in REFERENCE.findall(value) if k != "$")
    elif value is None or isinstance(value, int | float):  # most values: no need to ask what a mapping is
        return
    elif isinstance(value, list | tuple):
        for item in value:
            _collect(item, ids)
    elif isinstance(value, dict | Mapping):
        for item in value.values():
            _collect(item, ids)


def substitute(value: JsonValue, values: Mapping[int, JsonValue]) -> JsonValue:
    """`value` with every `$k` replaced. A string that is nothing but `$k` becomes the value itself
    (a number stays a number); inside longer text it becomes the value's text. `$k.name` and `$k[0]` are the fields of
    an object and the items of a list, `$k[*].name` the list of a field of all items, `$k.length` their number; where
    there is none, `$k` is replaced and `.name` stays. KeyError if k is missing."""
    if isinstance(value, str):
        return _substitute_text(value, values) if "$" in value else value
    if value is None or isinstance(value, int | float):  # most values: no need to ask what a mapping is
        return value
    if isinstance(value, dict | Mapping):
        return {key: substitute(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [substitute(item, values) for item in value]
    return value


def _substitute_text(text: str, values: Mapping[int, JsonValue]) -> JsonValue:
    whole = REFERENCE.fullmatch(text)
    if whole is not None and whole.group(1) != "$":
        value, rest = select_field(values[int(whole.group(1))], whole.group(2))
        return f"{as_text(value)}{rest}" if rest else value
    return REFERENCE.sub(lambda match: _write_quoted(match, values), text)


def _write_quoted(match: re.Match[str], values: Mapping[int, JsonValue]) -> str:
    """The text of a reference's value, and what of its path is no field of that."""
    if match.group(1) == "$":
        return f"${match.group(2)}"
    value, rest = select_field(values[int(match.group(1))], match.group(2))
    return f"{as_text(value)}{rest}"


def select_field(value: JsonValue, path: str) -> tuple[JsonValue, str]:
    """The part of a value that a path such as `.rates.EUR`, `[0].name` or `[*].name` leads to, and the end of the path
    that leads nowhere: "The fee is $1.Thanks" quotes a number, which has no fields. `[*]` leads somewhere where the
    rest of the path does for every item."""
    for match in _FIELD.finditer(path):
        name, place = match.groups()
        if place == "*":
            parts = (
                [select_field(item, path[match.end() :]) for item in value] if isinstance(value, list | tuple) else []
            )
            leads_on = isinstance(value, list | tuple) and not any(rest for _, rest in parts)
            return ([part for part, _ in parts], "") if leads_on else (value, path[match.start() :])
        if name is not None and isinstance(value, Mapping) and name in value:
            value = value[name]
        elif name == LENGTH and isinstance(value, list | tuple):
            value = len(value)
        elif place is not None and isinstance(value, list | tuple) and int(place) < len(value):
            value = value[int(place)]
        else:
            return value, path[match.start() :]
    return value, ""


def explain_missing_part(value: JsonValue, values: Mapping[int, JsonValue], names_parts: bool = True) -> str | None:
    """What says that a part of an output is not there, and with `names_parts` which are; None where every one is.

    Only a text that is nothing but a quote asks for a part, and only objects and lists have some: where step 1 returns
    a name "$1.pdf" is that of a file.
    """
    if isinstance(value, str):
        return _explain_quote(value, values, names_parts) if WHOLE_QUOTE.fullmatch(value) else None
    if isinstance(value, dict | Mapping):
        value = list(value.values())
    items = value if isinstance(value, list | tuple) else ()
    return next(filter(None, (explain_missing_part(item, values, names_parts) for item in items)), None)


def _explain_quote(quote: str, values: Mapping[int, JsonValue], names_parts: bool) -> str | None:
    whole = REFERENCE.fullmatch(quote)
    if whole is None or int(whole[1]) not in values:
        return None
    part, rest = select_field(values[int(whole[1])], whole[2])
    if not rest or not isinstance(part, Mapping | list | tuple):
        return None
    there = f": {_describe_parts(part, quote.removesuffix(rest))}" if names_parts else ""
    return f"there is no {quote}{there}"


def _describe_parts(value: Mapping[str, JsonValue] | Sequence[JsonValue], quote: str) -> str:
    if isinstance(value, Mapping):
        return f"{quote} has {_list_names(value)}"
    first = next(iter(value), None)
    items = f"; {quote}[0] has {_list_names(first)}" if isinstance(first, Mapping) else ""
    return f"{quote} is a list of {len(value)}{items}"


def _list_names(value: Mapping[str, JsonValue]) -> str:
    """The names of an object's fields, of many the first ones."""
    names = [str(name) for name in value]
    return shorten(", ".join(names), MAX_NAMES_CHARS) if names else "no fields"


def renumber_quotes(value: JsonValue, ids: Mapping[int, int]) -> JsonValue:
    """`value` with every `$k` quoting `ids[k]` instead; `$$` and ids that `ids` lacks stay as they are."""
    if isinstance(value, str):
        return REFERENCE.sub(lambda match: _other_id(match, ids), value) if "$" in value else value
    if isinstance(value, dict | Mapping):
        return {key: renumber_quotes(item, ids) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [renumber_quotes(item, ids) for item in value]
    return value


def _other_id(match: re.Match[str], ids: Mapping[int, int]) -> str:
    k = match.group(1)
    return match.group() if k == "$" else f"${ids.get(int(k), k)}{match.group(2)}"


def escape(text: str) -> str:
    """`text` with every `$` doubled, so that none quotes a step: for queries inside instructions."""
    return text.replace("$", "$$")


def escape_value(value: JsonValue) -> JsonValue:
    """A JSON value with every `$` in its strings doubled: for arguments that were not written as part of a plan."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, Mapping):
        return {key: escape_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [escape_value(item) for item in value]
    return value
