"""Whatever stands in an address or in a header, as long as a server takes it, is read in linear time, and never holds
the loop of the server for a tenth of a second.

The routes are those that the applications have, and the parameters those that a route reads: a new one needs no row.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI
from starlette.datastructures import QueryParams
from starlette.requests import HTTPConnection, Request

from studio.access.permissions import list_endpoints
from studio.model_server.app import create_model_app
from studio.model_server.service import ServedModel
from studio.pages.pool.http_api import build_pool_routes
from studio.prepare import prepare_store
from studio.runtime import Runtime
from tests.studio.support.edge_home import home, model
from tests.studio.support.watched_server import WatchedServer, watched
from tests.studio.test_body_limits import MOST_S
from tests.studio.test_route_growth import ids, runtime, watch_request
from tests.trust.growth import MOST_EXPONENT, write_text
from tests.trust.trials import count_trials

__all__ = ["home", "ids", "model", "runtime"]

MOST_CHARS = 60_000  # of an address or a header: the server closes the line where its head is longer than 64 KiB
SHAPES = ("one word", "names", "figures", "escapes", "hyphens")
HEADERS = ("cookie", "authorization", "accept", "accept-language", "origin", "forwarded", "if-none-match", "user-agent")

FIRST_PAGE = "/api/me"  # reads who is there, as every page does

WriteAddress = Callable[[int], str]  # with so many characters in one place


class ReadParameters(QueryParams):
    """Parameters of an address that remember which of them are read."""

    names: set[str]

    def __init__(self, names: set[str], query: bytes) -> None:
        super().__init__(query)
        self.names = names

    def __getitem__(self, key: str) -> str:
        self.names.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.names.add(str(key))
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.names.add(key)
        return super().get(key, default)

    def getlist(self, key: str) -> list[str]:
        self.names.add(key)
        return super().getlist(key)


@contextmanager
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The names of the parameters that are read until the end of the block."""
    names: set[str] = set()
    with monkeypatch.context() as patch:
        patch.setattr(
            HTTPConnection, "query_params", property(lambda self: ReadParameters(names, self.scope["query_string"]))
        )
        yield names


def list_gets(app: FastAPI) -> list[str]:
    return sorted({row.split()[1] for row, _ in list_endpoints(app.routes) if row.startswith("GET ")})


def list_path_names(path: str) -> list[str]:
    return re.findall(r"{(\w+)(?::path)?}", path)


def write_address(path: str, values: Mapping[str, str]) -> str:
    return re.sub(r"{(\w+)(?::path)?}", lambda name: values.get(name[1], "1"), path)


def take_get(server: WatchedServer, address: WriteAddress, header: str = "") -> Callable[[int], float]:
    """The CPU seconds of a request whose address, or header, has so many characters. Of a stream the first event is
    waited for."""

    def take(chars: int) -> float:
        headers = {header: write_text("one word", chars).replace("§", "a")} if header else {}
        start = time.process_time()
        with httpx.stream("GET", server.url + address(chars), headers=headers, timeout=120) as reply:
            next(reply.iter_bytes(), b"")
        seconds = time.process_time() - start
        return seconds if reply.status_code < 500 else math.inf

    return take


def list_addresses(path: str, parameters: set[str], ids: Mapping[str, str]) -> Iterator[tuple[str, WriteAddress]]:
    """Each place of an address, and how it reads with so many characters there."""
    for shape in SHAPES:

        def write(chars: int, shape: str = shape) -> str:
            return quote(write_text(shape, chars // 3), safe="")

        for name in list_path_names(path):
            yield (
                f"{{{name}}}, {shape}",
                lambda chars, name=name, write=write: write_address(path, {**ids, name: write(chars)}),
            )
        for name in sorted(parameters):
            yield (
                f"?{name}=, {shape}",
                lambda chars, name=name, write=write: f"{write_address(path, ids)}?{name}={write(chars)}",
            )
    for name in sorted(parameters) or ["a"]:
        yield (
            f"?{name}= many times",
            lambda chars, name=name: f"{write_address(path, ids)}?{f'{name}=1&' * (chars // len(f'{name}=1&'))}",
        )


def find_faults(app: FastAPI, ids: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What held the loop, failed, or grew too fast."""
    faults: dict[str, str] = {}

    def watch(place: str, take: Callable[[int], float]) -> None:
        hold, growth = watch_request(server, take, MOST_CHARS)
        failed = hold >= MOST_S or growth > MOST_EXPONENT
        count_trials(1, failed)
        if failed:
            faults[place] = f"{hold:.3f} s, power {growth:.2f}"

    with watched(app) as server:
        for path in list_gets(app):
            with reading(monkeypatch) as parameters:
                take_get(server, lambda _, path=path: write_address(path, ids))(1)
            for place, address in list_addresses(path, parameters, ids):
                watch(f"{path} {place}", take_get(server, address))
        for header in HEADERS:
            watch(f"header {header}", take_get(server, lambda _: FIRST_PAGE, header))
    return faults


@pytest.mark.slow
def test_what_an_address_of_a_served_model_holds_is_read_in_linear_time(home, ids, monkeypatch):
    store = prepare_store(str(home))
    served = ServedModel(pool="edge", orchestrator="direct:agent")
    app = create_model_app(store, served, loopback=True, routers=[build_pool_routes(store)])
    assert find_faults(app, ids, monkeypatch) == {}


@pytest.mark.slow
def test_what_an_address_of_the_studio_holds_is_read_in_linear_time(home: Path, runtime: Runtime, ids, monkeypatch):
    from studio.app import create_app

    assert find_faults(create_app(runtime), ids, monkeypatch) == {}


def test_a_route_that_reads_its_parameter_in_quadratic_time_is_found(monkeypatch):
    app = FastAPI()

    @app.get("/api/slow/{name}")
    def read_slowly(name: str, request: Request) -> str:
        return re.sub(r"(.*)x", "", request.query_params.get("text", ""))  # each character, and all after it

    @app.get(FIRST_PAGE)
    def read_fast() -> str:
        return "Ann"

    monkeypatch.setattr(f"{__name__}.SHAPES", ("one word",))
    monkeypatch.setattr(f"{__name__}.MOST_CHARS", 30_000)
    faults = find_faults(app, {}, monkeypatch)
    assert faults and all(place.startswith("/api/slow/{name} ?text=") for place in faults)
