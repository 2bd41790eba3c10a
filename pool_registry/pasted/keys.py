"""Keys in what is pasted become references; the keys themselves are not kept, or go into the system's keyring."""

from __future__ import annotations

import re
from collections.abc import Callable

from pool_registry.literal_keys import find_literal_keys
from pool_registry.secrets import SECRET_NAME, ends_in_reference

SCHEMES = ("bearer", "basic", "token", "bot", "apikey")
# ${NAME}, ${env:NAME}, ${input:name}, ${NAME:-default}, $NAME, %NAME% and {{NAME}}, as clients and shells write them
VARIABLE = re.compile(
    r"\$\{(?:env:|input:)?([A-Za-z_][\w.-]{0,99})(?::-[^}]*)?\}|\$([A-Za-z_]\w{0,99})\b"
    r"|%([A-Za-z_]\w{0,99})%|\{\{\s*([A-Za-z_]\w{0,99})\s*\}\}"
)


class KeyReferences:
    """Puts a reference in place of each key. `keep(name, key)` stores a key and returns its reference; without it the
    key is forgotten, and `notes` say which variable to set."""

    def __init__(self, keep: Callable[[str, str], str] | None = None) -> None:
        self._keep = keep
        self._keys: dict[str, str] = {}  # by the name of its variable
        self.notes: list[str] = []

    @property
    def count(self) -> int:
        return len(self._keys)

    def refer(self, name: str, key: str, hint: str = "") -> str:
        """The reference to a key under a name that no other key has; `hint` says what to set where that is not the
        key as it was pasted."""
        stem = variable_name(name)
        variable, number = stem, 1
        while self._keys.get(variable, key) != key:
            number += 1
            variable = f"{stem}_{number}"
        if variable in self._keys:
            return f"env:{variable}" if self._keep is None else f"keyring:{variable}"
        self._keys[variable] = key
        if self._keep is not None:
            reference = self._keep(variable, key)
            self.notes.append(f"A key is in this system's keyring now, as {reference}.")
            return reference
        how = hint or f"export {variable}=..."
        self.notes.append(f"A key in it is not kept. Set {variable} where Podium runs: {how}")
        return f"env:{variable}"

    def refer_setting(self, variable: str, name: str, value: str) -> str:
        """A header's or a variable's value with a reference in place of a key in it, or of the variable that a client
        would fill in."""
        text = value.strip()
        if ends_in_reference(text):
            return text
        scheme, space, last = text.rpartition(" ")
        if match := VARIABLE.fullmatch(last):
            return f"{scheme}{space}env:{read_variable(match)}"
        if not is_key(name, text):
            return text
        return f"{scheme} {self.refer(variable, last)}" if scheme.lower() in SCHEMES else self.refer(variable, text)


def read_variable(match: re.Match[str]) -> str:
    """The variable that a match of VARIABLE names; the inputs of VS Code may be called as no variable can be."""
    name = next(filter(None, match.groups()))
    return name if name.isidentifier() and "input:" not in match[0] else variable_name(name)


def is_key(name: str, value: str) -> bool:
    """Whether a setting of this name is stored as a reference only, or its value is a key by its shape."""
    if not value or ends_in_reference(value):
        return False
    return bool(SECRET_NAME.search(name)) or any(find_literal_keys({"headers": {name: value}}))


def variable_name(text: str) -> str:
    """
    >>> variable_name("api.acme-tools.com token")
    'API_ACME_TOOLS_COM_TOKEN'
    """
    name = re.sub(r"[^A-Z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).upper()).strip("_")[:100]
    return name if name and not name[0].isdigit() else f"KEY_{name}".rstrip("_")
