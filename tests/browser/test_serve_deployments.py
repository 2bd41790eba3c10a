"""Deployments on the Serve page: a candidate is tried, promoted and rolled back with clicks."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from studio.deployments.store import Deployments
from studio.housekeeping.things import Things
from studio.model_server import server_record
from tests.browser.conftest import WINDOWS, Studio, watched_page
from tests.studio.support.edge_home import model
from tests.studio.support.edge_model import EdgeModel
from tests.studio.support.reports import make_report
from tests.studio.support.served import edge_pool
from trainer.results.improvement import write_report

__all__ = ["model"]

LONG_MS = 180_000


@pytest.fixture(scope="module")
def edge(studio: Studio, model: EdgeModel) -> Iterator[Studio]:
    """The studio, with a pool of one agent and the report of an improvement on it."""
    home = find_home(studio.home)
    store = open_store(home)
    version = store.pools.save(edge_pool(model.url)).version
    store.close()
    folder = home.root / "improvements" / "first"
    folder.mkdir(parents=True)
    write_report(folder, make_report(pool="edge", pool_version=version, serving="direct", candidate="react"))
    yield studio
    for server in server_record.list_servers(home):
        server_record.stop_server(home, server.port)
    deadline = time.monotonic() + 30
    while server_record.list_servers(home) and time.monotonic() < deadline:
        time.sleep(0.1)
    store = open_store(home)  # the browser's other tests share this studio
    for name in Deployments(store.engine).names():
        Things(store).delete("deployment", name)
    store.close()


def deploy(page: Page, edge: Studio, name: str) -> Locator:
    """Deploy `direct` on the page; returns the deployment's card."""
    page.goto(f"{edge.url}/serve?pool=edge&orchestrator=direct")
    page.get_by_label("Model name").fill(name)
    page.get_by_role("button", name="Deploy under this name").click()
    card = page.get_by_role("article", name=f"Deployment {name}")
    expect(card).to_contain_text("Direct · Pool edge")
    return card


def try_candidate(card: Locator, name: str, how: str) -> None:
    card.get_by_label("Candidate for").select_option(name)
    card.get_by_label("How it is tried").select_option(label=how)
    card.get_by_role("button", name="Try it").click()


def read_serving(edge: Studio, name: str) -> str:
    store = open_store(find_home(edge.home))
    try:
        return Deployments(store.engine).latest(name).state.serving.orchestrator
    finally:
        store.close()


def test_a_candidate_with_a_report_is_promoted_and_rolled_back_with_a_click(edge, page):
    card = deploy(page, edge, "clicks")
    try_candidate(card, "react", "on 10 %")
    expect(card).to_contain_text("ReAct answers 10% of the conversations.")
    expect(card).to_contain_text("own tasks +0.150")
    card.get_by_role("button", name="Promote").click()
    expect(card).to_contain_text("ReAct · Pool edge")
    assert read_serving(edge, "clicks") == "react"
    card.get_by_role("button", name="Roll back").click()
    expect(card).to_contain_text("Direct · Pool edge")
    assert read_serving(edge, "clicks") == "direct"
    expect(card.get_by_role("button", name="Roll back")).to_have_count(0)
    card.get_by_text("History (4)").click()
    expect(card.get_by_role("listitem").first).to_contain_text("rolled back Direct on edge")
    expect(card.get_by_role("listitem").nth(1)).to_contain_text("own tasks +0.150 [+0.050, +0.250], n = 80")


def test_one_without_a_report_is_promoted_for_a_reason_alone(edge, page):
    card = deploy(page, edge, "reasons")
    try_candidate(card, "fan_out", "in the shadow")
    expect(card).to_contain_text("No report compares it with what serves")
    card.get_by_role("button", name="Promote all the same").click()
    expect(page.get_by_text("Say why it is promoted all the same")).to_be_visible()
    card.get_by_label("Reason to promote").fill("Half the cost")
    card.get_by_role("button", name="Promote all the same").click()
    expect(card).to_contain_text("Fan-out · Pool edge")
    card.get_by_text("History (3)").click()
    expect(card.get_by_role("listitem").first).to_contain_text("Half the cost")


def test_what_cannot_be_deployed_is_told_at_its_field(edge, page):
    page.goto(f"{edge.url}/serve?pool=edge&orchestrator=direct")
    page.get_by_role("button", name="Deploy under this name").click()
    expect(page.get_by_text("a deployment needs a name")).to_be_visible()
    page.get_by_label("Model name").fill("two words")
    page.get_by_role("button", name="Deploy under this name").click()
    expect(page.get_by_text("cannot be a deployment's name")).to_be_visible()


@pytest.mark.slow
def test_a_served_deployment_follows_the_clicks(edge, page):
    card = deploy(page, edge, "live")
    card.get_by_role("button", name="Serve").click()
    expect(card.locator(".traces-pill")).to_contain_text("served on port", timeout=LONG_MS)
    (server,) = [row for row in server_record.list_servers(find_home(edge.home)) if row.deployment == "live"]

    def send() -> httpx.Headers:
        body = {"model": "live", "messages": [{"role": "user", "content": "say hello"}]}
        return httpx.post(f"{server.url}/chat/completions", json=body, timeout=60).headers

    def ask() -> str:
        return send()["x-podium-orchestrator"]

    assert ask() == "direct"
    try_candidate(card, "react", "in the shadow")
    card.get_by_role("button", name="Promote").click()
    expect(card).to_contain_text("ReAct · Pool edge")
    headers = send()
    assert headers["x-podium-orchestrator"] == "react"
    card.get_by_role("button", name="Roll back").click()
    expect(card).to_contain_text("Direct · Pool edge")
    assert ask() == "direct"
    page.goto(f"{edge.url}/?episode={headers['x-podium-trace']}")
    mark = page.get_by_test_id("served")
    expect(mark).to_have_text("Deployment live, change 3 · serving")
    mark.get_by_role("link").click()
    expect(card.get_by_role("listitem").and_(page.locator("[aria-current]"))).to_contain_text(
        "3. promoted ReAct on edge"
    )


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_the_deployments_fit_and_are_accessible(edge, browser, width, dark):
    with watched_page(browser, width, dark=dark) as page:
        name = f"wide-{width}-{dark}"
        card = deploy(page, edge, name)
        try_candidate(card, "fan_out", "in the shadow")
        expect(card).to_contain_text("Not to be promoted yet")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        violations = Axe().run(page, context="#serve-page").response["violations"]
        assert violations == [], [(row["id"], row["nodes"][0]["html"]) for row in violations]
