"""Secrets are references (`env:NAME`, `keyring:NAME`), resolved at the call and nowhere else.

Every value that was resolved is remembered in this process only, so that `redact` can take it out of
errors, outputs and prompts before they reach a trace, a log or a page.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import quote, quote_plus

from pydantic import SecretStr

from pool_registry.actions import JsonValue
from pool_registry.errors import SecretNotFound, WorkerFault

REFERENCE = re.compile(r"^(env|keyring):([A-Za-z_][A-Za-z0-9_.-]{0,127})$")
# A setting called so wants a reference and not the key itself.
SECRET_NAME = re.compile(r"key|token|secret|passw|credential|authorization|cookie", re.IGNORECASE)
KEYRING_SERVICE = "podium"
REDACTED = "[secret]"
WRITE_REFERENCE = (
    f"write env:NAME (export NAME=...) or keyring:NAME (keyring set {KEYRING_SERVICE} NAME); "
    "the key itself is never stored"
)
MIN_CHARS = 8  # a shorter one ("ollama", "none") is a word, and words are not taken out of texts
# Characters that are not seen: within a key they would hide its shape, and the key itself from `redact`.
UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_URL_SAFE = str.maketrans("+/", "-_")
_in_use: set[str] = set()
_pattern: re.Pattern[str] | None = None
_lent: ContextVar[Mapping[str, str] | None] = ContextVar("lent", default=None)
_lenders: Counter[str] = Counter()  # how many contexts lend a value that is redacted only because of them


def write_store_command(name: str) -> str:
    """The command of a terminal that asks for a key and stores it in the system's keyring, for `keyring:NAME`."""
    return f"keyring set {KEYRING_SERVICE} {name}"


def check_reference(reference: str) -> str:
    """Return `reference`. Raises ValueError saying how a reference looks."""
    if not REFERENCE.match(reference):
        raise ValueError(WRITE_REFERENCE)
    return reference


def resolve(reference: str) -> SecretStr:
    """Return the secret behind a reference. Raises SecretNotFound saying how to set it."""
    match = REFERENCE.match(reference)
    if match is None:
        raise SecretNotFound("a secret must be given as env:NAME or keyring:NAME")
    source, name = match.groups()
    value = _from_environment(name) if source == "env" else _from_keyring(name)
    if not value or value.isspace():
        hint = f"export {name}=..." if source == "env" else write_store_command(name)
        raise SecretNotFound(f"{reference} is not set on this machine; set it with: {hint}")
    value = value.strip()  # a file's last newline would break the header
    if not value.isprintable():
        raise SecretNotFound(f"{reference} holds line breaks or control characters; set it to the key alone")
    _remember(value)
    return SecretStr(value)


def ends_in_reference(value: str) -> bool:
    """Whether a value is a reference, or a word and a reference: `Bearer env:NAME`."""
    return bool(REFERENCE.match(_last_word(value)))


def list_references(value: JsonValue) -> list[str]:
    """Every reference in a JSON value, each once, in order."""
    if isinstance(value, str):
        return [_last_word(value)] if ends_in_reference(value) else []
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return list(dict.fromkeys(reference for item in items for reference in list_references(item)))


def list_unset(value: JsonValue) -> list[SecretNotFound]:
    """Why references in a JSON value cannot be resolved on this machine, one error each."""
    problems = []
    for reference in list_references(value):
        try:
            resolve(reference)
        except SecretNotFound as error:
            problems.append(error)
    return problems


def resolve_references(values: Mapping[str, str]) -> dict[str, str]:
    """Replace every reference at the end of a value. Raises WorkerFault `auth` when one is not set here."""
    try:
        return {name: _resolve_value(value) for name, value in values.items()}
    except SecretNotFound as error:
        raise WorkerFault("auth", str(error)) from error


def _resolve_value(value: str) -> str:
    if not ends_in_reference(value):
        return value
    reference = _last_word(value)
    return value.removesuffix(reference) + resolve(reference).get_secret_value()


def _last_word(value: str) -> str:
    return value.rpartition(" ")[2]


