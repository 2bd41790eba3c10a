"""What is wrong with a value, in words of our own: the one place where a validator's findings become sentences.

Pydantic's errors become pairs of field and sentence, those about a JSON Schema one sentence each. No text or address of
a library gets past here: a kind of error that has no sentence yet gets a plain one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jsonschema_rs
    from pydantic import ValidationError

MISSING = "this is missing"
UNUSABLE = "this value cannot be used here"
SHOWN = 3  # problems in one sentence
_NAME_PATTERN = re.compile(r"\^\[a-z\]\[a-z0-9_-\]\{0,(\d+)\}\$.*")  # of a pool, a worker, a server
# What pydantic adds to a place where a value may be one of several types.
_TYPE_PARTS = re.compile(
    r"str|int|float|bool|none|bytes"
    r"|(list|tuple|set|frozenset|dict|nullable|union|constrained-\w+|function-[\w-]+|lax-or-strict|json-or-python"
    r"|chain|is-instance|generator|literal)\[.*\]"
)
_JSON_PLACE = re.compile(r"at line (\d+) column (\d+)")
_LIBRARY_HOST = "errors.pydantic.dev"
_LIBRARY_WORDS = re.compile(r"\s*For further information visit https?://errors\.pydantic\.dev/\S*")
_MUST_BE = "this must be "

_TEXT, _WHOLE, _NUMBER = f"{_MUST_BE}text", f"{_MUST_BE}a whole number", f"{_MUST_BE}a number"
_FLAG, _LIST, _OBJECT = f"{_MUST_BE}true or false", f"{_MUST_BE}a list", f"{_MUST_BE}an object: names with values"
_ADDRESS = f"{_MUST_BE}an address such as https://example.org"
_KINDS: Mapping[str, str] = {"Sequence": _LIST, "Mapping": _OBJECT, "dict": _OBJECT, "list": _LIST, "str": _TEXT}
_SENTENCES: Mapping[str, str] = {
    "missing": MISSING,
    "extra_forbidden": "there is no such setting here",
    "string_type": _TEXT,
    "string_sub_type": _TEXT,
    "string_unicode": _TEXT,
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": f"{_MUST_BE}a smaller number",
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": f"{_MUST_BE}a number that is not infinite",
    "bool_type": _FLAG,
    "bool_parsing": _FLAG,
    "none_required": "leave this empty",
    "list_type": _LIST,
    "tuple_type": _LIST,
    "set_type": _LIST,
    "frozen_set_type": _LIST,
    "iterable_type": _LIST,
    "dict_type": _OBJECT,
    "mapping_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "dataclass_type": _OBJECT,
    "sequence_str": _LIST,
    "date_type": f"{_MUST_BE}a date such as 2026-01-31",
    "date_parsing": f"{_MUST_BE}a date such as 2026-01-31",
    "date_from_datetime_parsing": f"{_MUST_BE}a date such as 2026-01-31",
    "datetime_type": f"{_MUST_BE}a time such as 2026-01-31T12:00:00Z",
    "datetime_parsing": f"{_MUST_BE}a time such as 2026-01-31T12:00:00Z",
    "datetime_from_date_parsing": f"{_MUST_BE}a time such as 2026-01-31T12:00:00Z",
    "url_type": _ADDRESS,
    "url_parsing": _ADDRESS,
    "url_scheme": _ADDRESS,
    "url_syntax_violation": _ADDRESS,
}
# Kinds of error whose sentence names what the field allows (`ctx`).
_DETAILED: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "literal_error": lambda details: f"use one of: {str(details['expected']).replace(' or ', ', ')}",
    "enum": lambda details: f"use one of: {str(details['expected']).replace(' or ', ', ')}",
    "union_tag_invalid": lambda details: f"{details['discriminator']} must be one of: {details['expected_tags']}",
    "union_tag_not_found": lambda details: f"{details['discriminator']} is missing; it says which kind this is",
    "greater_than": lambda details: f"{_MUST_BE}above {_write_number(details['gt'])}",
    "greater_than_equal": lambda details: f"{_MUST_BE}at least {_write_number(details['ge'])}",
    "less_than": lambda details: f"{_MUST_BE}below {_write_number(details['lt'])}",
    "less_than_equal": lambda details: f"{_MUST_BE}at most {_write_number(details['le'])}",
    "multiple_of": lambda details: f"{_MUST_BE}a multiple of {_write_number(details['multiple_of'])}",
    "string_too_short": lambda details: _at_least(details["min_length"], "characters"),
    "string_too_long": lambda details: f"this has more than {details['max_length']:,} characters",
    "too_short": lambda details: _at_least(details["min_length"], "entries"),
    "too_long": lambda details: f"this has more than {details['max_length']:,} entries",
    "string_pattern_mismatch": lambda details: _describe_form(str(details["pattern"])),
    "is_instance_of": lambda details: _KINDS.get(str(details["class"]), UNUSABLE),
    "json_invalid": lambda details: f"this is not JSON{_read_place(str(details['error']))}",
    "value_error": lambda details: str(details["error"]),  # a sentence of ours
    "assertion_error": lambda details: str(details["error"]),
}


def field_problems(error: ValidationError) -> list[tuple[str, str]]:
    """What is wrong with which field, each field once."""
    return list_problems(error.errors(include_url=False))


def list_problems(items: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The same of errors as pydantic lists them."""
    sentences: dict[str, list[str]] = {}
    for item in items:
        first, rest = item["loc"][:1], item["loc"][1:]
        place = ".".join(map(str, [*first, *(part for part in rest if not _TYPE_PARTS.fullmatch(str(part)))]))
        sentences.setdefault(place, []).append(describe_item(item))
    return [(place, _join(list(dict.fromkeys(words)))) for place, words in sentences.items()]


