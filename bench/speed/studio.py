"""How quickly the studio is there: imports, start, first paint, first graph, updates, and filters over traces.

    python bench/speed/studio.py [--json] [--save PATH]

A real studio on an empty data folder (starter data prepared, as after `make setup`) and real Chromium. The
figures are the best of `--repeats`, in seconds unless their name says otherwise; limits are those of the project.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

if TYPE_CHECKING:
    from orchestrator.engine.events import Event
    from pool_registry.pool import Pool

LIMITS = {
    "import_orchestrator_s": 0.3,
    "import_engine_s": 0.3,
    "ready_s": 6.0,
    "first_paint_s": 1.5,
    "first_graph_s": 60.0,
    "traces_filter_ms": 300.0,
    "layout_200_steps_ms": 100.0,
    "update_200_steps_ms": 100.0,
    "draw_1000_steps_ms": 1500.0,
    "click_1000_steps_ms": 100.0,
    "elements_1000_steps": 20_000.0,
    "watchers_50_median_s": 2.0,
}


def import_seconds(module: str) -> float:
    """Importing `module` in a fresh interpreter, less the bare interpreter's start; no torch may come along."""

    def time_program(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - started

    code = f"import {module}, sys; assert 'torch' not in sys.modules"
    return max(0.0, time_program(code) - time_program("pass"))


def start_studio(home: str) -> tuple[subprocess.Popen[bytes], str, float]:
    """A studio process, its address, and the seconds until the page was served."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = time.perf_counter()
    command = [sys.executable, "-m", "studio", "--port", str(port), "--no-browser", "--home", home]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    while time.perf_counter() - started < 60:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            break
        time.sleep(0.01)
    return process, url, time.perf_counter() - started


def first_paint_seconds(browser: Browser, url: str) -> float:
    """First contentful paint of the Run page in a browser without cache."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("#run")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    context.close()
    return float(paint) / 1000


def first_graph_seconds(browser: Browser, url: str) -> float:
    """From opening the page to a finished, graded graph: one click."""
    context = browser.new_context()
    page = context.new_page()
    started = time.perf_counter()
    page.goto(url)
    page.wait_for_function("document.querySelector('#query textarea')?.value")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_test_id("verdict").wait_for()
    seconds = time.perf_counter() - started
    context.close()
    return seconds


def filter_milliseconds(episodes: int = 10_000) -> float:
    """The slowest of the Traces page's filters over this many stored episodes."""
    from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, TurnStarted, TurnTaken
    from orchestrator.plan import Turn
    from orchestrator.traces.store import TraceFilter, open_store
    from pool_registry.storage.data_folder import find_home

    with tempfile.TemporaryDirectory(prefix="podium-bench-") as home:
        store = open_store(find_home(home))
        for number in range(episodes):
            name = "oracle" if number % 3 else "fan_out"
            query, day = f"query {number} about Mexico", f"2026-11-{1 + number % 20:02d}T00:00:00+00:00"
            events = (
                EpisodeStarted(query, "starter", "h", name, {}, day),
                TurnStarted(1, 0.0),
                TurnTaken(1, Turn(answer=number), 0.1),
                EpisodeEnded("answered", 0.3, number),
            )
            for event in events:
                store.traces.append(f"e{number:06d}", event)
        store.traces.flush()
        took = []
        filters = ({}, {"text": "9999"}, {"orchestrator": "fan_out", "offset": 2000}, {"state": "wrong"})
        for wanted in filters:
            started = time.perf_counter()
            store.traces.search(TraceFilter(limit=51, **wanted))
            took.append(1000 * (time.perf_counter() - started))
        store.close()
    return max(took)


def list_long_run_events(steps: int, pool: Pool, running: int = 0) -> list[Event]:
    """The events of a run of `steps` steps on `pool`, 8 to a layer, each seeing two of the one before. The last
    `running` steps, and with them the run, have not ended."""
    from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, StepEnded, StepStarted, TurnStarted, TurnTaken
    from orchestrator.plan import Step, Turn
    from pool_registry.actions import Observation, Status

    worker = next(spec.name for spec in pool.workers if spec.kind == "calculator")
    plan = tuple(
        Step(k, worker, {"expression": f"{k}+1"}, tuple(sorted({k - 8, k - 9} - {0})) if k > 9 else ())
        for k in range(1, steps + 1)
    )
    events: list[Event] = [
        EpisodeStarted(
            f"A run of {steps} steps", pool.name, pool.hash, "oracle", {}, datetime.now(UTC).isoformat("T", "seconds")
        ),
        TurnStarted(1, 0.0),
        TurnTaken(1, Turn(plan, f"${steps}", text="{}"), 0.1),
    ]
    for k in range(1, steps + 1 - running):
        at = 0.1 + 0.01 * k
        events += [
            StepStarted(k, at, {"expression": f"{k}+1"}),
            StepEnded(k, Observation(Status.OK, k + 1, 0.05), at + 0.05),
        ]
    return events if running else [*events, EpisodeEnded("answered", 0.2 + 0.01 * steps, steps + 1)]


def large_view(steps: int = 200) -> dict:
    """What the page is given for an episode of `steps` steps, of which one still runs."""
    from orchestrator.engine.episode import replay
    from orchestrator.traces.store import EpisodeRow
    from pool_registry.pool import Pool
    from pool_registry.worker import WorkerSpec
    from studio.episode_documents.view import build_episode_view

    pool = Pool(name="p", workers=(WorkerSpec(name="calc", kind="calculator", description="c"),))
    events = list_long_run_events(steps, pool, running=1)
    row = EpisodeRow(
        id="e", query="q", pool="p", pool_hash=pool.hash, orchestrator="oracle", started_at="2026-01-01T00:00:00+00:00"
    )
    return build_episode_view(replay("e", events), row, pool, 1).to_json()


def record_long_run(home: Path, steps: int) -> str:
    """Record a finished run of `steps` steps on the starter pool in a data folder; its episode's id."""
    from orchestrator.traces.store import open_store
    from pool_registry.starter import seed_starter
    from pool_registry.storage.data_folder import find_home

    episode = f"long-run-{steps}"
    store = open_store(find_home(home))
    try:
        seed_starter(store.pools)
        for event in list_long_run_events(steps, store.pools.latest("starter").pool):
            store.traces.append(episode, event)
        store.traces.flush()
    finally:
        store.close()
    return episode


def long_run_figures(browser: Browser, url: str, episode: str) -> dict[str, float]:
    """How a run of 1,000 steps is drawn: milliseconds from its document to the laid-out page, milliseconds from a
    click on a step to the next frame (the median of five), and elements in the page."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(f"{url}/?episode={episode}")
    page.wait_for_function("document.querySelectorAll('.run-timeline-step').length >= 1000")
    page.wait_for_timeout(1000)
    elements = page.evaluate("document.querySelectorAll('*').length")
    clicks = [page.evaluate(CLICK, number) for number in (1, 5, 8, 3, 9)]
    draw = page.evaluate(DRAW, episode)
    context.close()
    return {
        "draw_1000_steps_ms": float(draw),
        "click_1000_steps_ms": float(median(clicks)),
        "elements_1000_steps": float(elements),
    }


def watcher_seconds(url: str, episode: str, watchers: int = 50) -> float:
    """Open the stream of a run this many times at once; the median of the seconds until each has its graph."""

    def time_first_document(_watcher: int) -> float:
        started = time.perf_counter()
        with urllib.request.urlopen(f"{url}/api/episodes/{episode}/stream", timeout=120) as stream:
            next(line for line in stream if line.startswith(b"data:"))
        return time.perf_counter() - started

    with ThreadPoolExecutor(watchers) as threads:
        return median(threads.map(time_first_document, range(watchers)))


CLICK = """(number) => new Promise((resolve) => {
  const row = document.querySelectorAll('.run-timeline-step')[number];
  const started = performance.now();
  row.click();
  requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - started)));
})"""
DRAW = """async (episode) => {
  const view = await new Promise((resolve) => {
    const stream = new EventSource(`/api/episodes/${episode}/stream`);
    stream.addEventListener('view', (event) => { stream.close(); resolve(JSON.parse(event.data)); });
  });
  const { RunView } = await import('/podium/web/run/run_view.js');
  const root = document.createElement('div');
  document.querySelector('.run-view').replaceWith(root);
  const shown = new RunView(root, () => {});
  shown.episode = episode;
  const started = performance.now();
  shown.take(view);
  root.getBoundingClientRect();
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return performance.now() - started;
}"""


def update_milliseconds(browser: Browser, url: str, view: dict) -> float:
    """Taking a patch of every node into a drawn graph of 200 steps, until the browser has laid it out."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("#run")
    took = page.evaluate(
        """async (view) => {
          const { mount } = await import('/podium/web/run/run_view.js');
          const root = document.createElement('div');
          document.body.append(root);
          const shown = mount(root);
          shown.episode = 'e';
          shown.take(view);
          root.getBoundingClientRect();
          const took = [];
          for (let round = 0; round < 5; round += 1) {
            const started = performance.now();
            shown.patch({ ...view, nodes: view.graph.nodes });
            root.getBoundingClientRect();
            took.push(performance.now() - started);
          }
          shown.close();
          return Math.min(...took);
        }""",
        view,
    )
    context.close()
    return float(took)


