"""The pool as a table, and the navigation on a phone: what stands where, and that nothing is cut off."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import watched_page
from tests.browser.test_pool_and_traces import open_pool

PAGES = ("/", "/pool", "/train", "/tasks", "/compare", "/serve", "/publish", "/traces")
FIRST_NAMES = "names => names.slice(0, 3).map(name => name.textContent)"


def show_table(page: Page, url: str, pool: str = "starter") -> None:
    page.goto(f"{url}/pool?pool={pool}")
    page.get_by_role("button", name="Table", exact=True).click()


def test_the_chosen_view_is_remembered_and_is_shorter(page, studio_url):
    page.goto(f"{studio_url}/pool?pool=starter")
    expect(page.locator(".page-card").first).to_be_visible()
    tall = page.evaluate("document.documentElement.scrollHeight")
    page.get_by_role("button", name="Table", exact=True).click()
    expect(page.locator(".pool-table tbody tr")).to_have_count(19)
    assert page.evaluate("document.documentElement.scrollHeight") < 0.7 * tall
    page.reload()
    expect(page.locator(".pool-table tbody tr")).to_have_count(19)
    page.get_by_role("button", name="Cards", exact=True).click()
    expect(page.locator(".page-card")).to_have_count(19)


def test_columns_sort_either_way(page, studio_url):
    show_table(page, studio_url)
    head = page.get_by_role("columnheader", name="Name")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    names = page.locator(".pool-row-name")
    assert names.evaluate_all(FIRST_NAMES) == ["airports", "atlas_search", "calculator"]
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    assert names.evaluate_all(FIRST_NAMES) == ["verifier", "units", "sql"]


def test_a_row_opens_its_worker_where_all_can_be_done_with_it(page, studio_url):
    open_pool(page, studio_url, "rows")
    page.get_by_role("button", name="Table", exact=True).click()
    row = page.locator(".pool-table tr[data-name=units]")
    row.locator("td[data-name=Kind]").click()
    drawer = page.locator(".page-drawer")
    expect(drawer.get_by_role("heading", name="units").first).to_be_visible()
    drawer.get_by_role("button", name="Test units").click()
    expect(drawer.locator(".pool-test")).to_be_visible()
    drawer.get_by_role("switch", name="Disable units").click()
    expect(drawer.get_by_role("switch", name="Enable units")).to_be_visible()
    page.keyboard.press("Escape")
    expect(row.locator("td[data-name=Test]")).to_have_text("Disabled")


@pytest.mark.parametrize("width", [390, 1440])
def test_no_name_is_cut_and_the_table_fits_the_window(browser: Browser, studio_url, width):
    with watched_page(browser, width=width) as page:
        show_table(page, studio_url)
        expect(page.locator(".pool-table tbody tr")).to_have_count(19)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        cut = "names => names.filter(name => name.scrollWidth > name.clientWidth + 1).map(name => name.textContent)"
        assert page.locator(".pool-row-name, .pool-table td[data-name=Test]").evaluate_all(cut) == []
        edges = "rows => rows.every(row => row.getBoundingClientRect().right <= innerWidth)"
        assert page.locator(".pool-table tbody tr").evaluate_all(edges)


@pytest.mark.parametrize("address", PAGES)
def test_a_phone_shows_every_page_and_marks_the_current_one(browser: Browser, studio_url, address):
    with watched_page(browser, width=390, height=844) as page:
        page.goto(studio_url + address)
        links = page.locator("#nav nav .podium-nav-link")
        expect(links).to_have_count(len(PAGES))
        boxes = links.evaluate_all("links => links.map(link => link.getBoundingClientRect())")
        assert all(box["left"] >= 0 and box["right"] <= 390 and box["bottom"] <= 130 for box in boxes)
        expect(page.locator("#nav nav [aria-current=page]")).to_have_attribute("href", address)
        colours = "link => getComputedStyle(link).backgroundColor"
        current = page.locator("#nav nav [aria-current=page]").evaluate(colours)
        assert current != page.locator("#nav nav :not([aria-current])").first.evaluate(colours)


ADD_MANY = """async (pool) => {
  const { sendCommand } = await import("/podium/web/lib/api.js");
  const names = Array.from({ length: 70 }, (_, k) => `tool${k}`);
  const workers = names.map((name) => ({ name, kind: "calculator", description: "Counts.", config: {} }));
  return sendCommand("pool", { action: "add_workers", pool, workers });
}"""


def test_of_a_large_pool_the_first_cards_are_drawn_and_the_others_on_demand(page, studio_url):
    open_pool(page, studio_url, "many")
    assert page.evaluate(ADD_MANY, "many")["ok"]
    page.reload()
    cards = page.locator(".page-card")
    expect(cards).to_have_count(60)
    page.get_by_label("Search workers").fill("tool69")
    expect(cards).to_have_count(1)
    page.get_by_label("Search workers").fill("")
    page.get_by_role("button", name="Show 29 more").click()
    expect(cards).to_have_count(89)
    expect(page.locator("[data-key=more-cards]")).to_have_count(0)
    page.goto(f"{studio_url}/pool?pool=many&worker=tool65")
    expect(page.locator(".pool-linked h2")).to_have_text("tool65")
