"""The table of pages: one row adds a page; its commands are POSTs with one envelope, behind the guards of the app."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest
from fastapi import APIRouter
from fastapi.testclient import TestClient

from studio.access.accounts import Accounts
from studio.runtime import Runtime

pytestmark = pytest.mark.medium

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The table of pages with a page more."""
    from studio.frame.navigation import PAGES, Page

    folder = tmp_path_factory.mktemp("toys")
    (folder / "page.js").write_text("export function mount(root) {}")
    (folder / "toy.css").write_text(".toy {}")
    module = "tests.studio.support.toy_page"
    PAGES.built_in["toy"] = Page("toy", "Toy", "/toy", "M4 4h16", module, ("toy/toy.css",), folder)
    yield PAGES
    del PAGES.built_in["toy"]


@pytest.fixture(scope="module")
def client(pages: dict[str, Any], runtime: Runtime) -> TestClient:
    from studio.app import create_app

    return TestClient(create_app(runtime), base_url="http://127.0.0.1:7860")


@pytest.fixture(scope="module")
def shared(pages: dict[str, Any], runtime: Runtime) -> TestClient:
    """A client of a studio with a login."""
    from studio.app import create_app

    Accounts(runtime.store.engine).add("ada", PASSWORD)
    return TestClient(create_app(runtime, login=True, loopback=False), base_url="http://studio.example:7860")


def test_a_row_of_the_table_is_a_page(client, pages):
    config = client.get("/toy").text
    assert "/podium/web/toy/page.js" in config and 'href=\\"/toy\\" aria-current=\\"page\\"' in config
    for page in pages.values():
        assert client.get(page.address).status_code == 200
        assert f'href=\\"{page.address}\\"' in config


@pytest.mark.parametrize(
    ("name", "address", "module", "reason"),
    [
        ("toy", "/traces", "toy_page", "address '/traces' is taken"),
        ("toy", "toy", "toy_page", "address 'toy' is taken or is not of the form /name"),
        ("lib", "/toy", "toy_page", "name 'lib' is taken"),
        ("housekeeping", "/toy", "toy_page", "name 'housekeeping' is taken"),
        ("../toy", "/toy", "toy_page", "is not a plain word"),
        ("toy", "/toy", "served", "has no function build and no routes"),
    ],
)
def test_a_page_that_would_stand_in_the_way_is_left_out(name, address, module, reason):
    from studio.frame.navigation import PAGES, Page

    page = Page(name, "Toy", address, "M4 4h16", f"tests.studio.support.{module}")
    with pytest.raises(ValueError, match=reason):
        PAGES._make_row(None, page)


@pytest.mark.parametrize("part", ["folder", "routes", "build"])
def test_a_page_of_another_package_that_fails_says_so_and_leaves_the_others(part, runtime, monkeypatch, tmp_path):
    from studio.app import create_app
    from studio.frame.navigation import PAGES, Page
    from tests.studio.support import toy_page

    def fail(_runtime: Runtime) -> None:
        raise RuntimeError("no <such> thing")

    module = ModuleType("weather_page")
    vars(module).update({"build": toy_page.build, "routes": lambda _runtime: APIRouter()} | {part: fail})
    monkeypatch.setitem(sys.modules, module.__name__, module)
    folder = tmp_path / "gone" if part == "folder" else tmp_path
    page = Page("weather", "Weather", "/weather", "M4 4h16", module.__name__, (), folder)
    monkeypatch.setitem(PAGES._extensions.rows, "weather", page)
    monkeypatch.setitem(PAGES._extensions.entries, "weather", EntryPoint("weather", "x:Y", "podium.pages"))
    client = TestClient(create_app(runtime), base_url="http://127.0.0.1:7860")
    shown = client.get("/weather").text
    assert "cannot be shown" in shown and "remove it" in shown and "no <such>" not in shown
    assert "cannot be shown" not in client.get("/traces").text


