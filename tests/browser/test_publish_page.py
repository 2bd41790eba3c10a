"""The Publish page against a Hub on this machine, the pages that it makes, and the exports of a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from playwright.sync_api import Page, Route, expect

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from studio.prepare import prepare_store
from studio.publish.bundle import write_folder
from studio.publish.plan import make_plan
from studio.publish.request import parse_publication
from tests.browser.conftest import Studio, free_port, watched_page
from tests.studio.support.hub_stand_in import Hub, client_environment, hub_stand_in
from tests.studio.support.recorded import record_run

RUNS = (("itinerary", 3, 0), ("forge", 1, 0))


@pytest.fixture(scope="module")
def hub() -> Iterator[tuple[str, Hub]]:
    with hub_stand_in() as running:
        yield running


@pytest.fixture(scope="module")
def publisher(hub: tuple[str, Hub], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A studio with recorded runs, logged in to that Hub."""
    folder = tmp_path_factory.mktemp("publisher")
    running = Studio(folder / "home", variables=client_environment(hub[0], str(folder / "hf")))
    store = prepare_store(str(running.home))
    for family, level, index in RUNS:
        record_run(store, "starter-grpo", family, level, index)
    store.close()
    running.start()
    yield running
    running.stop()


def fill(page: Page, url: str, repo: str, way: str) -> None:
    page.goto(f"{url}/publish?orchestrator=starter-grpo")
    expect(page.locator(".publish-run")).to_have_count(len(RUNS))
    page.get_by_role("textbox", name="Repository").fill(repo)
    page.get_by_text(way, exact=True).click()
    page.get_by_role("button", name="Preview every file").click()


@pytest.mark.slow
def test_every_file_is_shown_and_one_click_publishes_exactly_that(page, publisher, hub):
    fill(page, publisher.url, "tiny-page", "Replay, plain page")
    files = page.locator(".publish-file")
    expect(files.filter(has_text="index.html")).to_have_count(1)
    shown = {row.get_attribute("data-file") for row in files.all()}
    page.locator("[data-file='space/README.md']").click()
    expect(page.locator(".publish-content pre")).to_contain_text("sdk: static")
    page.locator("[data-file='model/recipe.yaml']").click()
    expect(page.locator(".publish-content pre")).to_contain_text("starter:tiny")
    assert not hub[1].repos, "nothing is sent by a preview"
    page.get_by_role("button", name="Publish", exact=True).click()
    state = page.get_by_test_id("publication-state")
    expect(state).to_have_text("Published", timeout=240_000)
    expect(page.get_by_role("link", name="Open the Space")).to_have_attribute(
        "href", f"{hub[0]}/spaces/alice/tiny-page"
    )
    sent = {f"space/{path}" for path in hub[1].space("tiny-page").files}
    sent |= {f"model/{path}" for path in hub[1].model("tiny-page").files}
    assert sent - {"space/.gitattributes", "model/.gitattributes"} == shown
    page.reload()
    expect(state).to_have_text("Published")


def test_choices_that_changed_must_be_previewed_again_and_bad_ones_are_told_at_their_field(page, publisher):
    fill(page, publisher.url, "again", "Replay, Gradio Space")
    publish = page.get_by_role("button", name="Publish", exact=True)
    expect(publish).to_be_enabled()
    page.get_by_label("Title").fill("Something else")
    expect(publish).to_be_disabled()
    page.get_by_role("textbox", name="Repository").fill("not a name!")
    page.get_by_label("About").fill("kept")
    page.get_by_role("button", name="Preview every file").click()
    problem = page.locator(".form-wrong .form-problem")
    expect(problem).to_contain_text("OWNER/NAME")
    expect(problem, "a refusal stands where the eye is").to_be_in_viewport()
    expect(page.get_by_role("textbox", name="Repository")).to_be_focused()
    expect(page.get_by_label("About")).to_have_value("kept")
    expect(page.locator(".publish-file"), "the stale preview has gone").to_have_count(0)
    expect(publish).to_have_count(0)


