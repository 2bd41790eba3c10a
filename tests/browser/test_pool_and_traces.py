"""The Pool and Traces pages as a person uses them."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Studio, watched_page
from tests.browser.support.pools import XSS, chat_pool
from tests.browser.test_run_page import import_pool, run_first_query


def open_pool(page: Page, url: str, name: str) -> None:
    """A pool of its own for a test: a copy of the starter pool."""
    page.goto(f"{url}/pool")
    page.get_by_role("button", name="New pool").click()
    drawer = page.locator(".page-drawer")
    drawer.get_by_label("Name", exact=True).fill(name)
    drawer.get_by_label("Start with").select_option("starter")
    drawer.get_by_role("button", name="Create").click()
    expect(page.get_by_label("Pool", exact=True)).to_have_value(name)
    expect(drawer).to_be_hidden()


def card(page: Page, name: str) -> Locator:
    return page.locator(f".page-card[data-name='{name}']")


def test_a_worker_is_added_tried_edited_disabled_and_removed(page, studio_url):
    open_pool(page, studio_url, "desk")
    page.get_by_role("button", name="Add worker").click()
    page.get_by_role("button", name="Edit Calculator first").click()
    drawer = page.locator(".page-drawer")
    drawer.get_by_label("Name", exact=True).fill("abacus")
    drawer.get_by_label("Description").fill("Counts beads.")
    drawer.get_by_role("button", name="Add worker").click()
    expect(card(page, "abacus")).to_be_visible()

    page.get_by_role("button", name="Try it abacus").click()
    drawer.get_by_label("Expression").fill("6*7")
    drawer.get_by_role("button", name="Call it").click()
    expect(drawer.locator(".page-value")).to_have_text("42")
    drawer.get_by_label("Expression").fill("1/0")
    drawer.get_by_role("button", name="Call it").click()
    expect(drawer.locator(".page-out-head")).to_have_attribute("data-status", "EXEC_ERR")
    drawer.get_by_role("button", name="Close", exact=True).last.click()

    page.get_by_role("button", name="Edit abacus").click()
    drawer.get_by_label("Description").fill("Counts beads and pebbles.")
    drawer.get_by_role("button", name="Save").click()
    expect(card(page, "abacus")).to_contain_text("pebbles")

    page.get_by_role("switch", name="Disable abacus").click()
    expect(page.get_by_role("switch", name="Enable abacus")).to_have_attribute("aria-checked", "false")
    expect(card(page, "abacus")).to_contain_text("Disabled")

    page.get_by_role("button", name="Remove abacus").click()
    drawer.get_by_role("button", name="Remove abacus").click()
    expect(card(page, "abacus")).to_have_count(0)


def test_bad_input_is_told_at_its_field_and_nothing_typed_is_lost(page, studio_url):
    open_pool(page, studio_url, "wrongs")
    page.get_by_role("button", name="Add worker").click()
    page.get_by_role("button", name="Edit Any OpenAI-compatible URL first").click()
    drawer = page.locator(".page-drawer")
    drawer.get_by_label("Name", exact=True).fill("Bad Name!")
    drawer.get_by_label("Description").fill("kept")
    drawer.get_by_label("Base URL").fill("not a url")
    drawer.get_by_label("API key", exact=True).fill("sk-this-is-a-plain-key")
    expect(drawer.locator(".form-key-state")).to_contain_text("env:NAME")
    drawer.get_by_role("button", name="Add worker").click()
    problems = drawer.locator(".form-problem:not(:empty)")
    expect(problems.first).to_be_visible()
    said = " ".join(problems.all_inner_texts())
    assert "small letters" in said and "http" in said
    expect(drawer.get_by_label("Description")).to_have_value("kept")
    expect(drawer.get_by_label("Base URL")).to_have_value("not a url")
    assert "sk-this-is-a-plain-key" not in page.content()


def test_a_name_that_is_taken_and_a_check_that_fails_are_told(page, studio_url):
    import_pool(page, studio_url, chat_pool("nobody-home", "http://127.0.0.1:9/v1"))
    page.get_by_role("button", name="Test first").click()
    expect(card(page, "first").locator(".page-health")).to_have_attribute("data-health", "failing")
    expect(card(page, "first").locator(".pool-test")).to_contain_text("connection")
    page.get_by_role("button", name="Clone first").click()
    drawer = page.locator(".page-drawer")
    drawer.get_by_label("Name", exact=True).fill("second")
    drawer.get_by_role("button", name="Add worker").click()
    expect(drawer.locator(".form-problem:not(:empty)")).to_contain_text("second")


def test_the_lights_of_the_cards_come_on_by_themselves(page, studio_url):
    page.goto(f"{studio_url}/pool?pool=starter")
    expect(page.locator("[data-health=unknown]")).to_have_count(0, timeout=30_000)
    expect(card(page, "sql").locator(".page-health")).to_contain_text("tables")


def test_versions_are_kept_and_an_old_one_can_be_restored(page, studio_url):
    open_pool(page, studio_url, "history")
    page.get_by_role("switch", name="Disable units").click()
    expect(page.get_by_role("button", name="Version 2")).to_be_visible()
    page.get_by_role("button", name="Version 2").click()
    page.locator(".page-drawer").get_by_role("button", name="Version 1").click()
    expect(page.locator(".page-note")).to_contain_text("version 2 is current")
    page.get_by_role("button", name="Restore this version").click()
    expect(page.locator(".page-note")).to_be_hidden()  # the old version has the switch, too
    expect(page.get_by_role("switch", name="Disable units")).to_be_visible()
    page.reload()
    expect(page.get_by_role("switch", name="Disable units")).to_be_visible()


def test_an_exported_pool_comes_back_equal_and_a_corrupt_one_is_refused(page, studio_url):
    open_pool(page, studio_url, "travels")
    with page.expect_download() as download:
        page.get_by_role("button", name="More", exact=True).click()
        page.get_by_role("link", name="Export").click()
    text = download.value.path().read_text()
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Import").click()
    drawer = page.locator(".page-drawer")
    for broken, said in (
        (text[:-40], "not JSON"),
        ("[1]", "not a pool"),
        (text.replace('"kind": "calculator"', '"kind": "no_such_kind"', 1), "no_such_kind"),
        (text, "already"),
    ):
        drawer.get_by_label("Pool as JSON").fill(broken)
        drawer.get_by_role("button", name="Import").click()
        expect(drawer.locator(".page-problems")).to_contain_text(said)
    drawer.get_by_label("Name", exact=True).fill("travelled")
    drawer.get_by_role("button", name="Import").click()
    expect(page.get_by_label("Pool", exact=True)).to_have_value("travelled")
    with page.expect_download() as download:
        page.get_by_role("button", name="More", exact=True).click()
        page.get_by_role("link", name="Export").click()
    back = json.loads(download.value.path().read_text())
    assert back == {**json.loads(text), "name": "travelled"}


def test_a_file_too_large_for_a_pool_is_not_even_read(page, studio_url, tmp_path):
    page.goto(f"{studio_url}/pool")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Import").click()
    large = tmp_path / "large.json"
    large.write_bytes(b"\xff" * 10_000_000)
    page.locator(".page-drawer input[type=file]").set_input_files(large)
    expect(page.locator(".page-problems")).to_contain_text("large.json")


def test_a_description_is_text_never_markup(page, studio_url):
    document = json.loads(chat_pool("markup", "http://127.0.0.1:9/v1"))
    document["workers"][0]["description"] = XSS
    import_pool(page, studio_url, json.dumps(document))
    expect(card(page, "first")).to_contain_text("<script>")
    assert page.evaluate("window.hacked") is None


@pytest.mark.slow
def test_the_small_model_can_be_tried_from_its_card(page, studio_url):
    page.goto(f"{studio_url}/pool?pool=starter")
    page.get_by_role("button", name="Try it solver").click()
    drawer = page.locator(".page-drawer")
    drawer.get_by_role("button", name="Call it").click()
    expect(drawer.locator(".page-out-head")).to_have_attribute("data-status", "OK", timeout=120_000)
    expect(drawer.locator(".page-out-head")).to_contain_text("tokens")


def test_traces_are_found_by_text_and_status_and_open_in_run(page, studio: Studio):
    episode = run_first_query(page, studio.url)
    page.goto(f"{studio.url}/traces")
    rows = page.locator(".traces-table tbody tr")
    expect(rows.first).to_contain_text("flight")
    page.get_by_label("Search").fill("no such words anywhere")
    expect(page.get_by_text("No run matches these filters.")).to_be_visible()
    page.get_by_label("Search").fill(episode)
    expect(rows).to_have_count(1)
    page.locator("[data-filter=state]").select_option("wrong")
    expect(rows).to_have_count(0)
    page.locator("[data-filter=state]").select_option("correct")
    page.locator("[data-filter=pool]").select_option("starter")
    page.locator("[data-filter=orchestrator]").select_option("oracle")
    expect(rows).to_have_count(1)
    page.reload()  # filters live in the address
    expect(rows).to_have_count(1)
    rows.first.get_by_role("link").click()
    expect(page.get_by_test_id("answer")).not_to_be_empty()
    expect(page).to_have_url(re.compile(f"episode={episode}"))


def test_the_list_opens_on_own_runs_and_fits_the_window(page, studio: Studio):
    run_first_query(page, studio.url)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{studio.url}/traces")
    source = page.locator("[data-filter=source]")
    expect(source).to_have_value("mine")
    row = page.locator(".traces-table tbody tr").first
    expect(row.get_by_role("button", name="Star")).to_be_in_viewport(ratio=1)
    frame = page.locator(".traces-frame")
    assert frame.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    source.select_option("All sources")
    page.reload()  # the choice lives in the address
    expect(source).to_have_value("all")
    expect(page.get_by_role("columnheader", name="Source")).to_be_visible()
    assert frame.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    page.set_viewport_size({"width": 390, "height": 844})
    heights = page.locator(".traces-table tbody tr").evaluate_all("(rows) => rows.map((row) => row.offsetHeight)")
    assert max(heights) <= 48, "a run is a line on a phone"


def test_dark_mode_is_remembered(browser, studio_url):
    with watched_page(browser) as page:
        page.goto(f"{studio_url}/traces")
        body = page.locator("body")
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.get_by_role("button", name="Dark or light").click()
        expect(body).not_to_have_css("background-color", before)
        page.goto(f"{studio_url}/pool")
        expect(body).not_to_have_css("background-color", before)
        expect(body).to_have_css("color", "rgb(232, 237, 246)")  # what hangs below body itself is readable, too


def test_a_page_of_the_tests_knows_nothing_of_the_theme_that_another_chose(browser, studio_url):
    with watched_page(browser) as page:
        page.goto(f"{studio_url}/traces")
        assert page.evaluate("localStorage.getItem('podium-theme')") is None
