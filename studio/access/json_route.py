"""Routes whose bodies are parsed by pydantic's parser, so that one large body holds up nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response


class JsonRoute(APIRoute):
    """A route for bodies of many megabytes. A long text holds the event loop for less than half as long as with the
    standard library's parser (tests/studio/access/test_json_route.py)."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, which is given a request that parses its own body."""
        handle = super().get_route_handler()

        async def handle_request(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return handle_request


class _JsonRequest(Request):
    async def json(self) -> Any:
        """The body. Raises json.JSONDecodeError."""
        return parse_json(await self.body())


def parse_json(body: bytes) -> Any:
    """The document of a body. What pydantic's parser refuses, such as half a character, the standard library reads or
    explains. Raises json.JSONDecodeError."""
    try:
        return from_json(body)
    except ValueError:
        return json.loads(body)
