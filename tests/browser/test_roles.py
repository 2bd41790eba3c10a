"""Owner, editor and viewer at the pages: each does what the role may, and what it may not says why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from studio.access.accounts import Accounts
from studio.access.roles import UserRole
from studio.prepare import prepare_store
from tests.browser.conftest import Studio, watched_page
from tests.browser.test_serve_and_login import PASSWORD, log_in
from tests.studio.support.recorded import record_run
from trainer.jobs.queue import JobStore
from trainer.recipe import Recipe

PEOPLE = {"olga": UserRole.OWNER, "eddy": UserRole.EDITOR, "vera": UserRole.VIEWER}
RENTED_JOB = "rented-4711"
PAGES = ("/pool?pool=starter", "/train?new=1", "/compare", "/serve", "/publish")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Studio, str]]:
    """A studio that three people log in to, a run that is recorded there, and an owner's job on a rented machine."""
    running = Studio(tmp_path_factory.mktemp("roles") / "home", arguments=("--login",))
    store = prepare_store(str(running.home))
    episode = record_run(store, "oracle")
    for name, role in PEOPLE.items():
        Accounts(store.engine).add(name, PASSWORD, role)
    jobs = JobStore(store.engine, store.home)
    jobs.submit(Recipe.model_validate({"where": "hf:cpu-basic", "evaluate": {}}), key=RENTED_JOB)
    jobs.finish(RENTED_JOB, "failed", "stopped", "the machine is gone")
    store.close()
    running.start()
    yield running, episode
    running.stop()


@contextmanager
def logged_in(browser: Browser, studio: Studio, name: str, path: str) -> Iterator[Page]:
    """A page of a person who has logged in; no request of it may be refused."""
    with watched_page(browser) as page:
        page.goto(f"{studio.url}{path}")
        log_in(page, name)
        expect(page.locator(".podium-me")).to_contain_text(f"{name} · {PEOPLE[name]}")
        yield page


def refused(page: Page):
    return page.locator("[data-refused]:visible")


def test_a_viewer_looks_and_every_other_control_says_why_not(shared, browser: Browser):
    studio, episode = shared
    with logged_in(browser, studio, "vera", f"/?episode={episode}") as page:
        expect(page.get_by_test_id("answer")).to_be_visible()
        page.locator(".run-graph-world .run-graph-card").first.click()
        expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("Step 1")
        for name in ("Run", "What if …", "Keep as a task", "Measure credit"):
            button = page.get_by_role("button", name=name, exact=True)
            expect(button).to_have_attribute("aria-disabled", "true")
            expect(button).to_have_attribute("title", re.compile("only editors and owners may do this", re.IGNORECASE))
        page.wait_for_function("!document.querySelector('#run').disabled")  # the page has filled in its form
        page.get_by_role("button", name="Run", exact=True).click(force=True)
        expect(page.get_by_text("you are a viewer; ask olga")).to_be_visible()
        assert f"episode={episode}" in page.url, "the click started nothing"

        page.goto(f"{studio.url}/pool?pool=starter")
        expect(page.get_by_role("button", name="Test units")).to_have_attribute("aria-disabled", "true")
        page.get_by_role("button", name="New pool").click(force=True)
        expect(page.locator("dialog[open]")).to_have_count(0)
        page.get_by_role("button", name=re.compile("^Version")).click()  # looking is for everybody
        expect(page.locator("dialog[open]")).to_be_visible()

        for path in PAGES[1:]:
            page.goto(f"{studio.url}{path}")
            expect(refused(page).first).to_be_visible()
            expect(page.locator(".page-primary:visible:not(a):not([data-refused])")).to_have_count(0)


def test_an_editor_runs_and_changes_but_leaves_the_machine_to_owners(shared, browser: Browser):
    studio, _ = shared
    with logged_in(browser, studio, "eddy", "/pool?pool=starter") as page:
        page.get_by_role("button", name="New pool").click()
        page.locator(".page-drawer").get_by_label("Name", exact=True).fill("eddys")
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_label("Pool", exact=True)).to_have_value("eddys")
        expect(refused(page)).to_have_count(0)
        page.goto(f"{studio.url}/serve")
        start = page.get_by_role("button", name="Start serving")
        expect(start).to_have_attribute("title", "Only owners may do this, and you are an editor; ask olga.")
        expect(page.get_by_role("button", name="New token")).not_to_have_attribute("data-refused", re.compile("."))


def test_the_buttons_of_a_dialog_say_why_not_as_well(shared, browser: Browser):
    studio, _ = shared
    with logged_in(browser, studio, "vera", "/pool?pool=starter") as page:
        opener = page.get_by_role("button", name="New pool")
        expect(opener).to_have_attribute("data-refused", re.compile("."))
        # As where the role changed while the page was open.
        opener.evaluate("(node) => { delete node.dataset.refused; node.click(); }")
        create = page.locator(".page-drawer").get_by_role("button", name="Create")
        expect(create).to_have_attribute("aria-disabled", "true")
        create.click(force=True)
        expect(page.get_by_text("you are a viewer; ask olga")).to_be_visible()
        expect(page.locator("dialog[open]")).to_be_visible()


def test_a_rented_machine_is_for_owners_and_its_buttons_say_so(shared, browser: Browser):
    studio, _ = shared
    with logged_in(browser, studio, "eddy", f"/train?job={RENTED_JOB}") as page:
        reason = "Only owners may do this, and you are an editor; ask olga."
        expect(page.get_by_role("button", name="Rent again and resume")).to_have_attribute("title", reason)
        page.get_by_role("button", name="Edit as new recipe").click()
        start = page.get_by_role("button", name="See the price")
        expect(start).to_have_attribute("title", reason)
        expect(start).to_have_attribute("aria-disabled", "true")


def test_an_owner_is_refused_nothing(shared, browser: Browser):
    studio, episode = shared
    with logged_in(browser, studio, "olga", f"/?episode={episode}") as page:
        expect(page.get_by_test_id("answer")).to_be_visible()
        for path in PAGES:
            page.goto(f"{studio.url}{path}")
            expect(page.locator("[data-needs]:visible").first).to_be_visible()
            expect(refused(page)).to_have_count(0)
