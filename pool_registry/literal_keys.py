"""Finds keys that are written out where a reference belongs: in URLs, headers, arguments, request fields and texts.

A key is known by where it stands (a field or a query parameter that is called like a secret, a header), by its shape
(as its provider documents it), or because it is drawn at random. The value is never repeated.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from urllib.parse import parse_qsl, urlsplit

from pool_registry.actions import JsonValue
from pool_registry.secrets import MIN_CHARS, SECRET_NAME, UNSEEN, ends_in_reference

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
        "a Telegram token": r"(?:\b|\bbot)\d{8,10}:[A-Za-z0-9_-]{35}\b",
        "a Discord token": r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}\b",
        "an Azure key": r"(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{20,}={0,2}",
        "a key by its first letters": r"\b(?:pplx-|nvapi-|fw_|tvly-|csk-|dop_v1_|shpat_|lin_api_|ntn_|"
        r"dapi(?=[0-9a-f]{32})|key-(?=[0-9a-f]{32}\b)|dckr_pat_|hvs\.|glsa_|pypi-AgE|ya29\.|ATATT3|sq0atp-|AGE-SECRET-KEY-1)"
        r"(?=[A-Za-z_-]{0,99}[0-9])[A-Za-z0-9]{20,}",
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
# A server of models takes its key in a header, so that its path may name an account; a description is called by nobody.
KEYLESS_PATHS = {"base_url", "description"}
IN_PATH = (
    "holds what looks like a key in a URL's path; send it as a header or a query field (an id that is no key: as a "
    "placeholder such as {account}, with its value under defaults)"
)
# Query parameters that hold a key where their value is drawn at random: `code` and `sig` may also be plain words.
RANDOM_PARAMETER = re.compile(r"^(?:sig|signature|code|app_?id|auth|pwd|sas)$", re.IGNORECASE)
# What people call a password, and the verbs between it and its value: one row for one more language.
PASSWORD_WORDS = {
    "en": ("passwords?|passphrase|passcode|pwd?", "is|are"),
    "de": ("passwort|kennwort", "ist|lautet"),
    "fr": ("mot de passe", "est"),
    "es": ("contrase\u00f1a", "es"),
}
SPELLED = re.compile(
    r"(?:\b|_)(?:"
    + "|".join(nouns for nouns, _ in PASSWORD_WORDS.values())
    + r"|authorization|(?:api|access|auth|secret|signing|private|account|client)[ _-]?(?:access[ _-]?)?"
    r"(?:key|token|secret)|secret)\b[\s\"'`]{0,8}(?:"
    + "|".join(verbs for _, verbs in PASSWORD_WORDS.values())
    + r"|=|:)[\s\"'`]{0,8}(?:(?:bearer|basic|token)\s{1,4})?(?!env:|keyring:|\{)(?P<value>[^\s\"'`]{8,200})",
    re.IGNORECASE,
)
# In a value that is spelled out. "hunter2go", "Fr0sch" and "letmein99" match, "OAuth2.0" and "base64-encoded" do not.
CHOSEN = re.compile(
    r"(?=[a-z0-9]{6})[a-z0-9]*[a-z][0-9]+[a-z]|(?=[a-z0-9]{8})(?:[a-z]+[0-9]|[0-9]+[a-z])", re.IGNORECASE
)
URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>\\]+", re.IGNORECASE)
# What may stand before a key in a URL's path, a word of the host included. A part that follows a noun (pages/ID,
# commit/HASH) or the host of a site is the id of such a thing; one that follows one of these is the id of nothing.
BEFORE_KEY = re.compile(
    r"^(?:v\d{1,2}(?:\.\d+)?|apis?|rest|json|(?:api)?keys?|tokens?|auth|secrets?|hooks?|webhooks?|bot)$", re.IGNORECASE
)
# A word drawn at random, and the least number of characters of a piece of it that mixes letters and digits:
# "max-tokens-3-5-sonnet-2024-07-15" has none, nor has a date or a UUID.
RANDOM = re.compile(r"[A-Za-z0-9+/_=-]{24,512}")
RANDOM_PIECE = re.compile(r"[A-Za-z0-9]{14,}")
RANDOM_BITS = 2.8  # a character, by Shannon: 32 random hex digits have 3.3 to 3.9, "aaaaaaaaaaaaaa1" has less than 1


def find_literal_keys(value: JsonValue, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field, what is wrong) for every key in a configuration that is written out."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            inner = f"{where}.{name}" if where else str(name)
            if not isinstance(item, str):
                yield from find_literal_keys(item, inner)
            elif what := _find_in_setting(where, str(name), item):
                yield inner, f"{name} {what}"
            elif what := find_in_text(item, spells_out=name != "description"):
                yield inner, what
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from find_literal_keys(item, f"{where}.{index}")
    elif isinstance(value, str) and (what := find_in_text(value)):
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


def _find_in_setting(where: str, name: str, value: str) -> str:
    """What makes a setting a key, by its name and place; "" for nothing."""
    names_arguments = not OF_ARGUMENTS.isdisjoint(where.split("."))
    if not names_arguments and _is_secret_setting(name, value):
        return "looks like a secret"
    if _holds_random(where, name, value):
        return "holds what looks like a key"
    return IN_PATH if not names_arguments and name not in KEYLESS_PATHS and holds_key_in_path(value) else ""


def _holds_random(where: str, name: str, value: str) -> bool:
    """Whether a setting that goes out with each call, a header or a query parameter, holds a word drawn at random."""
    place = where.rpartition(".")[2]
    if ends_in_reference(value) or not value.strip():
        return False
    return is_random(value.split()[-1]) and (place == "headers" or (place == "query" and _is_key_parameter(name)))


def _is_key_parameter(name: str) -> bool:
    return bool(RANDOM_PARAMETER.match(name) or SECRET_NAME.search(name))


def find_in_text(text: str, *, spells_out: bool = True) -> str:
    """What a text holds that is a key, by its shape, its place in a URL's query or, in one that `spells_out` what is
    used, by a word before it; "" for nothing."""
    text = UNSEEN.sub("", text)
    for name, shape in SHAPES.items():
        if shape.search(text):
            return f"this holds {name}"
    if PREFIX.match(text.strip()):
        return "this holds what looks like a key"
    if spells_out and any(CHOSEN.search(match["value"]) for match in SPELLED.finditer(text)):
        return "this holds a password or a key that is spelled out"
    if "://" in text and (name := _find_in_query(text)):
        return f"this holds a URL whose {name} looks like a secret"
    match = re.match(r"--?([\w-]+)=(.+)$", text)  # an argument of a program
    return (
        f"this holds an argument --{match[1]} that looks like a secret"
        if match and _is_secret_setting(match[1], match[2])
        else ""
    )


def _find_in_query(text: str) -> str:
    """The name of a query parameter of a URL that holds a key, or ""."""
    for word in URL.findall(text):
        try:
            pairs: list[tuple[str, str]] = parse_qsl(urlsplit(word).query)
        except ValueError:
            continue
        for name, value in pairs:
            if _is_secret_setting(name, value) or (RANDOM_PARAMETER.match(name) and is_random(value)):
                return name
    return ""


def holds_key_in_path(text: str) -> bool:
    """Whether a part of a URL's path is drawn at random and is no id of what is named before it."""
    for word in URL.findall(UNSEEN.sub("", text)):
        host, *parts = re.split(r"[?#]", word.partition("://")[2], maxsplit=1)[0].split("/")
        words = [*filter(BEFORE_KEY.match, re.split(r"[.:@-]", host)), *parts]
        if any(BEFORE_KEY.match(before) and is_random(part) for before, part in pairwise(words)):
            return True
    return False


def _is_secret_setting(name: str, value: str) -> bool:
    """Whether a setting of this name holds a key and no reference, placeholder or word such as `none`."""
    if not SECRET_NAME.search(name) or HARMLESS_NAME.search(name) or len(value.strip()) < MIN_CHARS:
        return False
    if ends_in_reference(value) or PLACEHOLDER.search(value) or value.startswith(("env:", "keyring:")):
        return False
    return " " not in value.strip() or value.split()[0].lower() in ("bearer", "basic", "token")
