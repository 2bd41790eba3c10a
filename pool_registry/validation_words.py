"""What is wrong with a value, in words of our own: the one place where a validator's findings become sentences.

Pydantic's errors become pairs of field and sentence, those about a JSON Schema one sentence each. No text or address of
a library gets past here: a kind of error that has no sentence yet gets a plain one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pool_registry.text import one_line, shorten

if TYPE_CHECKING:
    import jsonschema_rs
    from pydantic import ValidationError

MISSING = "this is missing"
UNUSABLE = "this value cannot be used here"
SHOWN = 3  # problems in one sentence
MAX_LISTED = 8  # values that a rule allows, or names that stand where none may
MAX_QUOTED = 80  # characters of a value, a name or a pattern
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
_TYPE_WORDS: Mapping[str, str] = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object: names with values",
    "null": "null",
}  # in the order in which they are named
# How a value breaks a rule of a JSON Schema, by the name of the kind of error.
VIOLATIONS: Mapping[str, Callable[[Any], str]] = {
    "Type": lambda kind: _MUST_BE + " or ".join(words for name, words in _TYPE_WORDS.items() if name in kind.types),
    "Enum": lambda kind: f"use one of {_quote_list(kind.options)}",
    "Constant": lambda kind: f"{_MUST_BE}{_quote_value(kind.expected_value)}",
    "Required": lambda kind: MISSING,  # noqa: ARG005
    "AdditionalProperties": lambda kind: f"leave out what is not known here: {_quote_list(kind.unexpected)}",
    "UnevaluatedProperties": lambda kind: f"leave out what is not known here: {_quote_list(kind.unexpected)}",
    "Minimum": lambda kind: f"{_MUST_BE}at least {_write_number(kind.limit)}",
    "ExclusiveMinimum": lambda kind: f"{_MUST_BE}above {_write_number(kind.limit)}",
    "Maximum": lambda kind: f"{_MUST_BE}at most {_write_number(kind.limit)}",
    "ExclusiveMaximum": lambda kind: f"{_MUST_BE}below {_write_number(kind.limit)}",
    "MultipleOf": lambda kind: f"{_MUST_BE}a multiple of {_write_number(kind.multiple_of)}",
    "MinLength": lambda kind: _at_least(kind.limit, "characters"),
    "MaxLength": lambda kind: f"this has more than {kind.limit:,} characters",
    "MinItems": lambda kind: _at_least(kind.limit, "entries"),
    "MaxItems": lambda kind: f"this has more than {kind.limit:,} entries",
    "AdditionalItems": lambda kind: f"this has more than {kind.limit:,} entries",
    "UnevaluatedItems": lambda kind: f"leave out the last entries: {_quote_list(kind.unexpected)}",
    "MinProperties": lambda kind: _at_least(kind.limit, "fields"),
    "MaxProperties": lambda kind: f"this has more than {kind.limit:,} fields",
    "Pattern": lambda kind: f"{_MUST_BE}of the form {shorten(kind.pattern, MAX_QUOTED)} (a regular expression)",
    "UniqueItems": lambda kind: "no entry may stand in this list twice",  # noqa: ARG005
    "Contains": lambda kind: "this list has not the entries that are needed here",  # noqa: ARG005
    "PropertyNames": lambda kind: "one of its names cannot be used here",  # noqa: ARG005
    "FalseSchema": lambda kind: "nothing can stand here; leave it out",  # noqa: ARG005
    "Not": lambda kind: "this is what may not stand here; use another value",  # noqa: ARG005
    "AnyOf": lambda kind: _describe_branches(kind.context),
    "OneOfNotValid": lambda kind: _describe_branches(kind.context),
    "OneOfMultipleValid": lambda kind: "this has several of the allowed forms at once; it must have one of them",  # noqa: ARG005
    "BacktrackLimitExceeded": lambda kind: "this takes too long to compare with its form; make it shorter",  # noqa: ARG005
    "RegexEngineFailure": lambda kind: "this takes too long to compare with its form; make it shorter",  # noqa: ARG005
}
_QUOTING = ("Type", "Enum", "Constant")  # what stands there helps to see what is wrong
_BRANCHING = ("AnyOf", "OneOfNotValid")
NO_FORM = "this has none of the forms that are allowed here"


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


def describe_violation(error: jsonschema_rs.ValidationError, whole: str, quotes: bool = True) -> str:
    """How a value breaks a rule of its JSON Schema, after the place of it; `whole` is what the value itself is called.
    `quotes`: whether the value is short enough to be repeated."""
    kind = type(error.kind).__name__
    value = f", not {_quote_value(error.instance)}" if quotes and kind in _QUOTING else ""
    return f"{_get_place(error) or whole}: {_describe_kind(error)}{value}"


def _get_place(error: jsonschema_rs.ValidationError) -> str:
    missing = getattr(error.kind, "property", None)  # of an object that lacks it
    return shorten(".".join(map(str, [*error.instance_path, *([missing] if missing else [])])), MAX_QUOTED)


def _describe_kind(error: jsonschema_rs.ValidationError) -> str:
    describe = VIOLATIONS.get(type(error.kind).__name__)
    return describe(error.kind) if describe else UNUSABLE


def _describe_branches(branches: Sequence[Sequence[jsonschema_rs.ValidationError]]) -> str:
    """What each of the allowed forms asks for, where that is short; forms within forms are not followed."""
    firsts = [branch[0] for branch in branches if branch]
    if not firsts or len(firsts) > SHOWN or any(type(error.kind).__name__ in _BRANCHING for error in firsts):
        return NO_FORM
    if all(type(error.kind).__name__ == "Type" for error in firsts) and len({_get_place(e) for e in firsts}) == 1:
        return _join(list(dict.fromkeys(map(_describe_kind, firsts))))
    return f"{NO_FORM}: {', or '.join(dict.fromkeys(describe_violation(e, 'it', quotes=False) for e in firsts))}"


def _quote_list(values: Sequence[object]) -> str:
    shown = ", ".join(map(_quote_value, values[:MAX_LISTED]))
    return f"{shown} and {len(values) - MAX_LISTED:,} more" if len(values) > MAX_LISTED else shown


def _quote_value(value: object) -> str:
    return shorten(one_line(json.dumps(value, ensure_ascii=False, default=str)), MAX_QUOTED)


def _quote(value: object) -> str:
    return repr(value)[:MAX_QUOTED]


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