def test_texts_of_ones_own_are_read_before_they_leave(page, publisher):
    store = prepare_store(str(publisher.home))
    starter = store.pools.latest("starter").pool
    words = "Answer in one line, and mention the anniversary of the firm Hollis."
    config = {"base_url": "https://api.example.com/v1", "model": "m", "role": words}
    helper = WorkerSpec(name="helper", kind="chat", description="Answers questions.", config=config)
    store.pools.save(Pool(name="worded", workers=(*starter.workers, helper)))
    store.close()
    page.goto(f"{publisher.url}/publish?orchestrator=starter-grpo&pool=worded")
    page.get_by_role("textbox", name="Repository").fill("worded")
    page.get_by_text("Live, visitors' own keys", exact=True).click()
    page.get_by_role("button", name="Preview every file").click()
    texts = page.locator(".publish-texts")
    expect(texts).to_contain_text(words)
    expect(texts.locator("dt")).to_have_text(["helper base_url", "helper role"])
    publish = page.get_by_role("button", name="Publish", exact=True)
    expect(publish).to_be_disabled()
    page.get_by_label("I have read them").check()
    expect(publish).to_be_enabled()
    page.get_by_label("Title").fill("Something else")
    expect(publish, "the choices have changed").to_be_disabled()


def test_the_publish_page_fits_a_phone_and_is_accessible(browser, publisher):
    from axe_playwright_python.sync_playwright import Axe

    with watched_page(browser, 390, 844, dark=True) as page:
        fill(page, publisher.url, "phone", "Live, visitors' own keys")
        expect(page.locator(".publish-content pre")).to_be_visible()
        expect(page.locator(".publish-left")).to_contain_text("solver")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.evaluate("scrollTo(0, 0)")  # what was clicked lay further down
        expect(page.locator("#nav [aria-current]"), "the name of the page is in view").to_be_in_viewport(ratio=1)
        serious = [
            each
            for each in Axe().run(page, context=".publish-page").response["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        assert not serious, json.dumps(serious)[:3000]


def test_a_run_is_exported_as_picture_graph_spans_and_page(page, publisher, tmp_path):
    page.goto(f"{publisher.url}/traces?source=all")
    page.locator(".traces-query").first.click()
    expect(page.get_by_test_id("answer")).not_to_be_empty()
    for label, check in (
        ("Graph as SVG", lambda data: Xml.fromstring(data)),
        ("Graph as PNG", lambda data: data.startswith(b"\x89PNG") or pytest.fail("no PNG")),
        ("OpenTelemetry", lambda data: json.loads(data)["resourceSpans"]),
        ("Page that replays it", lambda data: b"PodiumReplay" in data or pytest.fail("no page")),
    ):
        entry = page.locator(".export-menu-item", has_text=label)
        with page.expect_download() as download:
            page.locator("[data-testid=export] summary").click()
            entry.click()
        check(Path(download.value.path()).read_bytes())
        page.keyboard.press("Escape")


def test_an_open_menu_stays_open_when_the_rest_of_the_page_arrives(page, publisher):
    held: list[Route] = []
    page.route("**/what_if/panel.js", lambda route: held.append(route))
    page.goto(f"{publisher.url}/traces?source=all")
    page.locator(".traces-query").first.click()
    page.locator("[data-testid=export] summary").click()
    held[0].continue_()
    expect(page.get_by_test_id("what-if")).to_be_visible()
    entry = page.locator(".export-menu-item", has_text="Graph as SVG")
    expect(entry).to_be_visible()
    page.keyboard.press("Escape")
    expect(entry).to_be_hidden()


@pytest.fixture(scope="module")
def folders(publisher: Studio, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Dry runs: the plain page, and a live Space with its checkpoint inside."""
    made = {}
    store = prepare_store(str(publisher.home))
    for name, more in (("static", {"static": True}), ("live", {"visitors": "secrets"})):
        asked = parse_publication({"pool": "starter", "orchestrator": "starter-grpo", "repo": "tiny", **more})
        plan = make_plan(store, asked, tmp_path_factory.mktemp("place"))
        made[name] = tmp_path_factory.mktemp("dry") / name
        write_folder([plan.space("tiny")], made[name])
    store.close()
    return {name: folder / "space" for name, folder in made.items()}


@pytest.mark.slow
def test_the_plain_page_opens_from_a_file_and_replays(browser, folders):
    with _page_of_a_file(browser, reduced="no-preference") as page:
        page.goto((folders["static"] / "index.html").as_uri())
        expect(page.locator(".space-card")).to_have_count(len(RUNS))
        expect(page.get_by_test_id("answer")).not_to_be_empty()
        steps = page.locator(".run-graph-world .run-graph-card")
        expect(steps).to_have_count(6)
        page.get_by_label("Moment of the run").fill("0")
        expect(steps).to_have_count(0)
        expect(page.get_by_test_id("state")).to_have_text("Running")
        page.get_by_role("button", name="Replay").click()
        expect(page.locator(".run-graph-world .run-graph-card[data-status=RUNNING]").first).to_be_attached()
        expect(page.get_by_test_id("state")).to_have_text("Answered", timeout=60_000)
        expect(steps).to_have_count(6)
        steps.nth(3).click()
        expect(page.locator(".run-inspector-head")).to_contain_text("Step 4")
        expect(page.locator(".run-inspector")).to_contain_text("What it was allowed to see")
        page.locator(".space-card").nth(1).click()
        expect(page.locator(".run-summary-query")).to_contain_text("GCD")


@pytest.mark.slow
def test_a_live_space_answers_a_query_and_shows_its_graph(page, folders):
    with started(folders["live"], sys.executable) as url:
        _asks(page, url)


@pytest.mark.slow
def test_a_live_space_runs_in_a_clean_environment_from_its_own_requirements(page, folders, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"]
    # Python compiles what is imported: compiling all that is installed takes a minute.
    subprocess.run([*pip, "--no-compile", "-r", "requirements.txt"], cwd=folders["live"], check=True, timeout=3000)
    with started(folders["live"], python) as url:
        _asks(page, url)


def _asks(page: Page, url: str) -> None:
    """The recorded runs are there at once; a query is answered live and every step can be looked into."""
    page.goto(url)
    expect(page.locator(".space-card")).to_have_count(len(RUNS), timeout=60_000)
    expect(page.get_by_test_id("answer")).not_to_be_empty()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".space-card[aria-pressed=true]")).to_have_count(0, timeout=120_000)
    expect(page.get_by_test_id("state")).to_have_text("Answered, not verified", timeout=240_000)
    cards = page.locator(".run-graph-card:visible")
    assert cards.count() >= 5
    cards.nth(3).click()
    expect(page.locator(".run-inspector-head")).to_contain_text("Step")
    page.goto("about:blank")  # or it would ask a Space that has ended


class started:
    """A Space's app in a process of its own."""

    def __init__(self, folder: Path, python: str) -> None:
        self.port = free_port()
        command = [python, "app.py"]
        environment = {**os.environ, "GRADIO_SERVER_PORT": str(self.port), "OMP_NUM_THREADS": "1"}
        with (folder.parent / "app.log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)

    def __enter__(self) -> str:
        url = f"http://127.0.0.1:{self.port}"
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            assert self.process.poll() is None, "the Space ended"
            with suppress(OSError), urllib.request.urlopen(url, timeout=2):
                return url
            time.sleep(0.2)
        raise AssertionError("the Space did not answer")

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(timeout=60)


class _page_of_a_file:
    """A page that may read files and asks nobody for anything."""

    def __init__(self, browser, reduced: str) -> None:
        self.context = browser.new_context(viewport={"width": 1440, "height": 1000}, reduced_motion=reduced)

    def __enter__(self) -> Page:
        self.problems: list[str] = []
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda said: self.problems.append(said.text) if said.type == "error" else None)
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(("file:", "data:")) else self.problems.append(asked.url),
        )
        return page

    def __exit__(self, kind: object, *_: object) -> None:
        self.context.close()
        assert kind is not None or not self.problems, self.problems
