"""Skills at the pages: an agent's are agreed to at an import, refused where their folder is gone and shown in the
budget; those that are made of plans are found, added and removed in the drawer of the pool."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from orchestrator.traces.store import open_store
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from tests.browser.conftest import WINDOWS, Studio, watched_page
from tests.browser.support.pools import SlowModel, chat_pool, slow_model
from tests.browser.test_run_page import import_pool
from tests.trainer.skills.test_find import CALC, UNITS, record_two


def test_a_skill_is_agreed_to_read_and_shown_in_the_budget(browser, studio: Studio, tmp_path: Path):
    folder = tmp_path / "invoices"
    folder.mkdir()
    text = "---\nname: invoices\ndescription: Totals of invoices.\n---\nAdd the tax last.\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    with slow_model() as base_url, watched_page(browser) as page:
        SlowModel.release.set()
        document = json.loads(chat_pool("skilled", base_url))
        document["workers"] = document["workers"][:1]
        document["workers"][0]["config"]["skills"] = [str(folder)]
        import_pool(page, studio.url, json.dumps(document))
        page.get_by_role("button", name="Edit first", exact=True).click()
        page.get_by_label("Skills").fill(str(tmp_path / "gone"))
        page.locator(".page-drawer").get_by_role("button", name="Save").click()
        page.get_by_role("button", name="I have read this: go on").click()
        expect(page.locator(".form-wrong")).to_contain_text("cannot be read")
        page.goto(f"{studio.url}/?pool=skilled&orchestrator=direct:first")
        expect(page.locator("#run")).to_be_enabled()
        page.locator("#query textarea").fill("Use invoices: what is due?")
        page.locator("#run").click()
        page.locator(".run-graph-world .run-graph-card").first.click()
        budget = page.get_by_test_id("context")
        expect(budget.get_by_role("listitem")).to_contain_text(
            ["Role", "Agent skills", "Agent skill invoices, read", "Instruction", "Room for the reply"]
        )
        expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("Add the tax last.")


@pytest.fixture(scope="module")
def solved(studio: Studio) -> str:
    """The name of a pool with two right runs of like plans."""

    def record() -> None:
        store = open_store(find_home(studio.home))
        store.pools.save(Pool(name="mine", workers=(CALC, UNITS)))
        record_two(store)
        store.close()

    with ThreadPoolExecutor(1) as thread:  # Playwright has an event loop in the tests' own thread
        thread.submit(record).result()
    return "mine"


def open_drawer(page: Page, studio: Studio, pool: str):
    page.goto(f"{studio.url}/pool?pool={pool}")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Plan skills", exact=True).click()
    return page.locator(".page-drawer")


def test_a_skill_is_found_added_and_removed_in_the_drawer(page: Page, studio: Studio, solved: str):
    drawer = open_drawer(page, studio, solved)
    expect(drawer.get_by_role("heading", name="None in this pool yet")).to_be_visible()
    drawer.get_by_role("button", name="Find plan skills").click()
    candidate = drawer.get_by_role("list", name="Plan skills that may be added").get_by_role("listitem")
    expect(candidate).to_contain_text("calc_units(number, from_unit)")
    expect(candidate).to_contain_text("Calls calc, then units. Right on 2 of 2")
    candidate.get_by_role("button", name="Add calc_units").click()
    own = drawer.get_by_role("list", name="Plan skills of this pool").get_by_role("listitem")
    expect(own).to_contain_text("calc_units(number, from_unit)")
    expect(candidate).to_have_count(0)
    own.get_by_role("button", name="Remove calc_units").click()
    expect(drawer.get_by_role("heading", name="None in this pool yet")).to_be_visible()


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_the_drawer_fits_and_can_be_read(studio: Studio, solved: str, browser, width, dark):
    with watched_page(browser, width=width, dark=dark) as shown:
        drawer = open_drawer(shown, studio, solved)
        drawer.get_by_role("button", name="Find plan skills").click()
        expect(drawer.get_by_role("button", name="Add calc_units")).to_be_visible()
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        violations = [
            node["html"][:300]
            for rule in Axe().run(shown, context=".page-drawer").response["violations"]
            for node in rule["nodes"]
        ]
        assert not violations, violations
