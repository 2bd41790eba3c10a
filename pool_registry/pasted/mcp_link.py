"""Links with which a page adds an MCP server to a client: those of Cursor, VS Code and LM Studio. Each is read as the
entry that it would write into the client's settings."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote

MAX_LINK_CHARS = 20_000
_LINK = re.compile(r"\A[a-z][\w.+-]{1,40}:[^\s?]{0,200}?(?:mcp/install|install-mcp|add_mcp)/?\?(\S+)\Z", re.IGNORECASE)


def read_install_link(text: str) -> dict[str, Mapping[str, Any]]:
    """The server that a link adds, by its name; none where the text is no such link."""
    match = _LINK.match(text.strip()) if len(text) <= MAX_LINK_CHARS else None
    if match is None:
        return {}
    fields = parse_qs(match[1])
    written = fields["config"][0] if "config" in fields else unquote(match[1])
    entry = _load(written) or _load(_decode(written))
    name = fields.get("name", [entry.get("name", "")])[0]
    return {str(name): entry} if entry else {}


def _load(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _decode(text: str) -> str:
    """The text of base64, in either alphabet, padded or not; "" where it is none."""
    letters = text.replace(" ", "+").replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(letters + "=" * (-len(letters) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
