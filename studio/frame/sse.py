"""Server-sent events as the served APIs write them."""

from __future__ import annotations

import json
from typing import Any

KEEP_ALIVE = ": keep-alive\n\n"
KEEP_ALIVE_S = 15.0
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def data(document: dict[str, Any], event: str = "") -> str:
    """One message; `event` names it where the API has names."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(document, ensure_ascii=False)}\n\n"
