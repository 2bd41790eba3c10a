"""No route holds its server up: each is sent bodies at its own limit and beyond it, and the event loop is watched."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.access import body_limit
from studio.access.body_limit import CONVERSATION, PAGE, BodyLimits, has_more_marks
from studio.access.permissions import list_endpoints
from studio.model_server.service import ServedModel
from studio.prepare import prepare_store
from tests.studio.support.edge_home import home, model
from tests.studio.support.watched_server import WatchedServer, watched
from tests.trust.trials import count_trials

__all__ = ["home", "model"]

MOST_S = 0.1
TRIES = 12  # further and further apart: what else the machine does slows every try for a while
GRADIO = ("/gradio_api/queue/join", "/gradio_api/run/predict")


def write_bodies(limits: BodyLimits) -> dict[str, bytes]:
    """The most that is read, and what is refused."""
    room = limits.size - 100
    escaped = rb",[\n" * min(room // 4, 9 * limits.marks)
    names = ",".join(f'"n{k}":{k}' for k in range(limits.marks // 2 - 10))
    return {
        "a long text": b'{"text":"' + escaped + b",[" * ((room - len(escaped)) // 2) + b'"}',
        "names": f"{{{names}}}".encode(),
        "lists": b'{"text":[' + b"[]," * (room // 3 - 10) + b"1]}",
    }


def find_limits(app: FastAPI, path: str) -> BodyLimits:
    [guard] = [row for row in app.user_middleware if row.cls is body_limit.LimitedBody]
    rows = guard.kwargs["rows"]
    assert isinstance(rows, dict)
    return next((limits for start, limits in rows.items() if path.startswith(start)), PAGE) or CONVERSATION


def list_every_post(app: FastAPI) -> list[str]:
    """The routes that take a body."""
    return sorted({row.split()[1] for row, _ in list_endpoints(app.routes) if row.startswith("POST ")})


def list_posts(app: FastAPI) -> list[str]:
    """The routes that take a body; of a page's commands, which share one function, the first."""
    paths = list_every_post(app)
    commands = [path for path in paths if path.startswith("/api/pages/")]
    return [path for path in paths if path not in commands] + commands[:1]


def watch_route(server: WatchedServer, path: str, body: bytes) -> float:
    """The shortest of the longest holds in a few tries: what the route itself does."""
    holds: list[float] = []
    address = server.url + re.sub(r"[{}]|:path", "", path)
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    while not holds or (min(holds) >= MOST_S and len(holds) < TRIES):
        time.sleep(0.02 + 0.1 * len(holds))
        server.longest_hold_s = 0.0
        reply = httpx.post(address, content=body, headers=headers, timeout=120)
        assert reply.status_code < 500, reply.text[:300]
        time.sleep(0.02)
        holds.append(server.longest_hold_s)
    return min(holds)


def hold_of_routes(app: FastAPI, paths: list[str]) -> dict[str, float]:
    """How long each route held the loop where it was too long."""
    too_long: dict[str, float] = {}
    with watched(app) as server:
        httpx.post(f"{server.url}/", timeout=60)  # what is loaded at the first request
        for path in paths:
            for name, body in write_bodies(find_limits(app, path)).items():
                seconds = watch_route(server, path, body)
                count_trials(1, seconds >= MOST_S)
                if seconds >= MOST_S:
                    too_long[f"{path}, {name}"] = seconds
    return too_long


@pytest.mark.slow
def test_no_route_of_a_served_model_holds_its_loop(home):
    from studio.model_server.app import create_model_app
    from studio.pages.pool.http_api import build_pool_routes

    store = prepare_store(str(home))
    served = ServedModel(pool="edge", orchestrator="direct:agent")
    app = create_model_app(store, served, loopback=True, routers=[build_pool_routes(store)])
    paths = [*list_posts(app), "/mcp"]
    assert {"/v1/chat/completions", "/v1/pools/import", "/v1/verdicts/{name}"} <= set(paths)
    assert hold_of_routes(app, paths) == {}


@pytest.mark.slow
def test_no_route_of_the_studio_holds_its_loop(home):
    from studio.app import create_app
    from studio.runtime import Runtime

    app = create_app(Runtime(prepare_store(str(home))))
    paths = [*list_posts(app), *GRADIO]
    assert {"/api/keyring", "/api/documents"} <= set(paths)
    assert hold_of_routes(app, paths) == {}


@pytest.fixture(scope="module")
def guarded() -> Iterator[httpx.Client]:
    """An application that says how long a body is, behind the guard."""
    from starlette.testclient import TestClient

    app = FastAPI()

    @app.post("/length")
    def length(fields: dict[str, str]) -> dict[str, int]:
        return {"length": sum(map(len, fields.values()))}

    app.add_middleware(body_limit.LimitedBody, rows={"/length": BodyLimits(1000, 60)})
    with TestClient(app) as client:
        yield client


def test_a_body_within_the_limits_arrives_whole_and_others_are_refused_in_a_sentence(guarded):
    assert guarded.post("/length", json={"a": ",[{" * 100}).json() == {"length": 300}
    large = guarded.post("/length", json={"a": "a" * 1000})
    assert large.status_code == 413 and "larger than 1,000 bytes; send less" in large.json()["detail"]
    many = guarded.post("/length", json={f"n{k}": "" for k in range(40)})
    assert many.status_code == 413 and "more than 30 names and values" in many.json()["error"]["message"]


TEXTS = st.text('a\\",[{é\n')
VALUES = st.recursive(st.none() | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))


@settings(deadline=None)
@given(VALUES, st.integers(1, 9))
def test_marks_are_counted_outside_strings_wherever_pieces_end(value, piece):
    body = json.dumps(value).encode()
    count = len(re.findall(rb'"(?:[^"\\]|\\.)*"|[,\[{]', body)) + body.count(b"\\") // 10
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body_limit, "_PIECE", piece)
        assert not has_more_marks(body, count)
        assert not count or has_more_marks(body, count - 1)
