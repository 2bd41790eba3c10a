"""Secrets are references (`env:NAME`, `keyring:NAME`), resolved at the call and nowhere else.

Every value that was resolved is remembered in this process only, so that `redact` can take it out of
errors, outputs and prompts before they reach a trace, a log or a page.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from pydantic import SecretStr

from pool_registry.actions import JsonValue
from pool_registry.errors import SecretNotFound

REFERENCE = re.compile(r"^(env|keyring):([A-Za-z_][A-Za-z0-9_.-]{0,127})$")
KEYRING_SERVICE = "podium"
REDACTED = "[secret]"
MIN_CHARS = 8  # a shorter one ("ollama", "none") is a word, and words are not taken out of texts
_URL_SAFE = str.maketrans("+/", "-_")
_known: set[str] = set()
_pattern: re.Pattern[str] | None = None


def check_reference(reference: str) -> str:
    """`reference` itself, or ValueError saying how a reference looks."""
    if not REFERENCE.match(reference):
        raise ValueError("write env:NAME or keyring:NAME; the key itself is never stored")
    return reference


def resolve(reference: str) -> SecretStr:
    """The secret behind a reference. Raises SecretNotFound saying how to set it."""
    match = REFERENCE.match(reference)
    if match is None:
        raise SecretNotFound("a secret must be given as env:NAME or keyring:NAME")
    source, name = match.groups()
    value = os.environ.get(name) if source == "env" else _from_keyring(name)
    if not value or value.isspace():
        hint = f"export {name}=..." if source == "env" else f"keyring set {KEYRING_SERVICE} {name}"
        raise SecretNotFound(f"{reference} is not set on this machine; set it with: {hint}")
    value = value.strip()  # a file's last newline would break the header
    if not value.isprintable():
        raise SecretNotFound(f"{reference} holds line breaks or control characters; set it to the key alone")
    _remember(value)
    return SecretStr(value)


def keep(name: str, value: str) -> str:
    """Put a secret into the system's keyring under `name`; its reference. Neither is repeated in an error.

    Raises SecretNotFound when this is no name, the value is empty, or no keyring answers.
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
        keyring.set_password(KEYRING_SERVICE, name, value.strip())
    except (KeyringError, OSError):
        raise SecretNotFound(
            f"no keyring answers on this machine; put the key in a variable: export {name}=..."
        ) from None
    return reference


def redact(text: str) -> str:
    """`text` with every secret resolved so far replaced, also where it stands base64-, URL-, hex- or JSON-encoded."""
    return text if _pattern is None else _pattern.sub(REDACTED, text)


def redact_value(value: JsonValue) -> JsonValue:
    """`redact` for every string in a JSON value: a worker may echo the key it was called with."""
    if _pattern is None:
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redact_value(item) for item in value]
    if isinstance(value, dict):
        return {redact(key): redact_value(item) for key, item in value.items()}
    return value


def _remember(value: str) -> None:
    """Redact `value` from now on, in this process."""
    global _pattern
    if len(value) < MIN_CHARS or value in _known:
        return
    _known.add(value)
    forms = sorted({form for secret in _known for form in _forms(secret)}, key=len, reverse=True)
    _pattern = re.compile("|".join(map(re.escape, forms)))


def _forms(secret: str) -> Iterator[str]:
    """The secret as it may be written: as it is, and encoded in the ways that headers, URLs and bodies use."""
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
