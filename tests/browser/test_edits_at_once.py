"""Two tabs edit one pool: what they change apart is kept, and of one worker the second sees both and keeps its form."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import WINDOWS, watched_page
from tests.browser.test_pool_and_traces import card, open_pool


@pytest.fixture
def other(browser) -> Iterator[Page]:
    """The second tab."""
    with watched_page(browser) as opened:
        yield opened


def show_pool(tab: Page, url: str, name: str) -> None:
    tab.goto(f"{url}/pool?pool={name}")
    tab.get_by_label("Pool", exact=True).select_option(name)
    expect(card(tab, "calendar")).to_be_visible()


def open_form(tab: Page, worker: str, description: str) -> Locator:
    """Open a worker's form and type another description, without saving it."""
    tab.get_by_role("button", name=f"Edit {worker}", exact=True).click()
    drawer = tab.locator(".page-drawer")
    drawer.get_by_label("Description").fill(description)
    return drawer


def save(drawer: Locator) -> None:
    drawer.get_by_role("button", name="Save", exact=True).click()


def test_two_tabs_that_edit_different_workers_are_both_kept(page, other, studio_url):
    open_pool(page, studio_url, "apart")
    show_pool(other, studio_url, "apart")
    first, second = open_form(page, "calendar", "Knows days."), open_form(other, "airports", "Knows where they lie.")
    save(first)
    expect(card(page, "calendar")).to_contain_text("Knows days.")
    save(second)
    expect(card(other, "airports")).to_contain_text("Knows where they lie.")
    expect(card(other, "calendar")).to_contain_text("Knows days.")
    expect(other.locator(".page-toast")).to_contain_text("changed calendar")


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_the_second_of_two_edits_of_a_worker_sees_both_and_keeps_its_form(browser, page, studio_url, width, dark):
    name = f"clash-{width}-{'dark' if dark else 'light'}"
    open_pool(page, studio_url, name)
    with watched_page(browser, width, dark=dark) as late:
        show_pool(late, studio_url, name)
        first, second = open_form(page, "calendar", "Theirs: knows days."), open_form(late, "calendar", "Mine: dates.")
        save(first)
        expect(card(page, "calendar")).to_contain_text("Theirs")
        save(second)
        dialog = late.get_by_role("dialog", name="Changed meanwhile")
        expect(dialog).to_contain_text("Theirs: knows days.")
        expect(dialog).to_contain_text("Mine: dates.")
        box = dialog.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width
        dialog.get_by_role("button", name="Keep theirs").click()
        expect(second.get_by_label("Description")).to_have_value("Mine: dates.")
        expect(second.locator(".form-general")).to_contain_text("somebody else has changed the same meanwhile")
        save(second)
        late.get_by_role("button", name="Save mine instead").click()
        expect(card(late, "calendar")).to_contain_text("Mine: dates.")
