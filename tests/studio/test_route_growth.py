"""Whatever a route is sent, at its own limit, it reads in linear time, and never holds the loop of its server for a
tenth of a second: a long text in place of each of the texts that it reads, many lines, many short texts, many names.

The routes are those that the applications have. A page's command needs no row below: its fields are those that it
reads. Another route without a row fails the test.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from studio.access.body_limit import BodyLimits
from studio.access.permissions import COMMAND_PREFIX
from studio.frame.commands import PageCommands
from studio.model_server.apis.verdicts import find_trace
from studio.model_server.app import create_model_app
from studio.model_server.service import ServedModel
from studio.pages.pool.http_api import build_pool_routes
from studio.prepare import prepare_store
from studio.runtime import Runtime
from tests.studio.pages.test_odd_fields import CALCULATOR, PAGES, POOL, RIGHT, prepared
from tests.studio.support.edge_home import home, model
from tests.studio.support.watched_server import WatchedServer, watched
from tests.studio.test_body_limits import GRADIO, MOST_S, TRIES, find_limits, list_every_post
from tests.trust.growth import MOST_EXPONENT, fit_exponent, write_text
from tests.trust.long_fields import Fill, list_fields, list_fills
from tests.trust.readers import as_table, as_words
from tests.trust.trials import count_trials

__all__ = ["home", "model", "prepared"]

PAGES_PATH = COMMAND_PREFIX.removeprefix("POST ")
SURE_S = 1.0  # what is read at its limit, megabytes of it, within so long is read in linear time
EDITS = [{"edit": "change", "step": 1, "worker": "agent", "arguments": {"instruction": "Hello"}}]
ASK = {"name": "ask", "arguments": {"query": "Hello"}}
SERVED: Mapping[str, Any] = {
    "/v1/chat/completions": {
        "model": "podium-edge",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "stop": ["."],
        "user": "ann",
    },
    "/v1/completions": {"model": "podium-edge", "prompt": "Hello", "stop": ["."]},
    "/v1/responses": {"model": "podium-edge", "input": "Hello", "instructions": "Be brief."},
    "/v1/responses/{name}/cancel": "nothing",
    "/v1/approvals/{episode_id}": {"decision": "edit", "note": "Other words.", "edits": EDITS},
    "/v1/verdicts/{name}": {"answer": "42"},
    "/v1/pools": {"name": "mine", "description": "Mine."},
    "/v1/pools/import": "name: mine\nworkers: []",
    "/v1/pools/{pool}/check": "nothing",
    "/v1/pools/{pool}/workers": {"worker": CALCULATOR},
    "/v1/pools/{pool}/workers/{worker}/test": {"arguments": {"instruction": "Hello"}},
    "/a2a": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Hello"}]}},
    },
    "/mcp": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "ask", "arguments": {"query": "Hello"}},
    },
}
STUDIO: Mapping[str, Any] = {
    "/api/documents": "a text",
    "/api/keyring": {"name": "a key", "value": "a value"},
    "/api/shares/{key}/revoke": "nothing",
    "/api/episodes/{episode_id}/again": {"orchestrator": "direct:agent", "query": "Hello"},
    "/api/episodes/{episode_id}/approval": {"verdict": "approve", "note": "So.", "edits": EDITS},
    "/api/episodes/{episode_id}/approval/check": {"round": 1, "edits": EDITS},
    "/api/episodes/{episode_id}/credit": "nothing",
    "/api/episodes/{episode_id}/follow-up": {"text": "and 3?", "question": "What is 3?"},
    "/api/episodes/{episode_id}/share": {"days": 30},
    "/api/episodes/{episode_id}/star": {"on": "yes"},
    "/api/episodes/{episode_id}/task": {"answer": "42"},
    "/api/episodes/{episode_id}/verdict": {"answer": "42"},
    "/api/episodes/{episode_id}/what-if": {"round": 1, "edits": EDITS},
    "/api/episodes/{episode_id}/what-if/check": {"round": 1, "edits": EDITS},
    **{path: {"data": ["Hello"], "fn_index": 0, "session_hash": "a"} for path in GRADIO},
}


def list_sent(path: str, limits: BodyLimits) -> list[tuple[str, Fill, int]]:
    """A long text, many lines, many texts and many names: shape, form and characters, each just within the limits. The
    commands of pages, which share one function that test_body_limits.py tries with all of them, are sent a text."""
    few = limits.marks // 5 * 20  # characters of short texts; a name and its text are four marks
    text: tuple[str, Fill, int] = ("words", str, limits.size - 4000)
    if path.startswith(PAGES_PATH):
        return [text]
    return [
        text,
        ("lines", str, min(limits.size // 3, 18 * limits.marks)),
        ("words", as_words, min(limits.size // 2, 3 * few)),
        ("words", as_table, min(limits.size // 3, few)),
    ]


def write_body(document: Any) -> bytes:
    return document.encode() if isinstance(document, str) else json.dumps(document).encode()


def list_bodies(path: str, bodies: Mapping[str, Any], pages: Mapping[str, PageCommands]) -> Iterator[tuple[str, Fill]]:
    """Each text that a route reads, and its body with another one in its place. A new route needs a row in `bodies`,
    which is its body; a page's command needs none."""
    if path in bodies:
        yield from list_fills(bodies[path])
        return
    page, _, name = path.removeprefix(PAGES_PATH).partition("/")
    fields = {"text": "a"} if name == "{name}" else read_fields(pages[page], name)
    for field in fields:
        yield field, lambda text, field=field: {**fields, field: text}


