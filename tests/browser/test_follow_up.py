"""Follow-up questions on the Run page: asked below an answer, understood at the head of the next run, linked both
ways."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import watched_page
from tests.browser.support.scripted_model import compute, scripted_model, sums_pool
from tests.browser.test_run_page import FINISHED, import_pool


def ask(page: Page, text: str) -> None:
    page.get_by_label("Follow up").fill(text)
    page.get_by_role("button", name="Ask", exact=True).click()


def test_a_follow_up_goes_on_with_a_run(browser: Browser, studio_url: str):
    replies = [compute("12 * 3"), compute("15 * 3"), compute("45 / 9"), "UNCLEAR"]
    with scripted_model(replies) as address, watched_page(browser) as page:
        import_pool(page, studio_url, sums_pool("boxes", address))
        page.goto(f"{studio_url}/?pool=boxes&orchestrator=model:planner:plan")
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
        page.locator("#query textarea").fill("How much is 12 * 3?")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_test_id("state")).to_have_text(FINISHED)
        expect(page.get_by_test_id("answer")).to_have_text("36")

        ask(page, "and 15 * 3?")
        thread = page.get_by_test_id("thread")
        expect(thread).to_contain_text("and 15 * 3?")
        expect(thread).to_contain_text("understood as")
        expect(page.locator(".run-summary-query")).to_have_text("How much is 15 * 3?")
        expect(thread.get_by_role("link", name="How much is 12 * 3?")).to_be_visible()
        expect(page.get_by_test_id("answer")).to_have_text("45")

        ask(page, "what is that divided by 9?")
        expect(page.locator(".run-summary-query")).to_have_text("What is 45 divided by 9?")
        expect(page.get_by_test_id("answer")).to_have_text("5")
        expect(thread.get_by_role("listitem")).to_have_count(2)

        ask(page, "why?")
        form = page.get_by_test_id("follow-up")
        expect(form).to_contain_text("write the question in full")
        expect(page.get_by_role("button", name="Ask exactly this")).to_be_focused()
        violations = [node["html"][:300] for rule in Axe().run(page).response["violations"] for node in rule["nodes"]]
        assert violations == []
        page.reload()
        expect(page.locator(".run-summary-query")).to_be_visible()
        thread.get_by_role("link", name="How much is 15 * 3?").click()
        expect(page.get_by_test_id("follow-up").get_by_role("link", name="What is 45 divided by 9?")).to_be_visible()
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, "the page scrolls sideways"
