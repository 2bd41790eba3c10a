"""A curl line that asks a language model: an agent with its model, its key and its system prompt."""

from __future__ import annotations

import json
import re
from typing import Any

from pool_registry.gallery.found_models import describe_model
from pool_registry.gallery.providers import provider_of
from pool_registry.imports import FreeNames
from pool_registry.pasted.base import ImportSettings
from pool_registry.pasted.requests.curl_words import CurlRequest
from pool_registry.secrets import ends_in_reference
from pool_registry.worker import WorkerSpec

_CHAT = re.compile(r"\A(https?://[^/?#\s]+(?:/[^?#\s]*?)?)/(?:chat/completions|api/chat|api/generate)\Z")
PLAIN_HEADERS = frozenset({"authorization", "content-type", "accept", "user-agent"})
OWN = frozenset({"model", "messages", "prompt", "stream", "temperature", "max_tokens"})


def read_chat_request(request: CurlRequest, names: FreeNames, settings: ImportSettings) -> WorkerSpec | None:
    """None where the request is no chat that an agent can make."""
    match = _CHAT.match(request.url)
    body = _read_body(request)
    if match is None or not isinstance(body.get("model"), str) or not {"messages", "prompt"} & body.keys():
        return None
    if request.user or any(name.lower() not in PLAIN_HEADERS for name in request.headers):
        return None
    is_native = not request.url.endswith("/chat/completions")  # Ollama's own address, beside the usual one
    base = f"{match[1]}/v1" if is_native else match[1]
    key = settings.key or _read_key(request, base, settings)
    provider = provider_of(base)
    config: dict[str, Any] = {**(provider.settings if provider else {}), "base_url": base, "model": body["model"]}
    config |= {name: body[name] for name in ("temperature", "max_tokens") if isinstance(body.get(name), int | float)}
    extra = {name: value for name, value in body.items() if name not in OWN}
    config |= {"api_key": key} if key else {}
    config |= {"extra": extra} if extra and not is_native else {}
    config |= {"role": role} if (role := _read_role(body)) else {}
    config |= {"allow_private": True} if settings.private else {}
    name = names.choose(settings.name or body["model"].rpartition("/")[2])
    return WorkerSpec(name=name, kind="chat", description=describe_model(body["model"], base), config=config)


def _read_body(request: CurlRequest) -> dict[str, Any]:
    try:
        body = json.loads("".join(text for _, text in request.data), parse_constant=str)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _read_key(request: CurlRequest, base: str, settings: ImportSettings) -> str:
    """The reference to the key in the header of the request; "" without one."""
    value = next((value for name, value in request.headers.items() if name.lower() == "authorization"), "")
    if not value:
        return ""
    provider = provider_of(base)
    usual = provider.key if provider and provider.key else f"{base.partition('://')[2].partition('/')[0]} key"
    written = settings.keys.refer_setting(usual, "authorization", value).rpartition(" ")[2]
    return written if ends_in_reference(written) else ""


def _read_role(body: dict[str, Any]) -> str:
    messages = body.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    if not isinstance(first, dict) or first.get("role") not in ("system", "developer"):
        return ""
    content = first.get("content")
    return content[:20_000] if isinstance(content, str) else ""
