"""The Serve page as a person uses it, with the snippets that it shows; and a studio that people log in to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from studio.access.accounts import Accounts
from studio.model_server import server_record
from studio.prepare import prepare_store
from tests.browser.conftest import WINDOWS, Studio, watched_page
from tests.browser.support.pools import XSS
from tests.studio.support.edge_home import model
from tests.studio.support.edge_model import EdgeModel
from tests.studio.support.served import edge_pool

__all__ = ["model"]

LONG_MS = 180_000  # a server imports a good deal first; minutes on a busy machine
PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def edge(studio: Studio, model: EdgeModel) -> Iterator[Studio]:
    """The studio, with a pool of one agent at the network's edge. Stops what is still served in the end."""
    store = open_store(find_home(studio.home))
    store.pools.save(edge_pool(model.url))
    store.close()
    yield studio
    for one in server_record.list_servers(find_home(studio.home)):
        server_record.stop_server(find_home(studio.home), one.port)


def snippet(page: Page, tab: str) -> str:
    page.get_by_role("tab", name=tab).click()
    return page.locator(".serve-snippet").inner_text()


@pytest.mark.slow
def test_serve_from_the_page_call_it_as_the_snippets_say_and_stop_it(edge, page):
    page.goto(f"{edge.url}/serve?pool=edge&orchestrator=direct")
    expect(page.get_by_text("Nothing is served yet")).to_be_visible()
    page.get_by_label("Name of a new token").fill("notebook")
    page.get_by_role("button", name="New token").click()
    token = page.locator(".serve-token").inner_text()
    page.get_by_role("button", name="Start serving").click()
    card = page.get_by_role("article", name="podium-edge")
    expect(card.locator(".traces-pill")).to_have_text("ready", timeout=LONG_MS)

    environment = {**os.environ, "PODIUM_TOKEN": token}
    for tab in ("Python", "Stream", "LangChain"):
        done = subprocess.run(
            [sys.executable, "-c", snippet(page, tab)], capture_output=True, text=True, env=environment, timeout=240
        )
        assert "What can you do?" in done.stdout, done.stderr
    done = subprocess.run(["bash", "-c", snippet(page, "curl")], capture_output=True, text=True, env=environment)
    assert '"content":"What can you do?"' in done.stdout, done.stderr
    assert "--mcp" in snippet(page, "MCP")
    expect(card.get_by_text("4 answered")).to_be_visible()

    page.goto(f"{edge.url}/traces?user=notebook")
    expect(page.locator("td[data-name=User]").first).to_have_text("notebook")
    expect(page.locator(".traces-table tbody tr")).to_have_count(4)

    page.goto(f"{edge.url}/serve")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove the token notebook").click()
    expect(page.locator(".serve-tokens li")).to_have_count(0)
    card = page.get_by_role("article", name="podium-edge")
    expect(card).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(card).to_have_count(0, timeout=30_000)


@pytest.mark.slow
def test_a_web_page_is_let_in_and_nothing_of_it_is_stored(edge, page):
    page.goto(f"{edge.url}/serve?pool=edge&orchestrator=direct")
    page.get_by_label("Model name").fill("quiet")
    page.get_by_label("Web pages that may use it").fill("http://localhost:3000")
    page.get_by_label("Store nothing of its requests").check()
    page.get_by_role("button", name="Start serving").click()
    card = page.get_by_role("article", name="quiet")
    expect(card.locator(".traces-pill")).to_have_text("ready", timeout=LONG_MS)
    expect(card.get_by_text("http://localhost:3000")).to_be_visible()
    base = card.locator(".serve-facts code").first.inner_text()
    body = {"model": "quiet", "messages": [{"role": "user", "content": "say tea"}]}
    answer = httpx.post(f"{base}/chat/completions", json=body, headers={"origin": "http://localhost:3000"}, timeout=60)
    assert answer.headers["access-control-allow-origin"] == "http://localhost:3000", answer.text
    assert answer.json()["podium"]["trace"] is None
    expect(card.get_by_text("1 answered · nothing of them is stored")).to_be_visible()
    card.get_by_role("button", name="Stop").click()
    expect(card).to_have_count(0, timeout=30_000)


