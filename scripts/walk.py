"""Walks through a fresh studio as a new user and counts clicks and seconds.

    python -m scripts.walk [--out walk.json]

A studio is started on an empty data folder and driven in headless Chromium, without a key, a model server or a network:
the first answer, an own question, a worker that is added and tested in a new pool, an answer by an own pool, and a
training that is started and stopped. Seconds are wall time: compare walks of one machine. A walk whose goal is not
reached says why.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from playwright.sync_api import Error, Locator, Page, sync_playwright

from orchestrator.engine.process_identity import signal_process
from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from trainer.jobs.queue import JobStore

START_S = 240.0
PATIENCE_MS = 240_000  # a reader plans for minutes on a busy machine
TRAINING_MS = 600_000  # a job imports torch and loads its model before it stops
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@dataclass(frozen=True, slots=True)
class Walk:
    """One goal: the clicks and the seconds that it took, and why it was not reached ("" where it was)."""

    goal: str
    clicks: int
    seconds: float
    result: str
    problem: str = ""


class Walker:
    """A person at the page, whose clicks are counted. Typing is no click."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.clicks = 0

    def click(self, target: Locator) -> None:
        target.first.click()
        self.clicks += 1

    def press(self, name: str, within: str = "body") -> None:
        self.click(self.page.locator(within).get_by_role("button", name=name, exact=True))

    def open(self, path: str) -> None:
        """Open a page by its link in the navigation."""
        self.click(self.page.locator(f"#nav a[data-page='{path}']"))


def answer_first_query(walker: Walker) -> str:
    """The query that stands there, answered."""
    walker.page.goto(walker.url)
    walker.page.wait_for_function("document.querySelector('#query textarea')?.value")
    walker.press("Run")
    return read_answer(walker.page)


def ask_own_question(walker: Walker) -> str:
    """A question of one's own, with what the page has chosen."""
    walker.page.goto(walker.url)
    walker.page.wait_for_function("document.querySelector('#query textarea')?.value")
    walker.page.locator("#query textarea").fill("What is 17 * 23?")
    walker.press("Run")
    return read_answer(walker.page)


def read_answer(page: Page) -> str:
    """The answer of the run that is shown, or how it ended without one."""
    page.wait_for_selector("[data-testid=answer], .run-summary-reason", timeout=PATIENCE_MS)
    return page.locator("[data-testid=answer], .run-summary-reason").first.inner_text()


def add_and_test_worker(walker: Walker) -> str:
    """A worker of the gallery in a new pool, tested."""
    make_pool(walker, "walked")
    walker.press("Add worker")
    card = walker.page.locator("[data-template=units]")
    walker.click(card.locator(".pool-gallery-add"))
    walker.click(card.locator(".pool-gallery-test"))
    walker.page.wait_for_selector(".pool-test[data-status]", timeout=PATIENCE_MS)
    return walker.page.locator(".pool-test").first.inner_text()


def make_pool(walker: Walker, name: str) -> None:
    """A new, empty pool."""
    walker.page.goto(walker.url)
    walker.page.wait_for_selector("#nav a[data-page=pool]")
    walker.open("pool")
    walker.page.get_by_role("button", name="New pool").wait_for(timeout=PATIENCE_MS)
    walker.press("New pool")
    walker.page.locator(".page-drawer").get_by_label("Name", exact=True).fill(name)
    walker.press("Create", ".page-drawer")
    walker.page.wait_for_function(f"document.querySelector('[aria-label=Pool]')?.value === '{name}'")


def answer_by_own_pool(walker: Walker) -> str:
    """A question that a pool of one's own answers: two workers of the gallery, then Run on that pool."""
    make_pool(walker, "mine")
    walker.press("Add worker")
    for template in ("units", "calculator"):
        card = walker.page.locator(f"[data-template={template}]")
        walker.click(card.locator(".pool-gallery-add"))
        card.locator(".pool-gallery-test").wait_for(timeout=PATIENCE_MS)
    walker.press("Close", ".page-drawer")
    walker.click(walker.page.locator("[data-key=run]"))
    walker.page.wait_for_function("!document.querySelector('#run')?.disabled")
    walker.page.locator("#query textarea").fill("Convert 5 miles to km")
    walker.press("Run")
    return read_answer(walker.page)


def start_and_stop_training(walker: Walker) -> str:
    """The training that the page offers first: started, seen running, stopped with what it has learnt."""
    walker.page.goto(walker.url)
    walker.page.wait_for_selector("#nav a[data-page=train]")
    walker.open("train")
    walker.page.wait_for_selector(".train-go[aria-disabled=false]", timeout=PATIENCE_MS)
    walker.click(walker.page.locator(".train-go"))
    question = walker.page.get_by_role("button", name="Start anyway")
    walker.page.wait_for_function("location.search.includes('job=') || document.querySelector('.train-confirm')")
    if question.is_visible():
        walker.click(question)
    state = walker.page.get_by_test_id("job-state")
    state.and_(walker.page.locator("[data-state=running]")).wait_for(timeout=PATIENCE_MS)
    walker.press("Stop and save")
    state.and_(walker.page.locator("[data-state=stopped]")).wait_for(timeout=TRAINING_MS)
    return walker.page.locator(".train-job-wait").first.inner_text()


GOALS: dict[str, Callable[[Walker], str]] = {
    "first answer": answer_first_query,
    "own question": ask_own_question,
    "worker added and tested in a new pool": add_and_test_worker,
    "answer by an own pool": answer_by_own_pool,
    "training started and stopped": start_and_stop_training,
}


def take_walk(goal: str, page: Page, url: str) -> Walk:
    """Walk to one goal and measure it."""
    walker = Walker(page, url)
    started = time.perf_counter()
    try:
        result, problem = GOALS[goal](walker), ""
    except Error as error:
        result, problem = "", str(error).splitlines()[0]
    return Walk(goal, walker.clicks, round(time.perf_counter() - started, 1), result[:200], problem)


@contextmanager
def run_studio(home: Path) -> Iterator[str]:
    """A studio on its own data folder; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "studio", "--port", str(port), "--no-browser", "--home", str(home)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            with suppress(OSError), urllib.request.urlopen(url, timeout=2):
                break
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)
        end_jobs(home)


def end_jobs(home: Path) -> None:
    """End the jobs that a walk has left: they outlive the studio."""
    store = open_store(find_home(str(home)))
    for row in JobStore(store.engine, store.home).all():
        if row.active:
            signal_process(row.owner, signal.SIGKILL)
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--out", type=Path, help="write the walks as JSON here")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--only", choices=list(GOALS), help="one goal alone")
    options = parser.parse_args()
    goals = [options.only] if options.only else list(GOALS)
    walks = []
    with tempfile.TemporaryDirectory() as folder, run_studio(Path(folder) / "home") as url, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=options.chromium, args=FLAGS)
        for goal in goals:
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            walk = take_walk(goal, page, url)
            walks.append(walk)
            print(
                f"{walk.goal:40} {walk.clicks:3} clicks {walk.seconds:7.1f} s  {walk.problem or walk.result}",
                flush=True,
            )
            page.close()
        browser.close()
    if options.out:
        options.out.write_text(json.dumps([asdict(walk) for walk in walks], indent=1) + "\n")


if __name__ == "__main__":
    main()
