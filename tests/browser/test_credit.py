"""Credit on the Run page: what each part of a graded run is worth, told beside it and marked on its graph."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.test_run_page import run_first_query


def test_the_credit_of_a_run_is_measured_at_a_click_and_marked_on_its_graph(page: Page, studio_url: str):
    run_first_query(page, studio_url)
    section = page.get_by_role("region", name="Credit")
    section.get_by_role("button", name="Measure credit").click()
    expect(section.locator("li[data-kind=worker]").first).to_be_visible(timeout=60_000)
    expect(section.locator("li[data-kind=access] b").first).to_have_text("needed")
    cards = page.locator(".run-graph-world .run-graph-card")
    expect(cards.locator(".run-credit-mark")).to_have_count(cards.count())
    expect(cards.locator(".run-credit-mark[data-credit=needed]").first).to_be_visible()
