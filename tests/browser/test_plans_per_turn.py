"""Several plans for a turn: chosen on the Run page, voted on, and read in the inspector."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import watched_page
from tests.browser.support.scripted_model import TOKENS_IN, TOKENS_OUT, compute, scripted_model, sums_pool
from tests.browser.test_run_page import FINISHED, choose, import_pool, open_options

REPLIES = [compute("2+2"), compute("1/0"), compute("8/2"), compute("4.0")]
NAME = "model:planner:plan+samples=4"


def open_model(page: Page, url: str, pool: str) -> None:
    """Open the Run page with a pool's model as the orchestrator."""
    page.goto(f"{url}/?pool={pool}")
    expect(page.locator("#run-pool input")).to_have_value(pool)
    choose(page, "run-orchestrator", "Model")
    open_options(page)
    expect(page.locator("#run-plans")).to_be_visible()


@pytest.mark.slow
def test_four_plans_for_a_turn_are_voted_on_and_the_inspector_shows_the_vote(browser: Browser, studio_url: str):
    with scripted_model(REPLIES) as address, watched_page(browser) as page:
        import_pool(page, studio_url, sums_pool("voted", address))
        open_model(page, studio_url, "voted")
        expect(page.locator("#composer-note")).not_to_contain_text("times the tokens")
        choose(page, "run-plans", "4")
        expect(page.locator("#composer-note")).to_contain_text("about 4 times the tokens")
        page.locator("#query textarea").fill("What is two plus two?")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_test_id("state")).to_have_text(FINISHED)
        expect(page.get_by_test_id("answer")).to_have_text(re.compile(r"^4(\.0)?$"))
        expect(page.locator(".run-summary-about").first).to_contain_text("planner as planner, 4 plans a turn")

        page.get_by_role("button", name="Round 1: what the orchestrator wrote").click()
        inspector = page.get_by_role("complementary", name="Inspector")
        expect(inspector.get_by_test_id("vote")).to_have_text(re.compile(r"^3 of 4 plans agree on 4(\.0)?\.$"))
        expect(inspector).to_contain_text("1 failed when tried.")
        expect(inspector.get_by_role("list", name="Votes by answer").get_by_role("listitem")).to_have_count(1)
        cost = (
            f"All 4 plans and their trials took {4 * (TOKENS_IN + TOKENS_OUT)} tokens; the chosen plan alone took 10."
        )
        expect(inspector.get_by_test_id("vote-cost")).to_have_text(cost)

        assert Axe().run(page).response["violations"] == []
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, "the page scrolls sideways"

        page.reload()  # the episode's address brings the choice back
        expect(page.locator("#composer")).to_have_class(re.compile("run-folded"))
        open_options(page)
        expect(page.locator("#run-plans input")).to_have_value("4")


def test_plans_per_turn_are_offered_to_orchestrators_that_draw_plans_only(page: Page, studio_url: str):
    page.goto(f"{studio_url}/?pool=starter&orchestrator=starter-grpo+samples=16")
    open_options(page)
    expect(page.locator("#run-plans input")).to_have_value("16")
    expect(page.locator("#composer-note")).to_contain_text("about 16 times the tokens")
    choose(page, "run-orchestrator", "Pipeline")
    expect(page.locator("#run-plans")).to_be_hidden()
    expect(page.locator("#composer-note")).not_to_contain_text("times the tokens")
