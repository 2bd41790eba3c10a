"""Map a provider's refusal (status, headers, error body) to one WorkerFault with a code.

Providers agree on little: the same code stands in `error.code`, `error.type`, `type`, `status` or
`details`, a used-up quota comes as 400, 402, 403 or 429, and some errors come with status 200. The rules
below were written from the documented bodies of OpenAI, Azure, Anthropic, Gemini, Mistral, DeepSeek,
OpenRouter, Hugging Face, vLLM, llama.cpp and Ollama (tests/pool_registry/network/test_provider_errors.py has them).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pool_registry.errors import WorkerFault
from pool_registry.secrets import redact

MAX_RETRY_AFTER_S = 60.0
MAX_SAID_CHARS = 300
_MAX_READ = 20_000  # bytes of an error body that are read
_MAX_MARKS = 200

_QUOTA = {"insufficient_quota", "billing_error", "billing_not_active", "billing_hard_limit_reached"}
_CONTEXT = {"context_length_exceeded", "exceed_context_size_error", "request_too_large", "string_above_max_length"}
_FILTERED = {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "prohibited_content"}
_AUTH = {"invalid_api_key", "authentication_error", "api_key_invalid", "permission_error", "unauthenticated"}
_MISSING = {"model_not_found", "not_found_error", "invalid_model", "notfounderror", "deploymentnotfound"}
_LIMITED = {"rate_limit_exceeded", "rate_limit_error", "rate_limited", "resource_exhausted"}

_QUOTA_WORDS = re.compile(
    r"insufficient (?:balance|credits?|quota|funds)|credit balance is too low|exceeded your (?:current quota|monthly)"
    r"|billing hard limit|payment required",
    re.IGNORECASE,
)
_CONTEXT_WORDS = re.compile(
    r"(?:maximum|available|exceeds? the) (?:context|model) (?:length|window|size)"
    r"|context (?:length|window) (?:exceeded|is)"
    r"|exceeds? the (?:model'?s )?context|prompt is too long|input token count|longer than the maximum model length"
    r"|too large for model|initial prompt is greater than the context|`inputs` tokens",
    re.IGNORECASE,
)
_FILTERED_WORDS = re.compile(
    r"content (?:filter|management policy)|flagged|safety system|blocked by (?:content|the safety)", re.IGNORECASE
)
_AUTH_WORDS = re.compile(
    r"(?:incorrect|invalid|missing) api.?key|api.?key (?:is )?(?:not valid|invalid)", re.IGNORECASE
)
_PER_DAY = re.compile(r"per_?day", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A parsed refusal: its message, and every short word that may be its code, in lower case."""

    status: int
    message: str
    marks: frozenset[str]
    wait_s: float | None


def fault(host: str, url: str, status: int, headers: Mapping[str, str], body: bytes) -> WorkerFault:
    """Turn a refusal into a fault."""
    if 300 <= status < 400:
        return WorkerFault("invalid_response", f"{host} redirects; give the final URL")
    document = _document(body)
    wait_s = _header_wait(headers)
    refusal = _Refusal(
        status, _error_text(document, body), _marks(document), _wait(document) if wait_s is None else wait_s
    )
    return _fault(host, url, refusal)


def fault_within(host: str, url: str, document: Any) -> WorkerFault | None:
    """Return the fault in an answer with status 200 that holds an error in place of a result, or None."""
    error = document.get("error") if isinstance(document, dict) else None
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return _fault(host, url, _Refusal(status, _error_text(document, b""), _marks(document), _wait(document)))