def keep(name: str, value: str, *, is_new: bool = False) -> str:
    """Put a secret into the system's keyring under `name` and return its reference. Errors do not repeat the secret.

    Raises SecretNotFound when this is no name, the value is empty, or no keyring answers, and with `is_new` where
    another secret has the name: nothing could bring that back.
    """
    import keyring
    from keyring.errors import KeyringError

    reference = f"keyring:{name}"
    if not REFERENCE.match(reference):
        raise SecretNotFound("a name has letters, digits and _ only, such as OPENAI_API_KEY")
    if not value.strip() or not value.strip().isprintable():
        raise SecretNotFound("this key is empty or has line breaks in it")
    _remember(value.strip())
    try:
        if is_new and keyring.get_password(KEYRING_SERVICE, name) not in (None, value.strip()):
            raise SecretNotFound(
                f"the keyring holds another key under {name}, which stays: choose another name for the pool or the "
                f"worker, or remove that key first: python -m keyring del {KEYRING_SERVICE} {name}"
            )
        keyring.set_password(KEYRING_SERVICE, name, value.strip())
    except (KeyringError, OSError):
        raise SecretNotFound(
            f"no keyring answers on this machine; put the key in a variable: export {name}=..."
        ) from None
    return reference


@contextmanager
def lending(values: Mapping[str, str]) -> Iterator[None]:
    """Let `env:NAME` resolve to `values[NAME]` here and in the tasks that start here, and nowhere else.

    For a server whose visitors bring their own keys: each run sees the keys of its own visitor. They are
    redacted as long as one such run lasts and forgotten with the last.
    """
    kept = {name: value.strip() for name, value in values.items() if value.strip()}
    fresh = [value for value in kept.values() if value not in _in_use or _lenders[value]]
    _lenders.update(fresh)
    for value in fresh:
        _remember(value)
    token = _lent.set(kept)
    try:
        yield
    finally:
        _lent.reset(token)
        _lenders.subtract(fresh)
        _forget({value for value in fresh if not _lenders[value]})


def redact(text: str) -> str:
    """Replace every secret resolved so far in `text`, also where it is base64-, URL-, hex- or JSON-encoded."""
    if _pattern is None:
        return text
    text = _pattern.sub(REDACTED, text)
    if UNSEEN.search(text) and _pattern.search(seen := UNSEEN.sub("", text)):
        return _pattern.sub(REDACTED, seen)
    return text


def redact_value(value: JsonValue) -> JsonValue:
    """Redact every string in a JSON value: a worker may echo the key it was called with."""
    if _pattern is None:
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redact_value(item) for item in value]
    if isinstance(value, dict):
        return {redact(key): redact_value(item) for key, item in value.items()}
    return value


def secret_encodings(secret: str) -> frozenset[bytes]:
    """Return the bytes that reveal a secret: itself and its usual encodings of at least MIN_CHARS."""
    forms = (form.encode(errors="replace") for form in _forms(secret))
    return frozenset(form for form in forms if len(form) >= MIN_CHARS)


def _remember(value: str) -> None:
    """Redact `value` from now on, in this process."""
    if len(value) < MIN_CHARS or value in _in_use:
        return
    _in_use.add(value)
    _compile()


def _forget(values: set[str]) -> None:
    """Stop redacting values that no context lends any more."""
    if values & _in_use:
        _in_use.difference_update(values)
        _compile()
    for value in values:
        del _lenders[value]


def _compile() -> None:
    global _pattern
    forms = sorted({form for secret in _in_use for form in _forms(secret)}, key=len, reverse=True)
    _pattern = re.compile("|".join(map(re.escape, forms))) if forms else None


def _from_environment(name: str) -> str | None:
    return (_lent.get() or {}).get(name) or os.environ.get(name)


def _forms(secret: str) -> Iterator[str]:
    """Yield the secret as it is, and in the encodings that headers, URLs and bodies use."""
    raw = secret.encode()
    yield from (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], raw.hex())
    yield from (
        raw.hex().upper(),
        base64.b64encode(raw).decode(),
        quote(secret, safe=""),
        quote_plus(secret),
        quote(secret),
    )
    yield re.sub("%..", lambda code: code.group().lower(), quote(secret, safe=""))
    for before in range(3):  # base64 looks different at each place within three bytes ("user:KEY", "Bearer KEY")
        coded = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        inner = coded[(8 * before + 5) // 6 : (8 * (before + len(raw))) // 6]  # without what neighbours share
        yield from (inner, inner.translate(_URL_SAFE))


def _from_keyring(name: str) -> str | None:
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(KEYRING_SERVICE, name)
    except KeyringError as error:
        raise SecretNotFound(f"no keyring answers on this machine ({error}); use env:{name}") from error
