"""Secrets are references (`env:NAME`, `keyring:NAME`), resolved at the call and nowhere else.

Every value that was resolved is remembered in this process only, so that `redact` can take it out of
error messages before they reach a trace, a log or a page.
"""

from __future__ import annotations

import base64
import os
import re
from urllib.parse import quote

from pydantic import SecretStr

from pool_registry.errors import SecretNotFound

REFERENCE = re.compile(r"^(env|keyring):([A-Za-z_][A-Za-z0-9_.-]{0,127})$")
KEYRING_SERVICE = "podium"
_known: set[str] = set()


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
    _known.add(value)
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
    _known.add(value.strip())
    try:
        keyring.set_password(KEYRING_SERVICE, name, value.strip())
    except (KeyringError, OSError):
        raise SecretNotFound(
            f"no keyring answers on this machine; put the key in a variable: export {name}=..."
        ) from None
    return reference


def redact(text: str) -> str:
    """`text` with every secret resolved so far (also base64- or URL-encoded) replaced."""
    for secret in _known:
        for form in (secret, base64.b64encode(secret.encode()).decode(), quote(secret, safe="")):
            if form in text:
                text = text.replace(form, "[secret]")
    return text


def _from_keyring(name: str) -> str | None:
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(KEYRING_SERVICE, name)
    except KeyringError as error:
        raise SecretNotFound(f"no keyring answers on this machine ({error}); use env:{name}") from error