def describe_problems(error: ValidationError) -> str:
    """The first problems in one sentence."""
    return join_problems(field_problems(error))


def join_problems(problems: Sequence[tuple[str, str]]) -> str:
    """The first of these problems in one sentence."""
    parts = [f"{place}: {what}" if place else what for place, what in problems[:SHOWN]]
    return "; ".join(parts) + (" ..." if len(problems) > SHOWN else "")


def describe_item(item: Mapping[str, Any]) -> str:
    """The sentence for one of pydantic's errors, as its `errors()` lists them."""
    kind, details = item["type"], item.get("ctx") or {}
    if kind in _DETAILED:
        return _DETAILED[kind](details)
    return _SENTENCES.get(kind, UNUSABLE)


def drop_library_words(text: str) -> str:
    """A text of another program, such as a tool's error, without what its validator says of itself."""
    return _LIBRARY_WORDS.sub("", text).strip() if _LIBRARY_HOST in text else text


def describe_schema_error(error: jsonschema_rs.ValidationError) -> str:
    """Why a document is no JSON Schema."""
    place = ".".join(map(str, error.instance_path))
    where = f" (at {place[:200]})" if place else ""
    keyword = str(error.instance_path[-1]) if error.instance_path else ""
    message = error.message
    if keyword == "type":
        return f"there is no type {_quote(error.instance)}; use string, number, integer, boolean, array, object{where}"
    if "meta-schema" in message:
        return "its $schema is none that is known; leave it out or use https://json-schema.org/draft/2020-12/schema"
    if "Retrieval" in message or "Pointer" in message or "nchor" in message:
        return f"a $ref points nowhere within it{where}"
    if keyword == "pattern":
        return f"{_quote(error.instance)} is no regular expression{where}"
    return f"{_quote(error.instance)} cannot stand here{where}" if place else "it is no object with keywords"


def _quote(value: object) -> str:
    return repr(value)[:80]


def _join(sentences: Sequence[str]) -> str:
    """Several sentences about one value, which may be of several types."""
    plain = [sentence for sentence in sentences if sentence != UNUSABLE] or list(sentences)
    if all(sentence.startswith(_MUST_BE) for sentence in plain):
        return _MUST_BE + " or ".join(sentence.removeprefix(_MUST_BE) for sentence in plain)
    return plain[0]


def _at_least(count: int, what: str) -> str:
    return "this must not be empty" if count == 1 else f"this has fewer than {count:,} {what}"


def _describe_form(pattern: str) -> str:
    name = _NAME_PATTERN.fullmatch(pattern)
    if name is None:
        return "this has not the form that is needed here"
    return f"use small letters, digits, _ and -, starting with a letter; {int(name[1]) + 1} at most"


def _write_number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _read_place(message: str) -> str:
    match = _JSON_PLACE.search(message)
    return f" (line {match[1]}, character {match[2]})" if match else ""