def measure(repeats: int) -> dict[str, float]:
    """Every figure."""
    modules = {"import_orchestrator_s": "orchestrator", "import_engine_s": "orchestrator.engine.episode_loop"}
    figures = {name: min(import_seconds(module) for _ in range(repeats)) for name, module in modules.items()}
    figures["traces_filter_ms"] = filter_milliseconds()
    large_view()
    laid_out = []
    for _ in range(repeats):
        started = time.perf_counter()
        view = large_view()
        laid_out.append(1000 * (time.perf_counter() - started))
    figures["layout_200_steps_ms"] = min(laid_out)
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as home, sync_playwright() as playwright:
        subprocess.run(
            [sys.executable, "-m", "studio", "prepare", "--home", home], check=True, stdout=subprocess.DEVNULL
        )
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        long_run = record_long_run(Path(home), 1000)
        ready, paint = [], []
        for repeat in range(repeats):
            process, url, seconds = start_studio(home)
            ready.append(seconds)
            paint.append(first_paint_seconds(browser, url))
            if repeat == 0:
                figures["first_graph_s"] = first_graph_seconds(browser, url)
            if repeat == repeats - 1:
                figures["update_200_steps_ms"] = update_milliseconds(browser, url, view)
                figures |= long_run_figures(browser, url, long_run)
                figures["watchers_50_median_s"] = watcher_seconds(url, long_run)
            process.terminate()
            process.wait(timeout=20)
        browser.close()
    return {**figures, "ready_s": min(ready), "first_paint_s": min(paint)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--save", type=Path, help="also write the JSON here")
    options = parser.parse_args()
    figures = measure(options.repeats)
    document = json.dumps({"cores": os.cpu_count(), "figures": figures, "limits": LIMITS}, indent=1)
    if options.save:
        options.save.write_text(document + "\n")
    table = "\n".join(f"{name:24} {figures[name]:8.3f}  (limit {LIMITS[name]:g})" for name in LIMITS)
    print(document if options.json else table)


if __name__ == "__main__":
    main()
