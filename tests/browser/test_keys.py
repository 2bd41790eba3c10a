"""What a browser does around a page: its keys, the tab's title, and a notice when a job ends."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from tests.browser.conftest import WINDOWS, Studio
from trainer.jobs.queue import JobStore
from trainer.recipe import load_recipe

# A browser without a screen shows no notices: they are written down.
NOTICES = """
window.notices = [];
window.Notification = class extends EventTarget {
  static requestPermission = async () => window.permission;
  constructor(title, options) { super(); window.notices.push([title, options.body]); }
};
"""


def find_violations(page: Page) -> list[str]:
    return [node["html"][:300] for rule in Axe().run(page).response["violations"] for node in rule["nodes"]]


def test_enter_runs_the_query_and_shift_enter_begins_a_line(page: Page, studio_url: str):
    page.goto(f"{studio_url}/?pool=starter&orchestrator=random_plan")
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    query = page.locator("#query textarea")
    query.fill("6 *")
    query.press("Shift+Enter")
    query.press_sequentially("7")
    expect(query).to_have_value("6 *\n7")
    expect(page.get_by_test_id("state")).to_have_count(0)
    query.press("Enter")
    expect(page.get_by_test_id("state")).to_be_visible()
    expect(query).to_have_value("6 *\n7")


def test_the_palette_goes_to_a_worker_and_back_to_a_run(page: Page, studio_url: str):
    page.goto(f"{studio_url}/traces")
    expect(page).to_have_title("Traces · Podium")
    page.get_by_role("button", name="Find", exact=True).click()
    palette = page.get_by_role("dialog", name="Find")
    field = palette.get_by_role("combobox")
    expect(field).to_be_focused()
    expect(palette.get_by_role("option").first).to_contain_text("Run")
    field.fill("no such thing at all")
    expect(palette).to_contain_text("Nothing has these words.")
    field.fill("calculator starter")
    chosen = palette.get_by_role("option", selected=True)
    expect(chosen).to_contain_text("Worker")
    assert find_violations(page) == []
    field.press("ArrowUp")  # from the first to the last, and back
    field.press("ArrowDown")
    field.press("Enter")
    page.wait_for_url("**/pool?pool=starter&worker=calculator*")
    card = page.locator(".page-card[data-name='calculator']")
    expect(card).to_have_class("page-card pool-linked")
    expect(card).to_be_in_viewport()

    page.keyboard.press("Control+k")
    expect(palette).to_be_visible()
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()


def test_slash_goes_to_the_field_and_a_question_mark_lists_the_keys(page: Page, studio_url: str):
    page.goto(studio_url)
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    page.locator("body").press("/")
    query = page.locator("#query textarea")
    expect(query).to_be_focused()
    query.fill("")
    query.press_sequentially("km/h?")  # in a field they are letters
    expect(query).to_have_value("km/h?")
    query.blur()
    page.locator("body").press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Begin a new line in the query")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


def test_the_palette_stays_when_gradio_draws_the_page_anew(page: Page, studio_url: str):
    page.goto(f"{studio_url}/pool?pool=starter")
    page.get_by_role("button", name="Find", exact=True).click()
    palette = page.get_by_role("dialog", name="Find")
    palette.get_by_role("combobox").fill("calculator")
    page.evaluate("document.querySelector('.search-palette').remove()")
    expect(palette.get_by_role("combobox")).to_be_focused()
    expect(palette.get_by_role("combobox")).to_have_value("calculator")
    expect(palette.get_by_role("option").first).to_be_visible()
    palette.get_by_role("combobox").press("Escape")
    expect(palette).to_be_hidden()
    page.evaluate("document.querySelector('.search-palette').remove()")
    expect(page.locator(".search-palette")).to_have_count(0)


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_the_palette_fits_the_window(page: Page, studio_url: str, width: int, dark: bool):
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto(f"{studio_url}/pool?pool=starter")
    page.get_by_role("button", name="Find", exact=True).click()
    palette = page.get_by_role("dialog", name="Find")
    palette.get_by_role("combobox").fill("s")
    expect(palette.get_by_role("option").nth(8)).to_be_attached()
    box = palette.bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert find_violations(page) == []


def test_the_tab_says_how_a_job_stands_and_a_notice_its_end(page: Page, studio: Studio):
    store = open_store(find_home(studio.home))
    jobs = JobStore(store.engine, store.home)
    job = jobs.submit(load_recipe("evaluate-baselines"), here=True).id
    page.add_init_script(NOTICES)
    page.goto(f"{studio.url}/train?job={job}")
    expect(page).to_have_title(f"Queued · {job} · Podium")
    tick = page.get_by_label("Tell me when it ends")
    page.evaluate("window.permission = 'denied'")
    tick.click()
    expect(tick).not_to_be_checked()
    expect(page.locator(".train-job-notice")).to_contain_text("allow them in its settings")
    page.evaluate("window.permission = 'granted'")
    tick.click()
    expect(tick).to_be_checked()
    jobs.finish(job, "failed", message="stopped by a test")
    store.close()
    expect(page).to_have_title(f"Failed · {job} · Podium")
    assert page.evaluate("window.notices") == [[f"Failed: {job}", "stopped by a test"]]
    expect(tick).to_have_count(0)