def test_every_stylesheet_of_the_table_is_served(client, pages):
    head = client.get("/").text
    for page in pages.values():
        for path in page.stylesheets:
            address = f"/podium/web/{path}"
            assert f'href=\\"{address}\\"' in head, address
            assert client.get(address).status_code == 200, address


def test_a_reply_has_one_envelope(client):
    said = client.post("/api/pages/toy/greet", json={"name": "Ada"})
    assert said.json() == {"ok": True, "message": "Hello Ada", "problems": [], "user": ""}
    refused = client.post("/api/pages/toy/refuse", json={}).json()
    assert refused == {"ok": False, "message": "", "problems": [["toy", "this toy is broken"]]}
    assert client.post("/api/pages/toy/greet", json={}).json()["problems"][0][0] == "name"


def test_a_command_that_is_not_there_is_a_problem(client):
    reply = client.post("/api/pages/toy/dance", json={}).json()
    assert not reply["ok"] and "dance" in reply["problems"][0][1]
    assert client.post("/api/pages/nowhere/dance", json={}).status_code in (404, 405)


@pytest.mark.parametrize("text", ["\\u0000", "a\\ud800b"])
@pytest.mark.parametrize("place", ['"%s"', '[{"x": "%s"}]', '[{"%s": 1}]'])
def test_what_is_no_character_is_a_problem_at_its_field(client, text, place):
    body = '{"other": "\\ud83d\\ude00", "name": %s}' % (place % text)
    reply = client.post("/api/pages/toy/greet", content=body, headers={"content-type": "application/json"}).json()
    assert reply["problems"] == [["name", "this holds something that is no character; type it again"]]


@pytest.mark.parametrize("nested", [False, True])
def test_a_text_of_megabytes_is_refused_at_its_field_unless_that_holds_a_file(client, nested):
    long = "a" * 1_000_001
    fields = {"name": [{"a": long}] if nested else long}
    reply = client.post("/api/pages/pool/create", json=fields).json()
    assert reply["problems"] == [["name", "this has more than 1,000,000 characters; shorten it"]]
    reply = client.post("/api/pages/pool/recognise", json={"text": long}).json()
    assert "1,000,000" not in str(reply["problems"])


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"7", b'"text"', b"{", b"\xff", b"name=ada"])
def test_a_body_that_is_not_an_object_is_refused(client, body):
    answer = client.post("/api/pages/toy/greet", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 400),
        ({"origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"origin": "null"}, 403),
    ],
)
@pytest.mark.parametrize("command", ["toy/greet", "pool/create", "train/submit", "serve/start", "publish/publish"])
def test_other_origins_and_hosts_cannot_send_commands(client, command, headers, status):
    assert client.post(f"/api/pages/{command}", json={"name": "x"}, headers=headers).status_code == status


def test_a_form_of_another_site_is_not_read_as_json(client):
    answer = client.post(
        "/api/pages/toy/greet", content=json.dumps({"name": "x"}), headers={"content-type": "text/plain"}
    )
    assert answer.status_code in (415, 422)


def test_commands_need_a_session_and_know_its_user(shared):
    for command in ("toy/greet", "pool/show", "train/open", "compare/run", "serve/add_token", "publish/open"):
        assert shared.post(f"/api/pages/{command}", json={}).status_code == 401, command
    shared.post("/login", data={"name": "ada", "password": PASSWORD})
    assert shared.post("/api/pages/toy/greet", json={"name": "x"}).json()["user"] == "ada"


def test_an_episode_that_a_command_starts_is_marked_with_the_user(shared, runtime):
    shared.post("/login", data={"name": "ada", "password": PASSWORD})
    fields = {"pool": "starter", "query": "What is 2 + 2?", "orchestrators": ["random_plan", "direct_oracle", "oracle"]}
    reply = shared.post("/api/pages/compare/run", json=fields).json()
    episodes = [run["episode"] for run in reply["started"] if run["episode"]]
    assert episodes and {runtime.store.traces.row(episode).user_name for episode in episodes} == {"ada"}
