"""The Tasks page: what was judged is accepted, edited and struck, with the mouse and with the keys."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, Graded
from orchestrator.traces.store import open_store
from pool_registry.pool import export_pool
from pool_registry.storage.data_folder import find_home
from tests.browser.conftest import WINDOWS, Studio, watched_page
from tests.browser.test_run_page import import_pool
from tests.studio.support.reports import OWN, make_report
from tests.trainer.support.shop import build_shop
from trainer.improve.choose_tasks import digest_line
from trainer.improve.record import Improvement, ImprovementPlan, make_folder
from trainer.results.improvement import write_report
from trainer.tasks.practice.task_book import TaskBook
from trainer.tasks.sources.jsonl import TaskLine

JUDGED = [
    ("What is the capital of France?", "Paris", True, "mine"),
    ("Which lamps cost less than 20 euros?", "3", True, "mine"),
    ("Which lamps cost more than 20 euros?", "5", True, "mine"),
    ("Mail ann.lee@example.com what Firm A owes", "100.5", True, "mine"),
    ("How tall is the tower?", "3", False, "mine"),
    ("What does a client want?", "7", True, "served"),
]


@pytest.fixture
def judged(page: Page, studio: Studio, tmp_path) -> str:
    """A pool with judged questions, one of a client; returns its name."""
    name = f"judged-{tmp_path.name[-12:].replace('_', '-')}".lower()
    import_pool(page, studio.url, export_pool(build_shop(tmp_path).model_copy(update={"name": name})))
    store = open_store(find_home(str(studio.home)))
    for place, (query, answer, correct, source) in enumerate(JUDGED):
        start = EpisodeStarted(query, name, "", "oracle", {}, f"2026-11-29T10:0{place}:00", source=source)
        for event in (
            start,
            EpisodeEnded("answered", 1.0, answer),
            Graded(correct, answer * correct, 1.0, "ann", "page"),
        ):
            store.traces.append(f"{name}-{place}", event)
    store.traces.flush()
    store.close()
    return name


def test_candidates_are_accepted_edited_and_struck_and_clients_only_where_allowed(page: Page, studio: Studio, judged):
    page.goto(f"{studio.url}/tasks?pool={judged}")
    rows = page.locator(".tasks-row")
    expect(rows).to_have_count(5)
    expect(page.locator(".tasks-group", has_text="Near-duplicates")).to_contain_text("less than 20")

    page.get_by_label("Choose all shown").check()
    page.get_by_role("button", name="Accept", exact=True).click()
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="ann.lee")).to_contain_text("Not accepted: it may hold an e-mail address")
    expect(rows.filter(has_text="tower")).to_contain_text("Not accepted: needs the right answer")

    mail = rows.filter(has_text="ann.lee")
    mail.get_by_role("button", name="Edit").click()
    mail.get_by_label("Question").fill("Mail me what Firm A owes")
    mail.get_by_role("checkbox", name=re.compile("^Choose")).check()
    page.get_by_role("button", name="Accept", exact=True).click()
    expect(rows).to_have_count(1)

    rows.first.get_by_role("checkbox", name=re.compile("^Choose")).check()
    page.get_by_role("button", name="Strike", exact=True).click()
    expect(rows).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(1)

    page.get_by_label("May requests of clients become tasks?").check()
    expect(rows).to_have_count(2)
    page.reload()
    expect(page.get_by_label("May requests of clients become tasks?")).to_be_checked()
    expect(rows).to_have_count(2)
    page.goto(f"{studio.url}/train?tasks={judged}")
    expect(page.get_by_role("region", name="Tasks", exact=True)).to_contain_text("4 yours")


def test_the_keys_move_choose_answer_accept_and_strike(page: Page, studio: Studio, judged):
    page.goto(f"{studio.url}/tasks?pool={judged}")
    rows = page.locator(".tasks-row")
    expect(rows).to_have_count(5)
    page.keyboard.press("x")
    expect(page.locator(".tasks-chosen")).to_have_text("1 chosen")
    page.keyboard.press("x")
    tower = rows.filter(has_text="tower")
    expect(tower).to_have_class(re.compile("tasks-here"))
    page.keyboard.press("e")
    expect(tower.get_by_label("Question")).to_be_focused()
    tower.get_by_label("Right answer").fill("324 metres")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    expect(rows).to_have_count(4)
    page.keyboard.press("j")
    page.keyboard.press("s")
    expect(rows).to_have_count(3)


def set_aside(studio: Studio, pool: str) -> None:
    """Give the pool three tasks that a candidate got worse with."""
    home = find_home(str(studio.home))
    book = TaskBook(home.root / "tasks" / f"{pool}.jsonl")
    query = "How many lamps cost less than {} euros, counted by hand?"
    book.add([TaskLine(query=query.format(price), answer=price) for price in (5, 10, 15)])
    taken = tuple(digest_line(row.line) for row in book.read())
    plan = ImprovementPlan(
        id=f"{pool}-abcdef", key="abcdef", pool=pool, pool_version=1, serving="router", measured="router", stage="who",
        taken=taken, own=(), learnt=3, replayed=0, held_out=0, started=0.0,
    )  # fmt: skip
    improvement = Improvement(make_folder(home, plan.id), plan)
    improvement.update()
    write_report(improvement.folder, make_report(suites=(OWN.model_copy(update={"low": -0.9, "high": -0.1}),)))


def test_tasks_that_were_set_aside_are_put_back_one_by_one_and_together(page: Page, studio: Studio, judged):
    set_aside(studio, judged)
    page.goto(f"{studio.url}/tasks?pool={judged}")
    aside = page.get_by_role("region", name="Set aside")
    lines = aside.get_by_role("listitem")
    expect(aside.get_by_role("heading")).to_have_text("Set aside: 3")
    lines.filter(has_text="less than 10 euros").get_by_role("button", name="Put back").click()
    expect(lines).to_have_count(2)
    expect(aside).not_to_contain_text("less than 10 euros")
    aside.get_by_role("button", name="Put all shown back").click()
    expect(aside).to_be_hidden()
    page.reload()
    expect(page.locator(".tasks-row")).to_have_count(5)
    expect(aside).to_be_hidden()


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_everything_fits_and_can_be_read(studio: Studio, judged, browser, width, dark):
    set_aside(studio, judged)
    with watched_page(browser, width=width, dark=dark) as shown:
        shown.goto(f"{studio.url}/tasks?pool={judged}")
        expect(shown.locator(".tasks-row")).to_have_count(5)
        expect(shown.get_by_role("heading", name="Set aside: 3")).to_be_visible()
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        violations = [node["html"][:300] for rule in Axe().run(shown).response["violations"] for node in rule["nodes"]]
        assert not violations
