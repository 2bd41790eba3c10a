"""Pages of other origins: refused unless the server's owner names them, and then served as a browser needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from orchestrator.traces.store import open_store
from pool_registry.errors import PoolError
from pool_registry.storage.data_folder import find_home
from studio.__main__ import app as podium
from studio.access.accounts import Tokens
from studio.model_server.app import create_model_app
from studio.model_server.http.allowed_origins import read_origins
from studio.model_server.service import ServedModel
from tests.studio.support.edge_home import home, model

__all__ = ["home", "model"]

PAGE, OTHER = "http://localhost:3000", "http://evil.example"
ASK = {"model": "podium-edge", "messages": [{"role": "user", "content": "say hello"}]}
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
Open = Callable[..., TestClient]


@pytest.fixture
def open_server(home: Path) -> Iterator[Open]:
    with ExitStack() as running:

        def start(origins: tuple[str, ...] = (), loopback: bool = True) -> TestClient:
            served = ServedModel("edge", "direct:agent")
            app = create_model_app(open_store(find_home(home)), served, loopback=loopback, origins=origins)
            return running.enter_context(TestClient(app, base_url="http://127.0.0.1"))

        yield start


@pytest.mark.medium
def test_no_page_of_another_origin_is_served_by_default(open_server):
    client = open_server()
    refused = client.post("/v1/chat/completions", json=ASK, headers={"origin": PAGE})
    assert refused.status_code == 403 and "--allow-origin" in refused.text
    asked = client.options("/v1/chat/completions", headers={"origin": PAGE, **PREFLIGHT})
    assert "access-control-allow-origin" not in {*asked.headers, *refused.headers}


@pytest.mark.medium
def test_a_page_that_is_named_is_served(open_server):
    client = open_server((PAGE, "https://chat.example"))
    for origin in (PAGE, "https://chat.example"):
        asked = client.options("/v1/chat/completions", headers={"origin": origin, **PREFLIGHT})
        assert asked.status_code == 200 and asked.headers["access-control-allow-origin"] == origin
        assert "authorization" in asked.headers["access-control-allow-headers"]
        assert "POST" in asked.headers["access-control-allow-methods"]
        sent = {"origin": origin, "sec-fetch-site": "cross-site"}
        answer = client.post("/v1/chat/completions", json=ASK, headers=sent)
        assert answer.json()["choices"][0]["message"]["content"] == "hello"
        assert answer.headers["access-control-allow-origin"] == origin and "origin" in answer.headers["vary"].lower()
        assert "x-podium-trace" in answer.headers["access-control-expose-headers"]


@pytest.mark.medium
def test_other_pages_stay_out_where_one_is_named(open_server):
    client = open_server((PAGE,))
    assert client.options("/v1/chat/completions", headers={"origin": OTHER, **PREFLIGHT}).status_code == 400
    for origin in (OTHER, "null", f"{PAGE}.evil.example", "https://localhost:3000"):
        answer = client.post("/v1/chat/completions", json=ASK, headers={"origin": origin})
        assert answer.status_code == 403 and "access-control-allow-origin" not in answer.headers, origin


@pytest.mark.medium
def test_a_page_that_is_named_still_needs_the_token(open_server, home):
    client = open_server((PAGE,), loopback=False)
    assert client.options("/v1/models", headers={"origin": PAGE, **PREFLIGHT}).status_code == 200
    refused = client.post("/v1/chat/completions", json=ASK, headers={"origin": PAGE})
    assert refused.status_code == 401 and refused.headers["access-control-allow-origin"] == PAGE, (
        "the page can read why"
    )
    store = open_store(find_home(home))
    token = Tokens(store.engine).add("page", "")
    sent = {"origin": PAGE, "authorization": f"Bearer {token}"}
    answer = client.post("/v1/chat/completions", json=ASK, headers=sent)
    Tokens(store.engine).remove("page")
    store.close()
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("http://localhost:3000/", PAGE),
        (" HTTP://LOCALHOST:3000", PAGE),
        ("https://chat.example:443", "https://chat.example"),
        ("http://chat.example:80", "http://chat.example"),
        ("http://[::1]:5173", "http://[::1]:5173"),
        ("chrome-extension://abcdefgh", "chrome-extension://abcdefgh"),
        ("app://obsidian.md", "app://obsidian.md"),
    ],
)
def test_origins_are_read_as_browsers_write_them(text, origin):
    assert read_origins([text]) == (origin,)


@pytest.mark.parametrize(
    "text", ["*", "null", "localhost:3000", "http://x/page", "http://*.x", "http://", "http://a@b", ""]
)
def test_what_is_no_origin_is_refused_with_an_example(text):
    with pytest.raises(PoolError, match="such as http://localhost:3000"):
        read_origins([text])


def test_the_command_says_so_before_it_serves():
    result = CliRunner().invoke(podium, ["serve", "--allow-origin", "*"])
    assert result.exit_code != 0 and isinstance(result.exception, PoolError)
