"""A server that records requests as they come, and what it takes to send it some from an OpenAPI document."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from pool_registry.actions import Action, Observation
from pool_registry.calls.live_pool import live_pool
from pool_registry.imports import Offer
from pool_registry.imports.openapi import operations
from pool_registry.pool import Pool


@dataclass
class Recorder:
    """A server that keeps the target, headers and body of each request as they came."""

    address: str = ""
    targets: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


@contextmanager
def record_requests() -> Iterator[Recorder]:
    record = Recorder()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            record.targets.append(self.path)
            record.headers.append({name.lower(): value for name, value in self.headers.items()})
            record.bodies.append(self.rfile.read(int(self.headers.get("content-length") or 0)))
            self.send_response(204)
            self.end_headers()

        do_GET = do_PUT = do_PATCH = do_POST

        def log_message(self, *_: object) -> None:
            """Keep standard error clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    record.address = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    yield record
    server.shutdown()
    server.server_close()


def read_offer(
    path: str,
    method: str,
    operation: dict[str, Any],
    address: str = "https://api.example.com",
    version: str = "3.0.3",
    **schemas: Any,
) -> Offer:
    document = {"openapi": version, "servers": [{"url": address}], "paths": {path: {method: operation}}}
    document["components"] = {"schemas": schemas}
    [offer] = operations.list_operations(json.dumps(document))
    return offer


def call(offer: Offer, arguments: dict[str, Any]) -> Observation:
    assert not offer.problem, offer.problem

    async def call_once() -> Observation:
        async with live_pool(Pool(name="p", workers=(offer.spec,))) as pool:
            return await pool.call(Action(offer.spec.name, arguments))

    return asyncio.run(call_once())
