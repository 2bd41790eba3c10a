"""A run is shared from its head by a link that opens without a login, and is taken back there."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from tests.browser.conftest import WINDOWS, Studio, watched_page
from tests.studio.support.recorded import record_run


@pytest.fixture(scope="module")
def run(studio: Studio) -> str:
    store = open_store(find_home(studio.home))
    try:
        return record_run(store, "oracle")
    finally:
        store.close()


def find_faults(page: Page, place: str) -> list[str]:
    found = Axe().run(page, context=place).response["violations"]
    return [node["html"][:300] for rule in found for node in rule["nodes"]]


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_a_run_is_shared_and_taken_back(browser: Browser, studio_url: str, run: str, width: int, dark: bool):
    with watched_page(browser, width=width, dark=dark) as page:
        page.goto(f"{studio_url}/?episode={run}")
        page.get_by_role("button", name="Share", exact=True).click()
        dialog = page.get_by_role("dialog", name="Share this run")
        expect(dialog).to_contain_text("This studio answers on this machine alone")
        dialog.get_by_label("Works for").select_option("7 days")
        dialog.get_by_role("button", name="Make a link").click()
        field = dialog.get_by_label("The link, which is shown this once")
        expect(field).to_be_focused()
        links = dialog.get_by_role("list", name="Links to this run")
        expect(links.get_by_role("listitem")).to_have_count(1)
        assert find_faults(page, ".run-share") == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
        link = field.input_value()
        with watched_page(browser, width=width, dark=dark) as visitor:
            visitor.goto(link)
            expect(visitor.get_by_role("heading", name="A recorded run")).to_be_visible()
            expect(visitor.get_by_test_id("answer")).to_be_visible()
            expect(visitor.get_by_test_id("state")).to_have_text("Answered")
            expect(visitor.get_by_role("group", name="Recorded runs")).to_have_count(0)
            assert find_faults(visitor, "body") == []
            assert visitor.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
        links.get_by_role("button", name="Take back").click()
        expect(links).to_have_count(0)
        dialog.get_by_role("button", name="Close").click()
        expect(page.get_by_role("button", name="Share", exact=True)).to_be_focused()
        assert page.request.get(link).status == 404
