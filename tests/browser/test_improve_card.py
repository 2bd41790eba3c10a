"""The card Improve of the Train page: what was interrupted goes on, or is given up once a person is sure."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from pool_registry.pool import export_pool
from pool_registry.storage.data_folder import find_home
from tests.browser.conftest import WINDOWS, Studio, watched_page
from tests.browser.test_run_page import import_pool
from tests.trainer.support.shop import build_shop
from trainer.improve.record import Improvement, ImprovementPlan, make_folder
from trainer.tasks.practice.task_book import TaskBook
from trainer.tasks.sources.jsonl import TaskLine


@pytest.fixture
def interrupted(page: Page, studio: Studio, tmp_path) -> str:
    """The name of a pool with enough new tasks, whose improvement was killed."""
    name = f"stopped-{tmp_path.name[-12:].replace('_', '-')}".lower()
    import_pool(page, studio.url, export_pool(build_shop(tmp_path).model_copy(update={"name": name})))
    interrupt(studio, name)
    return name


def interrupt(studio: Studio, name: str) -> None:
    """Give a pool enough new tasks, and an improvement that nobody works on."""
    home = find_home(str(studio.home))
    splits = ["train"] * 20 + ["test"] * 10
    TaskBook(home.root / "tasks" / f"{name}.jsonl").add(
        [TaskLine(query=f"What is {n} times 7?", answer=7 * n, split=split) for n, split in enumerate(splits)]
    )
    plan = ImprovementPlan(
        id=f"{name}-abcdef", key="abcdef", pool=name, pool_version=1, serving="router", measured="router",
        stage="plans", taken=(), own=(), learnt=20, replayed=0, held_out=10, started=1.0, jobs={"learn": "job-1"},
    )  # fmt: skip
    Improvement(make_folder(home, plan.id), plan).update()


def open_card(page: Page, studio: Studio, pool: str) -> Locator:
    page.goto(f"{studio.url}/train?tasks={pool}")
    return page.get_by_role("region", name="Improve", exact=True)


def test_going_on_and_starting_anew_are_two_buttons_and_the_second_asks(page: Page, studio: Studio, interrupted: str):
    card = open_card(page, studio, interrupted)
    expect(card).to_contain_text("The last improvement was interrupted")
    expect(card.get_by_role("button", name="Go on")).to_be_enabled()
    card.get_by_role("button", name="Start anew").click()
    expect(card.get_by_role("button", name="Really give it up?")).to_be_focused()
    folder = find_home(str(studio.home)).root / "improvements" / f"{interrupted}-abcdef"
    assert folder.is_dir(), "one press asks"


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_the_card_fits_and_can_be_read(studio: Studio, interrupted: str, browser, width, dark):
    with watched_page(browser, width=width, dark=dark) as shown:
        card = open_card(shown, studio, interrupted)
        expect(card.get_by_role("button", name="Start anew")).to_be_visible()
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        found = Axe().run(shown, context=".train-improve").response["violations"]
        assert not found, [node["html"][:300] for rule in found for node in rule["nodes"]]
