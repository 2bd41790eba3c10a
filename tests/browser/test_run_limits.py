"""Limits of one run: set on the Run page, kept by the run, and there again after a reload."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.test_run_page import FINISHED, choose

MODELS = ("solver", "planner", "verifier", "self")


def test_a_run_is_limited_on_the_page(page: Page, studio_url: str):
    page.goto(f"{studio_url}/?pool=starter&orchestrator=oracle")
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    page.get_by_role("button", name="Options").click()
    for name in MODELS:
        choose(page, "run-without", name)
    page.keyboard.press("Escape")
    dollars = page.get_by_label("Most US dollars")
    dollars.fill("a lot")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("'a lot' is no number of US dollars")
    dollars.fill("0.02")
    page.get_by_label("Outputs seen by these alone").fill("sql = units; 9 =")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_test_id("state")).to_have_text(FINISHED)
    sentence = (
        "Without solver, planner, verifier, self. At most $0.02. The output of sql is seen by units alone. "
        "The output of step 9 is seen by no other worker."
    )
    expect(page.get_by_test_id("limits")).to_have_text(sentence)
    assert [node["html"][:300] for rule in Axe().run(page).response["violations"] for node in rule["nodes"]] == []

    page.reload()  # the next run of this query has the same limits
    expect(page.get_by_label("Most US dollars")).to_have_value("0.02")
    expect(page.get_by_label("Outputs seen by these alone")).to_have_value("sql = units; 9 = ")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "the page scrolls sideways"
