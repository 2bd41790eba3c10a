"""What the server reads of a request's body."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request

from studio.model_server.request import ChatRequest, EpisodeRequest, read_request


def read_body(body: bytes, kind: type[Any] = ChatRequest, **headers: str) -> EpisodeRequest:
    """The checked request of a body for the model m that comes in two parts."""
    parts = [body[: len(body) // 2], body[len(body) // 2 :]]

    async def receive() -> dict[str, Any]:
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    request = Request({"type": "http", "method": "POST", "headers": raw, "path": "/"}, receive)
    checked: EpisodeRequest = asyncio.run(read_request(request, kind, "m")).episode_request()
    return checked
