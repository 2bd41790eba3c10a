"""A real HTTP API for tests: FastAPI under uvicorn, over a real socket.

Annotations are no strings here: FastAPI could not read those that name a local.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import uvicorn
from fastapi import Cookie, Depends, FastAPI, Form, Header, HTTPException, Query, Request, Response
from fastapi.security import APIKeyHeader, HTTPBasic, HTTPBasicCredentials, HTTPBearer
from pydantic import BaseModel

KEY = "sk-planted-openapi-2718"


class Node(BaseModel):
    """A tree: its schema refers to itself."""

    name: str
    children: list["Node"] = []


class Order(BaseModel):
    item: str
    amount: int
    note: str | None = None


def make_app() -> FastAPI:
    """The API under /v1, as its document says without naming a host; `state.calls` counts what must not be repeated."""
    outer = FastAPI()
    outer.state.calls = []
    app = FastAPI(title="Shop")

    @app.get("/items/{item_id}", summary="Look up one item", operation_id="getItem")
    def item(
        item_id: str,
        request: Request,
        tags: Annotated[list[str] | None, Query(description="Only these tags.")] = None,
        deep: bool = False,
        x_trace: Annotated[str, Header()] = "none",
        session: Annotated[str, Cookie()] = "none",
    ) -> dict[str, Any]:
        raw = request.scope["raw_path"].decode()
        return {"id": item_id, "tags": tags, "deep": deep, "trace": x_trace, "session": session, "raw": raw}

    @app.post("/orders", operation_id="place-order", status_code=201)
    def order(order: Order, dry: bool = False) -> dict[str, Any]:
        """Places an order."""
        outer.state.calls.append("order")
        return {"item": order.item, "amount": order.amount, "dry": dry}

    @app.post("/trees")
    def tree(node: Node) -> int:
        def count(node: Node) -> int:
            return 1 + sum(map(count, node.children))

        return count(node)

    @app.post("/forms")
    def form(word: Annotated[str, Form()], times: Annotated[int, Form()] = 1) -> str:
        return word * times

    @app.delete("/items/{item_id}", status_code=204)
    def remove(item_id: str) -> None:
        return

    @app.get("/picture")
    def picture() -> Response:
        return Response(b"\x89PNG\x00\xff", media_type="image/png")

    @app.get("/text")
    def text() -> Response:
        return Response("grüße".encode("latin-1"), media_type="text/plain; charset=latin-1")

    @app.get("/refuses")
    def refuses() -> None:
        raise HTTPException(422, "that item is sold out")

    @app.post("/breaks")
    def breaks() -> None:
        outer.state.calls.append("breaks")
        raise HTTPException(503, "come back later")

    @app.put("/breaks")
    def breaks_too() -> None:
        outer.state.calls.append("breaks_too")
        raise HTTPException(503, "come back later")

    @app.get("/secret/header", dependencies=[Depends(_needs(APIKeyHeader(name="X-Shop-Key")))])
    def by_header() -> str:
        return "let in"

    @app.get("/secret/bearer")
    def by_bearer(token: Annotated[Any, Depends(HTTPBearer())]) -> str:
        return _let_in(token.credentials)

    @app.get("/secret/basic")
    def by_basic(who: Annotated[HTTPBasicCredentials, Depends(HTTPBasic())]) -> str:
        return _let_in(f"{who.username}:{who.password}")

    outer.mount("/v1", app)
    return outer


def _needs(scheme: APIKeyHeader) -> Any:
    def check(key: Annotated[str, Depends(scheme)]) -> None:
        _let_in(key)

    return check


def _let_in(key: str) -> str:
    if key not in (KEY, f"shop:{KEY}"):
        raise HTTPException(401, f"the key {key} is wrong")
    return "let in"


@contextmanager
def served(app: Any) -> Iterator[str]:
    """The address at which an ASGI app answers."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
