"""Plans that wait for a person, as that person decides about them: approve, edit, reject, escalation, restart."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import watched_page
from tests.browser.test_run_page import choose

pytestmark = pytest.mark.slow
WAITS = re.compile("Waits for approval")


def start_held_run(page: Page, url: str, mode: str = "review", pool: str = "starter") -> str:
    page.goto(f"{url}/?pool={pool}&orchestrator=oracle")
    expect(page.locator("#query textarea")).not_to_have_value("")
    if mode:
        choose(page, "run-mode", mode)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_test_id("state")).to_have_text(WAITS)
    return page.evaluate("new URLSearchParams(location.search).get('episode')")


def test_a_reviewed_plan_shows_what_it_takes_and_runs_once_it_is_approved(page, studio_url):
    start_held_run(page, studio_url)
    panel = page.locator(".run-approval")
    expect(panel.get_by_role("heading")).to_have_text("The plan waits for you")
    expect(panel).to_contain_text("every plan waits for a person")
    cards = page.locator(".run-graph-world .run-graph-card")
    expect(cards.first).to_have_attribute("data-status", "PENDING")
    expect(panel.locator("tbody tr")).to_have_count(cards.count())
    panel.get_by_label("Note").fill("looks right")
    panel.get_by_role("button", name="Approve and run").click()
    expect(page.get_by_test_id("verdict")).to_have_attribute("data-correct", "true")
    page.get_by_test_id("audit").locator("summary").click()
    expect(page.get_by_test_id("audit")).to_contain_text("Approved by the person at this studio")
    expect(page.get_by_test_id("audit")).to_contain_text("looks right")


def test_a_plan_is_edited_step_by_step_before_it_runs(page, studio_url):
    start_held_run(page, studio_url)
    page.get_by_role("button", name="Edit the plan").click()
    form = page.locator(".what-if-step[data-step='3']")
    form.locator("summary").click()
    form.get_by_label("Request").fill("country of LIS")
    expect(form.locator(".what-if-fate")).to_have_text("changed")
    page.get_by_role("button", name="Approve the edited plan").click()
    expect(page.get_by_test_id("answer")).not_to_be_empty()
    page.get_by_test_id("audit").locator("summary").click()
    expect(page.get_by_test_id("audit")).to_contain_text("step 3 changed")
    page.locator(".run-graph-world .run-graph-card[data-id='3']").click()
    expect(page.locator(".run-inspector").first).to_contain_text("country of LIS")


def test_a_rejected_plan_calls_nobody(page, studio_url):
    start_held_run(page, studio_url)
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_test_id("state")).to_have_text("Rejected")
    expect(page.locator(".run-summary-reason")).to_contain_text("rejected the plan")


def test_a_plan_waits_through_a_reload_and_a_restart_and_is_found_again(page, studio, studio_url):
    episode = start_held_run(page, studio_url)
    page.reload()
    expect(page.get_by_test_id("state")).to_have_text(WAITS)
    page.goto("about:blank")
    studio.restart()
    page.goto(f"{studio_url}/?pool=starter")
    page.locator(".run-approval-others").get_by_role("link").first.click()
    page.goto(f"{studio_url}/?episode={episode}")
    page.get_by_role("button", name="Approve and run").click()
    expect(page.get_by_test_id("verdict")).to_have_attribute("data-correct", "true")


def test_a_pool_escalates_where_it_is_set_to_and_says_why(page, studio_url):
    page.goto(f"{studio_url}/pool")
    page.get_by_role("button", name="New pool").click()
    drawer = page.locator(".page-drawer")
    drawer.get_by_label("Name").fill("careful")
    drawer.get_by_label("Start with").select_option("starter")
    drawer.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="Mode: autonomous").click()
    drawer.get_by_label("Mode", exact=True).select_option("escalate")
    drawer.get_by_role("button", name="Save mode").click()
    expect(page.get_by_role("button", name="Mode: escalate")).to_be_visible()
    start_held_run(page, studio_url, mode="", pool="careful")
    expect(page.locator(".run-approval-reasons")).to_contain_text("gives no figure of how sure it is")
    page.get_by_role("button", name="Approve and run").click()
    expect(page.get_by_test_id("answer")).not_to_be_empty()


@pytest.mark.parametrize("dark", [False, True])
def test_the_question_can_be_answered_on_a_phone_and_by_screen_readers(browser, studio_url, dark):
    with watched_page(browser, width=390, height=844, dark=dark) as page:
        start_held_run(page, studio_url)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        found = Axe().run(page, context=".run-approval")
        assert found.violations_count == 0, found.generate_report()
        page.get_by_role("button", name="Reject").click()
        expect(page.get_by_test_id("state")).to_have_text("Rejected")
