"""The graphs of the Compare page: their names stay whole, and three of them leave no place empty."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.test_compare_page import data, no_job_left, open_pair

__all__ = ["data", "no_job_left"]

CUT_NAMES = """names => names.filter(name => name.scrollWidth > name.clientWidth + 1).map(name => name.textContent)"""
BOXES = "sides => sides.map(side => side.getBoundingClientRect()).map(({ top, left, right }) => ({ top, left, right }))"


def test_names_in_graphs_side_by_side_are_whole(page, studio_url, data):
    _, pair, _ = data
    open_pair(page, studio_url, pair)
    names = page.locator(".compare-query-side .run-graph-world .run-graph-name")
    assert names.count() > 0
    assert names.evaluate_all(CUT_NAMES) == []


def test_three_graphs_leave_no_place_empty(page, studio_url):
    page.goto(f"{studio_url}/compare?o=oracle&o=random_plan&o=direct:solver&arrange=side")
    page.get_by_role("combobox", name="Suite").select_option("ledger 2")
    page.get_by_role("button", name="Draw a query").click()
    expect(page.get_by_role("textbox", name="Query")).not_to_have_value("")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.locator(".compare-query-side [data-testid=verdict]").nth(2).wait_for()
    boxes = page.locator(".compare-query-side").evaluate_all(BOXES)
    assert len({round(box["top"]) for box in boxes}) == 1, "one line"
    assert len({round(box["left"]) for box in boxes}) == 3

    page.get_by_role("button", name="Stacked").click()
    stacked = page.locator(".compare-query-side").evaluate_all(BOXES)
    assert len({(round(box["left"]), round(box["right"])) for box in stacked}) == 1, "one width"
    page.reload()
    page.locator(".compare-query-grid[data-arrange=stack]").wait_for()
