"""A pool's finalizer: chosen among its limits, seen at work on the Run page, and left out of one run."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from tests.browser.conftest import watched_page
from tests.browser.support.scripted_model import compute, scripted_model, sums_pool
from tests.browser.test_run_page import FINISHED, import_pool

PROSE = "There are 42 crates in hall 7."


def test_the_final_answer_is_written_and_the_plans_own_is_one_click_away(browser: Browser, studio_url: str):
    with scripted_model([compute("40+2"), PROSE]) as address, watched_page(browser) as page:
        import_pool(page, studio_url, sums_pool("crates", address, ("planner", "writer")))
        page.get_by_role("button", name="More", exact=True).click()
        page.get_by_role("button", name="Limits", exact=True).click()
        finalizer = page.get_by_label("Finalizer")
        assert finalizer.get_by_role("option").all_inner_texts() == ["off", "planner", "writer"], "no tool is offered"
        finalizer.select_option("writer")
        page.get_by_role("button", name="Save limits").click()
        expect(page.locator(".page-toast")).to_contain_text("Saved as version")

        page.goto(f"{studio_url}/?pool=crates&orchestrator=model:planner:plan")
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
        page.get_by_role("button", name="Options").click()
        expect(page.locator("#run-finalizer")).to_be_visible()
        expect(page.locator("#run-finalizer input")).to_have_value("by writer")
        page.locator("#query textarea").fill("How many crates are in hall 7?")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_test_id("state")).to_have_text(FINISHED)
        expect(page.get_by_test_id("answer")).to_have_text(PROSE)
        expect(page.get_by_test_id("final")).to_contain_text("Final answer written by writer.")
        own = page.get_by_test_id("plan-answer")
        expect(own).to_be_hidden()
        page.get_by_role("button", name="The plan's own answer").click()
        expect(own).to_have_text("42")
        page.get_by_role("button", name=f"Final answer written by writer {PROSE}").click()
        inspector = page.get_by_role("complementary", name="Inspector")
        expect(inspector).to_contain_text("Final answer · writer")
        expect(inspector).to_contain_text("Step 1 · calculator")
        violations = [node["html"][:300] for rule in Axe().run(page).response["violations"] for node in rule["nodes"]]
        assert violations == []
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, "the page scrolls sideways"

        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(f"{studio_url}/?pool=starter")
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
        page.get_by_role("button", name="Options").click()
        expect(page.get_by_label("Most US dollars")).to_be_visible()
        expect(page.locator("#run-finalizer input")).to_have_value("in words")
        page.goto(f"{studio_url}/?pool=crates&orchestrator=model:planner:plan+finalizer=off")
        expect(page.locator("#run-finalizer")).to_be_visible()
        expect(page.locator("#run-finalizer input")).to_have_value("the plan's own")
        page.locator("#query textarea").fill("How many crates are in hall 7?")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_test_id("state")).to_have_text(FINISHED)
        expect(page.get_by_test_id("answer")).to_have_text("42")
        expect(page.locator(".run-summary-about").first).to_contain_text("with the plan's own answer")
        expect(page.get_by_test_id("final")).to_have_count(0)
