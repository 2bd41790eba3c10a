"""Finds keys that are written out where a reference belongs: in URLs, headers, arguments, request fields and texts.

A key is known by where it stands (a field or a query parameter that is called like a secret) or by its shape (as its
provider documents it). The value is never repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import parse_qsl, urlsplit

from pool_registry.actions import JsonValue
from pool_registry.secrets import MIN_CHARS, SECRET_NAME, ends_in_reference

# Shapes of keys that are secrets wherever they stand (as the providers document them).
SHAPES: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "a Hugging Face token": r"\bhf_[A-Za-z0-9]{30,}\b",
        "an OpenAI or Anthropic key": r"\bsk-(?:proj-|ant-|or-|svcacct-)?[A-Za-z0-9_-]{32,}\b",
        "an AWS access key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})\b",
        "a Google API key": r"\bAIza[A-Za-z0-9_-]{35}\b",
        "a Slack token": r"\bxox[abprs]-[A-Za-z0-9-]{20,}\b",
        "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
        "a password in a URL": r"\b[a-z][a-z0-9+.-]{2,20}://[^\s/:@\"'<>{}]{1,64}:[^\s/:@\"'<>{}]{4,200}@[A-Za-z0-9.-]+",
    }.items()
}
# Shorter than a provider's: nothing but a key begins so in a setting.
PREFIX = re.compile(r"^(?:Bearer\s+)?(?:sk-|hf_|gh[pousr]_|github_pat_|xox[abprs]-|AIza|AKIA|glpat-)[\w-]{6,}$")
# Names that hold "key" or "token" and are no secrets: limits, and what a model or a schema calls its fields.
HARMLESS_NAME = re.compile(r"max_|min_|_limit$|tokens$|keyword|keys$|token_limit|_type$", re.IGNORECASE)
# Parts whose names are those of a call's arguments; `names` says what a renamed one is called, `spellings` which words
# stand for a value ("key holder").
OF_ARGUMENTS = {"parameters", "properties", "sample", "example", "names", "spellings"}
PLACEHOLDER = re.compile(r"\{\w+\}")


def find_literal_keys(value: JsonValue, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field, what is wrong) for every key in a configuration that is written out."""
    if isinstance(value, Mapping):
        names_arguments = not OF_ARGUMENTS.isdisjoint(where.split("."))
        for name, item in value.items():
            inner = f"{where}.{name}" if where else str(name)
            if isinstance(item, str) and not names_arguments and _is_secret_setting(str(name), item):
                yield inner, f"{name} looks like a secret"
            else:
                yield from find_literal_keys(item, inner)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from find_literal_keys(item, f"{where}.{index}")
    elif isinstance(value, str) and (what := _find_in_text(value)):
        yield where, what


def move_literal_keys(value: JsonValue, name: str, keep: Callable[[str, str], str]) -> JsonValue:
    """A copy of a configuration with a reference in place of every setting that is a key and nothing else.

    `keep(name, key)` stores a key under a name that begins with `name`, and returns its reference. Keys within longer
    texts, such as URLs, stay.
    """
    if isinstance(value, Mapping):
        return {
            field: _move_setting(str(field), item, f"{name}_{field}", keep)
            if isinstance(item, str)
            else move_literal_keys(item, f"{name}_{field}", keep)
            for field, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [move_literal_keys(item, f"{name}_{index}", keep) for index, item in enumerate(value)]
    return value


def _move_setting(field: str, value: str, name: str, keep: Callable[[str, str], str]) -> str:
    if "://" in value or not (_is_secret_setting(field, value) or PREFIX.match(value.strip())):
        return value
    scheme, space, key = value.strip().rpartition(" ")
    return f"{scheme}{space}{keep(re.sub(r'[^A-Z0-9]+', '_', name.upper()).strip('_'), key)}"


def _find_in_text(text: str) -> str:
    for name, shape in SHAPES.items():
        if shape.search(text):
            return f"this holds {name}"
    if PREFIX.match(text.strip()):
        return "this looks like a key"
    if "://" in text and (name := _find_in_query(text)):
        return f"the URL's {name} looks like a secret"
    match = re.match(r"--?([\w-]+)=(.+)$", text)  # an argument of a program
    return f"the argument --{match[1]} looks like a secret" if match and _is_secret_setting(match[1], match[2]) else ""


def _find_in_query(text: str) -> str:
    """The name of a query parameter of a URL that holds a key, or ""."""
    for word in text.split():
        try:
            pairs = parse_qsl(urlsplit(word).query) if "://" in word else []
        except ValueError:
            continue
        for name, value in pairs:
            if _is_secret_setting(name, value):
                return name
    return ""


def _is_secret_setting(name: str, value: str) -> bool:
    """Whether a setting of this name holds a key and no reference, placeholder or word such as `none`."""
    if not SECRET_NAME.search(name) or HARMLESS_NAME.search(name) or len(value.strip()) < MIN_CHARS:
        return False
    if ends_in_reference(value) or PLACEHOLDER.search(value) or value.startswith(("env:", "keyring:")):
        return False
    return " " not in value.strip() or value.split()[0].lower() in ("bearer", "basic", "token")
