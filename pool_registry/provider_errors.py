"""What a provider's refusal means: HTTP status, headers and error body -> one WorkerFault with a code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pool_registry.errors import WorkerFault

MAX_RETRY_AFTER_S = 60.0


def fault(host: str, url: str, status: int, headers: Mapping[str, str], body: bytes) -> WorkerFault:
    """The fault that a refusal becomes."""
    said = _error_text(body)
    if 300 <= status < 400:
        return WorkerFault("invalid_response", f"{host} redirects; give the final URL")
    if status in (401, 403):
        return WorkerFault("auth", f"{host} refuses the key ({status}): {said}")
    if status == 404:
        return WorkerFault("not_found", f"{url} is not there (404): {said}")
    if status in (408, 429):
        return WorkerFault(
            "rate_limited",
            f"{host} asks to slow down ({status}): {said}",
            retryable=True,
            retry_after_s=_retry_after(headers.get("retry-after")),
        )
    if status >= 500:
        return WorkerFault("server_error", f"{host} failed ({status}): {said}", retryable=True)
    return WorkerFault(_client_error_code(said), f"{host} refuses the request ({status}): {said}")


def _client_error_code(said: str) -> str:
    lower = said.lower()
    if "context" in lower and ("length" in lower or "window" in lower or "exceed" in lower):
        return "context_overflow"
    return "content_filtered" if "content" in lower and "filter" in lower else "bad_request"


def _error_text(raw: bytes) -> str:
    """The message in an API's error body, or the start of whatever it is."""
    text = raw[:4000].decode("utf-8", "replace")
    try:
        body: Any = json.loads(text)
        error = body.get("error", body)
        text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
    except (ValueError, AttributeError, RecursionError):
        pass
    return " ".join(text.split())[:300]


def _retry_after(header: str | None) -> float | None:
    """Seconds to wait as the peer asked, in either form of the header; None when absent, odd or too long."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return seconds if 0 <= seconds <= MAX_RETRY_AFTER_S else None
