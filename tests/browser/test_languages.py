"""The page in German, French, Spanish and Chinese: what is ours is translated, what people write is not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Studio, watched_page

# Headings, buttons and labels that no catalogue has, outside of what people, models and workers write.
LIST_LACKING = """async () => {
  const { Catalogue } = await import("/podium/web/languages/catalogue.js");
  const { DATA } = await import("/podium/web/languages/data.js");
  const german = new Catalogue(await (await fetch("/podium/web/languages/de.json")).json());
  const lacking = new Set();
  for (const element of document.querySelectorAll("h1, h2, h3, button, label, legend, th, summary, [role=tab]")) {
    if (element.closest(DATA) || !element.checkVisibility()) continue;
    for (const child of element.childNodes) {
      const text = child.nodeType === Node.TEXT_NODE ? child.data.trim() : "";
      if (/\\p{L}{2}/u.test(text) && german.translate(text) === null) lacking.add(text);
    }
  }
  return [...lacking];
}"""
ADDRESSES = ("/", "/pool", "/train", "/compare", "/tasks", "/serve", "/publish", "/traces")
NAMES = {"Podium", "YAML", "SFT", "DPO", "GRPO"}  # of products and methods


@pytest.fixture(scope="module")
def studio_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A studio of its own: what other tests leave behind would add texts to its pages."""
    running = Studio(tmp_path_factory.mktemp("languages") / "home")
    running.start()
    yield running.url
    running.stop()


def choose(page: Page, language: str) -> None:
    with page.expect_navigation():
        page.get_by_role("combobox", name="Language").select_option(language)
    expect(page.locator("html")).to_have_attribute("lang", language)


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_heading_button_or_label_of_a_page_is_left_out(page, studio_url, address):
    page.goto(f"{studio_url}{address}")
    expect(page.locator("h1").first).to_be_attached()
    page.wait_for_load_state("networkidle")
    lacking = set(page.evaluate(LIST_LACKING)) - NAMES
    assert not lacking, f"add to assets/web/languages/others.json and the catalogues: {sorted(lacking)}"


def test_a_language_is_chosen_once_and_kept_on_every_page(page, studio_url):
    page.goto(f"{studio_url}/traces")
    choose(page, "de")
    expect(page.get_by_role("link", name="Aufgaben", exact=True)).to_be_visible()
    page.goto(f"{studio_url}/serve")
    expect(page.get_by_role("combobox", name="Sprache")).to_have_value("de")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    with page.expect_navigation():
        page.get_by_role("combobox", name="Sprache").select_option("en")
    expect(page.get_by_role("link", name="Tasks", exact=True)).to_be_visible()


def test_every_language_has_its_own_names_of_the_pages(page, studio_url):
    from studio.frame.navigation import LANGUAGES, PAGES

    assert {page.address for page in PAGES.values()} >= set(ADDRESSES)
    names = set()
    page.goto(f"{studio_url}/traces")
    for language in LANGUAGES:
        page.evaluate("language => localStorage.setItem('podium-language', language)", language)
        page.reload()
        expect(page.locator("html")).to_have_attribute("lang", language)
        names.add(page.get_by_role("navigation").inner_text())
    assert len(names) == len(LANGUAGES)


def test_what_people_and_workers_write_stays_as_it_is(page, studio_url):
    page.goto(f"{studio_url}/pool")
    choose(page, "de")
    heading = page.get_by_role("heading", name="calculator", exact=True)
    card = page.locator(".page-card").filter(has=heading)
    expect(heading).to_be_visible()
    expect(card.locator(".page-about")).to_contain_text("Evaluates one arithmetic expression")
    expect(card.get_by_role("button", name="calculator ändern")).to_be_visible()


def test_the_browsers_language_is_taken_where_none_was_chosen(browser: Browser, studio_url: str):
    with watched_page(browser) as page:
        page.add_init_script("Object.defineProperty(navigator, 'languages', { get: () => ['fr-CH', 'en'] })")
        page.goto(f"{studio_url}/traces")
        expect(page.locator("html")).to_have_attribute("lang", "fr")
