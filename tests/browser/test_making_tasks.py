"""Questions for agents are made in the background: followed, left and found again, stopped, and gone on with after a
restart of the studio."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from pool_registry.pool import Pool, export_pool
from tests.browser.conftest import Studio, watched_page
from tests.browser.test_run_page import import_pool
from tests.trainer.support.experts import AUTHOR, Script, build_experts, serve_script

PRICED = {"price_in": 10.0, "price_out": 1000.0}  # 100 tokens in and 10 out are 0.011 dollars
PER_TEST = 60  # calls after which the agents wait


class SlowScript(Script):
    """Agents who answer some questions, and then wait until `go` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.before = self.wait

    def wait(self, _model: str, _text: str) -> None:
        if len(self.calls) >= PER_TEST:
            self.go.wait(120)


@pytest.fixture
def script() -> SlowScript:
    return SlowScript()


@pytest.fixture
def experts(script, request) -> Iterator[Pool]:
    with serve_script(script) as url:
        pool = build_experts(url)
        workers = tuple(spec.model_copy(update=PRICED) for spec in pool.workers)
        yield pool.model_copy(update={"name": f"experts-{abs(hash(request.node.name)) % 10_000}", "workers": workers})
        script.go.set()


@pytest.fixture
def own_studio(tmp_path) -> Iterator[Studio]:
    """A studio that may be killed."""
    running = Studio(tmp_path / "home")
    running.start()
    yield running
    running.stop()


def start_making(place: Locator, count: int) -> None:
    place.get_by_label("Number of tasks").fill(str(count))
    place.get_by_label("Questions for agents").select_option(AUTHOR)
    place.get_by_label("Most US dollars").fill("40")
    place.get_by_role("button", name="Make tasks").last.click()


def read_figure(view: Locator, name: str) -> Locator:
    return view.locator(f"dl > div:has(dt:text-is('{name}')) dd")


@pytest.mark.slow
def test_making_is_left_and_found_again_stopped_and_gone_on_with(
    page: Page, studio_url: str, experts: Pool, script: SlowScript
):
    import_pool(page, studio_url, export_pool(experts))
    page.goto(f"{studio_url}/train?tasks={experts.name}")
    panel = page.get_by_role("region", name="Tasks", exact=True)
    start_making(panel, 20)
    view = panel.get_by_role("region", name="Tasks being made")
    expect(view.get_by_role("heading", name="Making tasks")).to_be_visible()
    expect(read_figure(view, "Answered")).to_have_text(re.compile("^[1-9]"))
    expect(read_figure(view, "Kept")).to_have_text(re.compile(r"^\d+ of 20$"))
    expect(read_figure(view, "Spent")).to_have_text(re.compile(r"^\$0\.\d\d of \$40\.00$"))
    expect(panel.locator(".train-tasks-form").get_by_role("button", name="Make tasks")).to_be_hidden()

    page.goto(f"{studio_url}/traces")
    page.goto(f"{studio_url}/pool?pool={experts.name}")
    page.get_by_role("button", name="Train on this pool").click()
    drawer = page.locator(".page-drawer")
    view = drawer.get_by_role("region", name="Tasks being made")
    expect(view.get_by_role("heading", name="Making tasks")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Train on this pool").click()
    view.get_by_role("button", name="Stop").click()
    expect(view).to_contain_text("those in flight end first")
    script.go.set()
    expect(view.get_by_role("heading", name="Stopped")).to_be_visible()
    expect(view).to_contain_text("you stopped it")
    expect(drawer.get_by_role("heading", name=re.compile(r"^[1-9]\d* tasks: "))).to_be_visible()

    before = {call for call in script.calls if call[0] != AUTHOR}
    script.calls.clear()
    view.get_by_role("button", name="Go on").click()
    expect(view.get_by_role("heading", name="Tasks were made")).to_be_visible()
    expect(read_figure(view, "Kept")).to_have_text("20 of 20")
    expect(drawer.get_by_role("heading", name=re.compile("^20 tasks: "))).to_be_visible()
    assert not before & set(script.calls), "nothing is paid twice"


@pytest.mark.slow
def test_a_restart_of_the_studio_leaves_it_interrupted_and_go_on_pays_nothing_twice(
    page: Page, browser: Browser, own_studio: Studio, experts: Pool, script: SlowScript
):
    address = f"{own_studio.url}/train?tasks={experts.name}"
    with watched_page(browser) as first:
        import_pool(first, own_studio.url, export_pool(experts))
        first.goto(address)
        start_making(first.get_by_role("region", name="Tasks", exact=True), 20)
        answered = read_figure(first.get_by_role("region", name="Tasks being made"), "Answered")
        expect(answered).to_have_text(re.compile("^[1-9]"))
    own_studio.stop(signal.SIGKILL)
    journal = own_studio.home / "tasks" / f"{experts.name}.questions"
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    replies = {(row["worker"], row["key"]) for row in rows if row["kind"] == "reply"}
    script.go.set()
    script.calls.clear()
    own_studio.start()
    page.goto(address)
    view = page.get_by_role("region", name="Tasks being made")
    expect(view.get_by_role("heading", name="Interrupted")).to_be_visible()
    view.get_by_role("button", name="Go on").click()
    expect(view.get_by_role("heading", name="Tasks were made")).to_be_visible()
    asked_again = {
        (model, key)
        for model, key in replies
        for called, text in script.calls
        if called == model and key in text.casefold()
    }
    assert replies and not asked_again
    page.goto("about:blank")  # what it still waits for is not answered by a studio that ends
