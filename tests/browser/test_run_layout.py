"""The Run page as it is laid out: 25 steps can be read, graph and inspector share a screen, one button is primary."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import WINDOWS, Studio, watched_page
from tests.browser.support.busy_run import NAMES, STEPS, record_busy_run
from tests.browser.support.pools import SlowModel, chat_pool, slow_model
from tests.browser.test_run_page import import_pool

READABLE_PX = 8.5  # of a name of 40 letters; shorter ones are written larger
BOXES = """(nodes) => nodes.map((node) => {
  const { left, top, right, bottom } = node.getBoundingClientRect();
  return { left, top, right, bottom, text: node.textContent };
})"""
LINES = """(nodes) => nodes.map((node) => {
  const range = document.createRange();
  range.selectNodeContents(node);
  const { left, top, right, bottom } = range.getBoundingClientRect();
  const card = node.closest(".run-graph-card, .run-graph-lane").getBoundingClientRect();
  return { left, top, right, bottom, text: node.textContent, inside: left >= card.left - 0.5
    && right <= card.right + 0.5 && top >= card.top - 0.5 && bottom <= card.bottom + 0.5 };
})"""
SIZES = "(nodes, scale) => nodes.map((node) => parseFloat(getComputedStyle(node).fontSize) * scale)"
IN_VIEW = "({top, bottom, left, right}) => top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth"


@pytest.fixture(scope="module")
def busy_run(studio: Studio) -> str:
    return record_busy_run(studio.home)


def open_busy_run(page: Page, url: str, episode: str) -> None:
    page.goto(f"{url}/?episode={episode}")
    expect(page.locator(".run-graph-world .run-graph-card")).to_have_count(STEPS)
    expect(page.locator("#composer")).to_have_class(re.compile("run-folded"))
    page.wait_for_timeout(300)  # the graph fits itself into its frame


def find_overlaps(boxes: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [
        (one["text"], two["text"])
        for place, one in enumerate(boxes)
        for two in boxes[place + 1 :]
        if min(one["right"], two["right"]) - max(one["left"], two["left"]) > 0.5
        and min(one["bottom"], two["bottom"]) - max(one["top"], two["top"]) > 0.5
    ]


def test_labels_of_25_steps_are_whole_and_apart(browser: Browser, studio_url: str, busy_run: str):
    with watched_page(browser) as page:
        open_busy_run(page, studio_url, busy_run)
        names = page.locator(".run-graph-world .run-graph-name")
        boxes = names.evaluate_all(LINES)
        assert {box["text"].split(" · ")[1] for box in boxes} == set(NAMES)
        assert [box["text"] for box in boxes if not box["inside"]] == [], "names that their cards cut off"
        heads = page.locator(".run-graph-lane-head").locator("b:visible, span:visible").evaluate_all(LINES)
        assert [box["text"] for box in heads if not box["inside"]] == []
        assert "then" not in {box["text"] for box in heads}
        cards = page.locator(".run-graph-world .run-graph-card").evaluate_all(BOXES)
        assert find_overlaps([*cards, *heads]) == []
        scale = float(page.locator(".run-graph").get_attribute("data-zoom") or 0)
        assert min(names.evaluate_all(SIZES, scale)) >= READABLE_PX
        columns = page.locator(".run-matrix thead th").evaluate_all(
            LINES.replace(".run-graph-card, .run-graph-lane", "th")
        )
        assert len(columns) == STEPS and find_overlaps(columns) == []
        assert all(box["inside"] for box in columns)


def test_graph_and_inspector_of_a_step_share_one_screen(browser: Browser, studio_url: str, busy_run: str):
    with watched_page(browser) as page:
        open_busy_run(page, studio_url, busy_run)
        page.locator(".run-graph-world .run-graph-card[data-id='16']").click()
        inspector = page.get_by_role("complementary", name="Inspector")
        expect(inspector.locator("h2").first).to_have_text("Step 16 · units")
        page.wait_for_timeout(500)  # it scrolls, where it has to
        graph, side = (
            page.locator(name).evaluate("(node) => node.getBoundingClientRect().toJSON()")
            for name in (".run-graph", ".run-inspector:visible")
        )
        assert page.evaluate(IN_VIEW, graph) and page.evaluate(IN_VIEW, side), (graph, side)
        assert side["left"] >= graph["right"], "beside it, not below"
        page.set_viewport_size({"width": 1200, "height": 900})
        expect(page.locator(".run-view-side")).to_have_css("position", "sticky")


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_one_button_is_primary_and_nothing_scrolls_sideways(
    browser: Browser, studio_url: str, busy_run: str, width: int, dark: bool
):
    primary = "button.primary:visible, .page-primary:visible"
    with watched_page(browser, width=width, height=844, dark=dark) as page:
        page.goto(f"{studio_url}/?pool=starter&orchestrator=oracle")
        expect(page.locator("#query textarea")).not_to_have_value("")
        expect(page.locator(primary)).to_have_text(["Run"])
        expect(page.locator("#composer input:visible")).to_have_count(2)  # pool and orchestrator
        open_busy_run(page, studio_url, busy_run)
        expect(page.locator(primary)).to_have_text(["Run"])
        page.locator(".run-graph-card[data-id='4']:visible").first.click()
        expect(page.locator(".run-inspector-head")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        violations = Axe().run(page).response["violations"]
        assert violations == [], [(rule["id"], [node["html"][:200] for node in rule["nodes"]]) for rule in violations]


def test_the_query_folds_after_a_run_and_unfolds_where_somebody_types(page: Page, studio_url: str, busy_run: str):
    open_busy_run(page, studio_url, busy_run)
    composer, options = page.locator("#composer"), page.get_by_role("button", name="Options")
    expect(page.locator(".run-summary-query")).to_be_hidden()  # it stands in the line above
    expect(options).to_be_hidden()
    assert composer.bounding_box()["height"] < 80
    page.locator("#query textarea").focus()
    expect(options).to_be_visible()
    page.locator("#query textarea").fill("Another question?")
    expect(page.locator(".run-summary-query")).to_be_visible()  # the run's own
    page.locator(".run-graph-world .run-graph-card").first.click()
    expect(composer).to_have_class(re.compile("run-folded"))
    expect(page.locator("#query textarea")).to_have_value("Another question?")


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_graph_moves_while_a_model_thinks(browser: Browser, studio: Studio, motion: str):
    with slow_model() as address, watched_page(browser) as page:
        page.emulate_media(reduced_motion=motion)
        import_pool(page, studio.url, chat_pool(f"thinking-{motion}", address))
        page.goto(f"{studio.url}/?pool=thinking-{motion}&orchestrator=model:first")
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
        page.locator("#query textarea").fill("hi")
        page.get_by_role("button", name="Run", exact=True).click()
        graph = page.locator(".run-graph-thinking")
        expect(graph).to_be_visible()
        name = graph.evaluate("(node) => getComputedStyle(node, '::after').animationName")
        assert name == ("none" if motion == "reduce" else "run-graph-sweep")
        SlowModel.release.set()
        expect(page.get_by_test_id("state")).not_to_have_text("Running")
        expect(page.locator(".run-graph-thinking")).to_have_count(0)
