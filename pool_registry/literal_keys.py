"""Finds keys that are written out where a reference belongs: in URLs, headers, arguments, request fields and texts.

A key is known by where it stands (a field or a query parameter that is called like a secret, a header), by its shape
(as its provider documents it), or because it is drawn at random. The value is never repeated.
"""

from __future__ import annotations

import math
import re
from collections import Counter
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
        "an xAI key": r"\bxai-[A-Za-z0-9]{40,}\b",
        "a Groq key": r"\bgsk_[A-Za-z0-9]{40,}\b",
        "a GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}\b",
        "a Stripe key": r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}\b",
        "a SendGrid key": r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}\b",
        "an npm token": r"\bnpm_[A-Za-z0-9]{36,}\b",
        "a Replicate token": r"\br8_[A-Za-z0-9]{30,}\b",
        "a Telegram token": r"\b\d{8,10}:[A-Za-z0-9_-]{35}\b",
        "an Azure key": r"(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{20,}={0,2}",
        "a signed token (JWT)": r"\beyJ[A-Za-z0-9_-]{8,400}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        "a Slack webhook": r"\bhooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{16,}",
        "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
        "a password in a URL": r"\b[a-z][a-z0-9+.-]{2,20}://[^\s/:@\"'<>{}]{1,64}:[^\s/:@\"'<>{}]{4,200}@[A-Za-z0-9.-]+",
    }.items()
}
# Shorter than a provider's: nothing but a key begins so in a setting.
PREFIX = re.compile(
    r"^(?:Bearer\s+)?(?:sk-|hf_|gh[pousr]_|github_pat_|xox[abprs]-|AIza|AKIA|glpat-|xai-|gsk_)[\w-]{6,}$"
)
# Names that hold "key" or "token" and are no secrets: limits, and what a model or a schema calls its fields.
HARMLESS_NAME = re.compile(r"max_|min_|_limit$|tokens$|keyword|keys$|token_limit|_type$", re.IGNORECASE)
# Parts whose names are those of a call's arguments; `names` says what a renamed one is called, `spellings` which words
# stand for a value ("key holder").
OF_ARGUMENTS = {"parameters", "properties", "sample", "example", "names", "spellings"}
PLACEHOLDER = re.compile(r"\{\w+\}")
# Query parameters that hold a key where their value is drawn at random: `code` and `sig` may also be plain words.
RANDOM_PARAMETER = re.compile(r"^(?:sig|signature|code|app_?id|auth|pwd|sas)$", re.IGNORECASE)
# Characters that are not seen: within a key they would hide its shape.
UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
# A secret that a text spells out. The value has a digit: "the password is case-sensitive" holds none.
SPELLED = re.compile(
    r"\b(?:passwords?|passphrase|passcode|api[ _-]?key|access[ _-]?token|secret)\b"
    r"[\s\"'`]{0,8}(?:is|are|=|:)[\s\"'`]{0,8}"
    r"(?!env:|keyring:|\{)(?=[^\s\"'`]{0,199}[0-9])(?=[^\s\"'`]{0,199}[A-Za-z])[^\s\"'`]{8,200}",
    re.IGNORECASE,
)
# A word drawn at random, and the least number of characters of a piece of it that mixes letters and digits:
# "max-tokens-3-5-sonnet-2024-07-15" has none, nor has a date or a UUID.
RANDOM = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
RANDOM_PIECE = re.compile(r"[A-Za-z0-9]{14,}")
RANDOM_BITS = 2.8  # a character, by Shannon: 32 random hex digits have 3.3 to 3.9, "aaaaaaaaaaaaaa1" has less than 1


def find_literal_keys(value: JsonValue, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field, what is wrong) for every key in a configuration that is written out."""
    if isinstance(value, Mapping):
        names_arguments = not OF_ARGUMENTS.isdisjoint(where.split("."))
        for name, item in value.items():
            inner = f"{where}.{name}" if where else str(name)
            if isinstance(item, str) and not names_arguments and _is_secret_setting(str(name), item):
                yield inner, f"{name} looks like a secret"
            elif isinstance(item, str) and _holds_random(where, str(name), item):
                yield inner, f"{name} holds what looks like a key"
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


def is_random(text: str) -> bool:
    """Whether a word is drawn at random as keys are: 24 characters or more, with a piece that mixes letters and digits
    and repeats itself little."""
    return bool(RANDOM.fullmatch(text)) and any(map(_is_mixed, RANDOM_PIECE.findall(text)))


def _is_mixed(piece: str) -> bool:
    if piece.isalpha() or piece.isdigit():
        return False
    shares = [count / len(piece) for count in Counter(piece).values()]
    return -sum(share * math.log2(share) for share in shares) >= RANDOM_BITS


def _holds_random(where: str, name: str, value: str) -> bool:
    """Whether a setting that goes out with each call, a header or a query parameter, holds a word drawn at random."""
    place = where.rpartition(".")[2]
    if ends_in_reference(value) or not value.strip():
        return False
    return is_random(value.split()[-1]) and (place == "headers" or (place == "query" and _is_key_parameter(name)))


def _is_key_parameter(name: str) -> bool:
    return bool(RANDOM_PARAMETER.match(name) or SECRET_NAME.search(name))


def _find_in_text(text: str) -> str:
    text = UNSEEN.sub("", text)
    for name, shape in SHAPES.items():
        if shape.search(text):
            return f"this holds {name}"
    if PREFIX.match(text.strip()):
        return "this looks like a key"
    if SPELLED.search(text):
        return "this spells out a password or a key"
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
            if _is_secret_setting(name, value) or (RANDOM_PARAMETER.match(name) and is_random(value)):
                return name
    return ""


def _is_secret_setting(name: str, value: str) -> bool:
    """Whether a setting of this name holds a key and no reference, placeholder or word such as `none`."""
    if not SECRET_NAME.search(name) or HARMLESS_NAME.search(name) or len(value.strip()) < MIN_CHARS:
        return False
    if ends_in_reference(value) or PLACEHOLDER.search(value) or value.startswith(("env:", "keyring:")):
        return False
    return " " not in value.strip() or value.split()[0].lower() in ("bearer", "basic", "token")