def test_what_cannot_be_served_is_told_at_its_field_and_loses_nothing(edge, page):
    page.goto(f"{edge.url}/serve?pool=edge&orchestrator=pipeline")
    page.get_by_label("Model name").fill(XSS)
    page.get_by_label("Port").fill(str(edge.port))
    page.get_by_role("button", name="Start serving").click()
    expect(page.locator(".serve-problem").filter(has_text=f"{edge.port} of 127.0.0.1 cannot be used")).to_be_visible()
    page.get_by_label("Let other machines in").check()
    page.get_by_label("Port").fill("0")
    page.get_by_role("button", name="Start serving").click()
    expect(page.get_by_text("a port is a number")).to_be_visible()
    assert page.get_by_label("Model name").input_value() == XSS
    page.get_by_label("Web pages that may use it").fill("http://localhost:3000, localhost")
    page.get_by_label("Port").fill("8099")
    page.get_by_role("button", name="Start serving").click()
    expect(page.get_by_text("'localhost' is no origin")).to_be_visible()
    page.get_by_label("Web pages that may use it").fill("")
    page.get_by_label("Port").fill("8099")
    page.get_by_role("button", name="Start serving").click()
    expect(page.get_by_text("other machines need a token")).to_be_visible()
    assert page.evaluate("window.hacked") is None


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_the_serve_page_fits_and_is_accessible(edge, browser, width, dark):
    with watched_page(browser, width, dark=dark) as page:
        page.goto(f"{edge.url}/serve")
        expect(page.locator("#page select").first).not_to_be_empty()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        found = Axe().run(page, context="#serve-page").response["violations"]
        assert found == [], [(each["id"], each["nodes"][0]["html"]) for each in found]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, model: EdgeModel) -> Iterator[Studio]:
    """A studio that asks for a login, with two people who have one."""
    running = Studio(tmp_path_factory.mktemp("shared") / "home", arguments=("--login",))
    store = prepare_store(str(running.home))
    store.pools.save(edge_pool(model.url))
    for name in ("ada", "bob"):
        Accounts(store.engine).add(name, PASSWORD)
    store.close()
    running.start()
    yield running
    running.stop()


def log_in(page: Page, name: str, password: str = PASSWORD) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


@pytest.mark.slow
def test_a_person_logs_in_runs_something_under_their_name_and_logs_out(shared, browser):
    with watched_page(browser) as page:
        page.goto(f"{shared.url}/?pool=edge&orchestrator=direct")
        assert page.url.startswith(f"{shared.url}/login?next=")
        log_in(page, "ada")
        page.wait_for_url(f"{shared.url}/?pool=edge&orchestrator=direct")
        expect(page.locator(".podium-me")).to_contain_text("ada")
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
        page.locator("#query textarea").fill("say hello")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.locator(".run-graph-card:visible").first).to_be_visible(timeout=LONG_MS)
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url(f"{shared.url}/login")
    with watched_page(browser) as page:
        page.goto(f"{shared.url}/traces")
        log_in(page, "bob")
        page.wait_for_url(f"{shared.url}/traces")
        row = page.locator(".traces-table tbody tr").filter(has_text="say hello")
        expect(row.locator("td[data-name=User]")).to_have_text("ada")
        page.get_by_label("Everybody").select_option("ada")
        expect(row).to_have_count(1)


def test_a_wrong_password_is_told_and_the_name_stays(shared, browser):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{shared.url}/login?next=//evil.invalid/")
    log_in(page, "bob", "not the password")
    expect(page.get_by_role("alert")).to_have_text("Name or password is wrong.")
    assert page.get_by_label("Name").input_value() == "bob" and page.get_by_label("Password").input_value() == ""
    log_in(page, "bob")
    page.wait_for_url(f"{shared.url}/")  # never another site
    context.close()


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_the_login_page_fits_and_is_accessible(shared, browser: Browser, width, dark):
    with watched_page(browser, width, dark=dark) as page:
        page.goto(f"{shared.url}/login")
        expect(page.get_by_role("button", name="Log in")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        found = Axe().run(page).response["violations"]
        assert found == [], [(each["id"], each["nodes"][0]["html"]) for each in found]
