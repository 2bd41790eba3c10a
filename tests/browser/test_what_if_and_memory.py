"""Editing a recorded run, and a pool's failure memory, as a person uses them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import Home
from tests.browser.conftest import watched_page
from tests.browser.support.pools import SlowModel, chat_pool, slow_model
from tests.browser.test_run_page import choose, import_pool, run_first_query
from tests.studio.support.shop_run import record_order
from trainer.tasks import find_task

QUERY = find_task("forge", 1, "test", 4).query


def open_editor(page: Page, step: int) -> None:
    page.locator(".run-graph-card:visible").nth(step - 1).click()
    page.get_by_role("button", name="Edit this step").click()
    expect(page.locator(f".what-if-step[data-step='{step}']")).to_have_attribute("open", "")


def fate(page: Page, step: int):
    return page.locator(f".what-if-step[data-step='{step}'] .what-if-fate")


def test_an_edited_step_and_its_readers_run_again_and_the_difference_is_shown(page, studio_url):
    origin = run_first_query(page, studio_url)
    before = page.get_by_test_id("plan-answer").text_content()
    open_editor(page, 3)
    run = page.locator(".what-if-foot").get_by_role("button", name="Run")
    expect(run).to_be_disabled()
    page.locator(".what-if-step[open]").get_by_label("Request").fill("country of LIS")
    expect(fate(page, 3)).to_have_text("changed")
    expect(fate(page, 6)).to_have_text("called again")
    expect(fate(page, 1)).to_have_text("kept")
    expect(page.locator(".run-graph-world .run-graph-card[data-id='6']")).to_have_attribute("data-fate", "rerun")
    page.get_by_role("button", name="Run 2 steps").click()
    expect(page.locator(".what-if-strip")).to_contain_text("4 outputs kept, 2 steps called")
    expect(page.locator(".what-if-edits del")).to_have_text(re.compile("country of"))
    expect(page.locator(".what-if-edits ins")).to_have_text("country of LIS")
    expect(page.locator(".what-if-outcome tr").nth(1)).to_contain_text(before)
    assert page.evaluate("new URLSearchParams(location.search).get('episode')") != origin
    expect(page.locator(".run-graph-world .run-graph-card[data-id='1']")).to_contain_text("kept")
    page.get_by_role("button", name="Save as demonstration").click()
    expect(page.get_by_role("button", name="Saved as demonstration")).to_be_visible()
    page.locator(".what-if-head").get_by_role("link").click()
    expect(page.locator(".what-if-others")).to_contain_text("1 what-if of this run")


def test_problems_are_told_at_their_step_and_nothing_typed_is_lost(page, studio_url):
    run_first_query(page, studio_url)
    open_editor(page, 4)
    form = page.locator(".what-if-step[data-step='4']")
    form.get_by_label("Request").fill("2025-02-06 16:45 at UIQ plus $2 km / 660 km/h, local at TYN")
    expect(form.locator(".form-problem").first).to_contain_text("not in access")
    expect(page.locator(".what-if-foot .page-primary")).to_be_disabled()
    form.get_by_label("2 great_circle").check()
    expect(form.locator(".form-problem").first).to_be_empty()
    page.locator(".what-if-step[data-step='2'] summary").click()
    page.locator(".what-if-step[data-step='2']").get_by_role("button", name="Remove").click()
    expect(form.locator(".form-problem").first).to_contain_text("step 2, which is removed")
    expect(form.get_by_label("Request")).to_have_value(re.compile("plus \\$2 km"))
    page.locator(".what-if-step[data-step='2']").get_by_role("button", name="Put it back").click()
    expect(form.locator(".form-problem").first).to_be_empty()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".run-inspector-head").first).to_be_visible()


@pytest.mark.parametrize("dark", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_step_is_added_with_the_keyboard_on_a_phone(browser, studio_url, dark):
    with watched_page(browser, width=390, height=844, dark=dark) as page:
        run_first_query(page, studio_url)
        page.get_by_test_id("what-if").focus()
        page.keyboard.press("Enter")
        add = page.get_by_role("button", name="Add a step")
        expect(add).to_be_visible()
        add.focus()
        page.keyboard.press("Enter")
        form = page.locator(".what-if-step[data-step='7']")
        form.get_by_label("Worker").select_option("calculator")
        form.get_by_label("Expression").fill("6*7")
        page.locator(".what-if").get_by_label("Answer").fill("$7")
        expect(page.get_by_role("button", name="Run 1 step")).to_be_enabled()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, "the page scrolls sideways"
        found = Axe().run(page).response["violations"]
        assert found == [], [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found]
        page.locator(".what-if").get_by_label("Answer").press("Control+Enter")
        expect(page.get_by_test_id("answer")).to_have_text("42")
        found = Axe().run(page).response["violations"]
        assert found == [], [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found]


@pytest.fixture
def wrong_model() -> Iterator[str]:
    """An endpoint whose model always answers the same, and wrongly."""
    with slow_model() as address:
        SlowModel.reply = '{"answer": "-1"}'
        SlowModel.release.set()
        yield address


def run_wrongly(page: Page, url: str, pool: str) -> str:
    page.goto(f"{url}/?pool={pool}&orchestrator=model:first:plan")
    expect(page.locator("#run-pool input")).to_have_value(pool)
    choose(page, "run-orchestrator", "Model")
    page.locator("#query textarea").fill(QUERY)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_test_id("verdict")).to_have_attribute("data-correct", "false", timeout=120_000)  # torch
    return page.evaluate("new URLSearchParams(location.search).get('episode')")


def test_a_failure_is_remembered_shown_to_the_next_run_and_forgotten(page, studio_url, wrong_model):
    import_pool(page, studio_url, chat_pool("forgetful", wrong_model))
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Memory", exact=True).click()
    drawer = page.locator(".page-drawer")
    expect(drawer).to_contain_text("No lessons yet")
    drawer.get_by_label("Lessons are").select_option("rule")
    expect(page.locator(".page-toast")).to_contain_text("Saved as version 3")  # 2 switched its workers on
    run_wrongly(page, studio_url, "forgetful")
    expect(page.locator("#composer-note")).to_contain_text("put before the query")
    run_wrongly(page, studio_url, "forgetful")
    page.get_by_test_id("recalled").click()
    expect(page.get_by_test_id("lesson")).to_contain_text("It answered -1, which is wrong")
    page.goto(f"{studio_url}/pool?pool=forgetful")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Memory on").click()
    expect(drawer.locator(".pool-memory-lesson")).to_have_count(2)
    found = Axe().run(page).response["violations"]
    assert found == [], [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found]
    drawer.get_by_role("button", name="Forget:").first.click()
    expect(drawer.locator(".pool-memory-lesson")).to_have_count(1)
    drawer.get_by_role("button", name="Clear all").click()
    drawer.get_by_role("button", name="Really forget 1?").click()
    expect(drawer).to_contain_text("No lessons yet")


def test_a_what_if_on_copies_leaves_the_originals_and_shows_both_worlds(page, studio, tmp_path):
    store = open_store(Home(studio.home))
    try:
        run = record_order(store, tmp_path)
    finally:
        store.close()
    page.goto(f"{studio.url}/?episode={run.episode}")
    open_editor(page, 1)
    page.locator(".what-if-step[open]").get_by_label("count", exact=True).fill("9")
    expect(page.locator(".what-if-copies")).to_contain_text("Steps 1, 2 may change something")
    expect(page.get_by_label("Work on copies")).to_be_checked()
    page.get_by_role("button", name="Run 3 steps").click()
    worlds = page.locator(".what-if-worlds")
    expect(worlds).to_contain_text("the originals were not changed", timeout=60_000)
    expect(worlds.get_by_role("row", name="orders.db: a row of orders")).to_contain_text("item cup, count 9")
    assert (run.notes / "list.txt").read_text() == "buy milk\ncups are ordered\n"
