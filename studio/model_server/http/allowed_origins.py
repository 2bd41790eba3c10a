"""Pages of other origins that may use a served model from a browser: `podium serve --allow-origin ORIGIN`.

Off by default: a page that somebody happens to open must not reach the pool. What a browser asks before it sends a
request (the preflight) is answered without a token, as browsers send none with it. The request itself needs one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from pool_registry.errors import PoolError
from studio.model_server.errors import FOLLOW_UP_HEADER, IGNORED_HEADER, TRACE_HEADER
from studio.model_server.sides import DEPLOYMENT_HEADER, ORCHESTRATOR_HEADER

SIDE = (ORCHESTRATOR_HEADER, DEPLOYMENT_HEADER)
OWN = (TRACE_HEADER, IGNORED_HEADER, FOLLOW_UP_HEADER)
EXPOSED = (*OWN, *SIDE, "x-should-retry", "retry-after", "www-authenticate", "mcp-session-id")
PREFLIGHT_S = 600  # that a browser may remember an answer
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@*]+")
_OWN_PORTS = {"http": ":80", "https": ":443"}  # browsers leave them out


def read_origins(texts: Iterable[str]) -> tuple[str, ...]:
    """Origins in the form in which browsers send them. Raises PoolError for what is none."""
    return tuple(map(_read_origin, texts))


def _read_origin(text: str) -> str:
    origin = text.strip().lower().removesuffix("/")
    if _ORIGIN.fullmatch(origin) is None:
        raise PoolError(
            f"{text!r} is no origin; write it as the browser's address line begins, without a path, "
            "such as http://localhost:3000. Each origin is named: * would let any page use the pool"
        )
    return origin.removesuffix(_OWN_PORTS.get(origin.partition(":")[0], ""))


def allow_origins(app: FastAPI, origins: Sequence[str]) -> None:
    """Answer browsers that ask for pages of these origins. To be called after the guards: it stands before them."""
    app.add_middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=("GET", "POST", "DELETE"),
        allow_headers=("*",),
        allow_private_network=True,
        expose_headers=EXPOSED,
        max_age=PREFLIGHT_S,
    )