def read_fields(commands: PageCommands, name: str) -> dict[str, Any]:
    return list_fields(partial(commands.run, name), {field: choices[0] for field, choices in RIGHT.items()})


def take_post(server: WatchedServer, path: str, write: Callable[[int], bytes]) -> Callable[[int], float]:
    """The CPU seconds that a request of so many characters takes, those of its client among them."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

    def take(chars: int) -> float:
        body = write(chars)
        start = time.process_time()
        reply = httpx.post(server.url + path, content=body, headers=headers, timeout=120)
        seconds = time.process_time() - start
        return seconds if reply.status_code < 500 else math.inf

    return take


def watch_request(server: WatchedServer, take: Callable[[int], float], chars: int) -> tuple[float, float]:
    """The shortest of the longest holds of the loop in a few tries, and the power by which the time grows."""
    holds: list[float] = []
    while not holds or (min(holds) >= MOST_S and len(holds) < TRIES):
        time.sleep(0.01 + 0.1 * len(holds))
        server.longest_hold_s = 0.0
        seconds = take(chars)
        time.sleep(0.01)
        holds.append(server.longest_hold_s)
    if math.isinf(seconds):  # the server failed
        return min(holds), seconds
    return min(holds), fit_exponent(take, chars) if seconds >= SURE_S else 0.0


def find_faults(
    app: FastAPI, bodies: Mapping[str, Any], pages: Mapping[str, PageCommands], ids: Mapping[str, str]
) -> dict[str, str]:
    """What held the loop, and what grew too fast."""
    faults: dict[str, str] = {}
    paths = sorted({*list_every_post(app), *bodies})
    with watched(app) as server:
        httpx.post(f"{server.url}/", timeout=60)  # what is loaded at the first request
        for path in paths:
            limits = find_limits(app, path)
            for where, fill in list_bodies(path, bodies, pages):
                for shape, make, chars in list_sent(path, limits):

                    def write(chars: int, fill: Fill = fill, make: Fill = make, shape: str = shape) -> bytes:
                        return write_body(fill(make(write_text(shape, chars))))

                    take = take_post(server, path.format(**ids).replace(":path", ""), write)
                    hold, growth = watch_request(server, take, chars)
                    failed = hold >= MOST_S or growth > MOST_EXPONENT
                    count_trials(1, failed)
                    if failed:
                        faults[f"{path}{where}, {shape}, {make.__name__}"] = f"{hold:.3f} s, power {growth:.2f}"
    return faults


@pytest.fixture(scope="module")
def runtime(home: Path) -> Runtime:
    """The studio's inside, which its application closes."""
    return Runtime(prepare_store(str(home)))


@pytest.fixture(scope="module")
def ids(runtime: Runtime, home: Path) -> dict[str, str]:
    """What stands in the paths: an episode that has run, its pool and its worker."""
    served = ServedModel(pool="edge", orchestrator="direct:agent")
    with watched(create_model_app(prepare_store(str(home)), served, loopback=True)) as server:
        reply = httpx.post(f"{server.url}/v1/chat/completions", json=SERVED["/v1/chat/completions"], timeout=120)
    answer = reply.json()["id"]
    episode = find_trace(answer)
    assert runtime.store.traces.episode(episode).steps
    names = {"name": answer, "episode_id": episode, "pool": "edge", "worker": "agent"}
    return {**names, "key": "0" * 12, "token": "t" * 43}  # of a link that nobody has


@pytest.mark.slow
def test_what_a_served_route_is_sent_is_read_in_linear_time_off_the_loop(home, ids):
    store = prepare_store(str(home))
    served = ServedModel(pool="edge", orchestrator="direct:agent")
    app = create_model_app(store, served, loopback=True, routers=[build_pool_routes(store)])
    assert find_faults(app, SERVED, {}, ids) == {}


@pytest.mark.slow
def test_what_a_route_of_the_studio_is_sent_is_read_in_linear_time_off_the_loop(prepared, ids):
    from studio.app import create_app

    pages = {page: commands(prepared) for page, commands in PAGES.items()}
    pages["pool"].run("create", {"name": POOL})
    pages["pool"].run("save_worker", {"pool": POOL, "worker": CALCULATOR})
    assert find_faults(create_app(prepared), STUDIO, pages, ids) == {}