def _fault(host: str, url: str, refusal: _Refusal) -> WorkerFault:
    code, status, message = _code(refusal), refusal.status, refusal.message
    sentence = {
        "auth": f"{host} refuses the key ({status}): {message}",
        "quota": f"the account at {host} is used up ({status}): {message}",
        "not_found": f"{url} is not there ({status}): {message}",
        "rate_limited": f"{host} asks to slow down ({status}): {message}",
        "server_error": f"{host} failed ({status}): {message}",
        "timeout": f"{host} ran out of time ({status}): {message}",
    }.get(code, f"{host} refuses the request ({status}): {message}")
    wait_s = refusal.wait_s
    if wait_s is not None and wait_s > MAX_RETRY_AFTER_S:  # longer than a step may wait: no use in asking again
        return WorkerFault(code, f"{sentence} (asks to wait {wait_s:,.0f} s)")
    passing = code in ("rate_limited", "server_error", "timeout")
    return WorkerFault(code, sentence, retryable=passing, retry_after_s=wait_s if passing else None)


def _code(refusal: _Refusal) -> str:
    """Return the code of the first rule that fits; the body goes before the status, which providers reuse."""
    status, message, marks = refusal.status, refusal.message, refusal.marks
    if status == 401:
        return "auth"
    if status == 402 or marks & _QUOTA or _is_used_up(refusal):
        return "quota"
    if status == 413 or marks & _CONTEXT or (status != 429 and _CONTEXT_WORDS.search(message)):
        return "context_overflow"
    if status < 500 and (marks & _FILTERED or _FILTERED_WORDS.search(message)):
        return "content_filtered"
    if status == 403 or marks & _AUTH or (status == 400 and _AUTH_WORDS.search(message)):
        return "auth"
    if status == 404 or (status < 500 and marks & _MISSING):
        return "not_found"
    if status in (408, 504, 524):
        return "timeout"
    if status == 429 or (status < 500 and marks & _LIMITED):
        return "rate_limited"
    return "server_error" if status >= 500 else "bad_request"


def _is_used_up(refusal: _Refusal) -> bool:
    """Whether more calls need more money. Gemini says `quota` for a rate, too, and then tells how long to wait."""
    if refusal.status >= 500:
        return False
    if any(_PER_DAY.search(mark) for mark in refusal.marks):
        return True
    return refusal.wait_s is None and _QUOTA_WORDS.search(refusal.message) is not None


def _document(body: bytes) -> Any:
    """Parse the JSON of an error body (Gemini puts it into a list); None without one."""
    try:
        document = json.loads(body[:_MAX_READ].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return document[0] if isinstance(document, list) and document else document


def _error_text(document: Any, body: bytes) -> str:
    """Return the message in an API's error body, or the start of the body."""
    text = _message(document) or body[:4000].decode("utf-8", "replace")
    return redact(" ".join(text.split()))[:MAX_SAID_CHARS]


def _message(document: Any) -> str:
    if isinstance(document, str):
        return document
    if not isinstance(document, dict):
        return ""
    for name in ("error", "message", "detail", "msg"):
        inner = document.get(name)
        if isinstance(inner, list) and inner:
            inner = inner[0]
        message = _message(inner)
        if message:
            return message + _upstream(document)
    return ""


def _upstream(error: Mapping[str, Any]) -> str:
    """Return the message of the provider behind OpenRouter, whose own is "Provider returned error"."""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return f" ({raw})" if isinstance(raw, str) else ""


def _marks(document: Any) -> frozenset[str]:
    """Collect every short string of the body where a code may stand."""
    return frozenset(list(_codes_in(document, 0))[:_MAX_MARKS])


def _codes_in(value: Any, depth: int) -> Iterator[str]:
    if depth > 6:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in ("code", "type", "status", "reason", "quotaId") and isinstance(inner, str):
                yield inner.lower()
            elif isinstance(inner, dict | list):
                yield from _codes_in(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value[:20]:
            yield from _codes_in(inner, depth + 1)


def _header_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that the headers ask for, in any of their forms; None when absent or invalid."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    header = headers.get("retry-after")
    seconds = _number(header)
    if seconds is not None or header is None:
        return seconds
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _wait(document: Any) -> float | None:
    """Return the seconds to wait that Google's RetryInfo asks for ("25.6s")."""
    error = document.get("error") if isinstance(document, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str):
            return _number(delay.removesuffix("s"))
    return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
