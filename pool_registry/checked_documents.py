"""JSON documents that were found right, by their hashes.

A pool of a thousand workers is read again at each edit and each time it is shown; what is checked of one worker alone
need not be checked anew each time.
"""

from __future__ import annotations

import hashlib
import json

MAX_DOCUMENTS = 20_000


class CheckedDocuments:
    """Remembers which documents passed one check that asks for nothing but the document."""

    def __init__(self) -> None:
        self._hashes: dict[bytes, None] = {}

    def holds(self, document: object) -> bool:
        return bool(self._hashes) and _hash(document) in self._hashes

    def add(self, document: object) -> None:
        """Remember a document; where there are too many, the oldest one is forgotten."""
        while len(self._hashes) >= MAX_DOCUMENTS:
            self._hashes.pop(next(iter(self._hashes)), None)
        if key := _hash(document):
            self._hashes[key] = None


def _hash(document: object) -> bytes:
    """b"" for what is no JSON, or nested too deep to be written."""
    try:
        return hashlib.sha256(json.dumps(document).encode()).digest()
    except (ValueError, TypeError, RecursionError):
        return b""
