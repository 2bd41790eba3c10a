"""How quickly the Compare page is there and filters, over 10,000 stored episodes of an evaluation.

    python bench/speed/compare.py [--json] [--save PATH] [--episodes N]

A real studio and real Chromium. First paint is that of the browser without cache; a filter is timed from the change
of a select to the frame that shows its answer. The first answer after the files changed reads and resamples
everything, the others are kept: both are told. Figures are medians of `--repeats`.

A busy machine is slower at everything: `load` is its load average per core while measuring, `run_paint_s` the first
paint of the Run page in the same minute, and `answer_cpu_ms` the processor time, not the wall time, that the slowest
of the filters takes to be answered when nothing of it is known yet.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.speed.studio import first_paint_seconds, start_studio

LIMITS = {"first_paint_s": 1.5, "filter_ms": 300.0}
ORCHESTRATORS = 10
FAMILIES = ("ledger", "atlas", "forge", "itinerary", "workshop")


def write_results(home: str, episodes: int) -> str:
    """An evaluation of ten orchestrators with as many rows and recorded episodes; the job's id."""
    import random

    from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, TurnStarted, TurnTaken
    from orchestrator.plan import Step, Turn
    from orchestrator.traces.store import open_store
    from pool_registry.storage.data_folder import find_home
    from pool_registry.storage.database import writing
    from trainer.jobs.queue import JobRow, JobStore
    from trainer.recipe import Recipe
    from trainer.results.rows import RESULTS, ResultRow

    noise = random.Random(0)
    store = open_store(find_home(home))
    names = [f"orchestrator-{k}" for k in range(ORCHESTRATORS)]
    jobs = JobStore(store.engine, store.home)
    job = jobs.submit(Recipe.model_validate({"name": "large", "evaluate": {"orchestrators": names}})).id
    lines = []
    for number in range(episodes):
        place, task = number % ORCHESTRATORS, number // ORCHESTRATORS
        correct = noise.random() < 0.3 + 0.06 * place
        key, query = f"c{number:06d}", f"query {task} about Mexico"
        row = ResultRow(
            orchestrator=names[place], source="suite", family=FAMILIES[task % 5], level=1 + task // 5 % 3, split="test",
            index=task, query=query, episode=key, correct=correct, outcome="answered", turns=1, turn_errors=0, steps=4,
            depth=3, width=2, statuses={"OK": 4}, failed_calls=0, wall_s=noise.random(), serial_s=1.5, tokens_in=400,
            tokens_out=60 + place, cost=0.001 * place, workers={"sql": 2, "calculator": 1, "reader": 1},
            access_precision=0.9, access_recall=0.8, matched_steps=3, oracle_steps=4, oracle_depth=3,
        )  # fmt: skip
        lines.append(row.model_dump_json() + "\n")
        started = EpisodeStarted(query, "starter", "h", names[place], {}, "2026-11-01T00:00:00+00:00")
        turn = TurnTaken(1, Turn((Step(1, "sql", {"query": "x"}),), "$1"), 0.1)
        for event in (started, TurnStarted(1, 0.0), turn, EpisodeEnded("answered", 0.3, number)):
            store.traces.append(key, event)
    store.traces.flush()
    (jobs.folder(job).path / RESULTS).write_text("".join(lines), encoding="utf-8")
    with writing(store.engine) as session:
        row = session.get(JobRow, job)
        assert row is not None
        row.state, row.ended_at = "done", datetime.now(UTC)
        session.add(row)
    store.close()
    return job


FILTERS = (("family", "atlas"), ("level", "2"), ("family", ""), ("reference", "orchestrator-9"))


def answer_cpu_milliseconds(home: str) -> float:
    """Processor time of the slowest filter's first answer, with the rows read already."""
    from orchestrator.traces.store import open_store
    from pool_registry.storage.data_folder import find_home
    from studio.pages.compare.results import ResultShelf, Selection
    from studio.pages.compare.suite import build_suite
    from trainer.jobs.queue import JobStore

    store = open_store(find_home(home))
    shelf = ResultShelf(JobStore(store.engine, store.home))
    build_suite(shelf, Selection(), "")
    took = []
    requests = (
        (Selection(family="atlas"), ""),
        (Selection(family="atlas", level=2), ""),
        (Selection(), "orchestrator-9"),
    )
    for selection, reference in requests:
        started = time.process_time()
        build_suite(shelf, selection, reference)
        took.append(1000 * (time.process_time() - started))
    store.close()
    return max(took)


def open_suite(browser: Browser, url: str) -> tuple[Page, dict[str, float]]:
    """The suite view in a browser without cache: first paint, and until its table is there."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    started = time.perf_counter()
    page.goto(f"{url}/compare?tab=suite")
    page.wait_for_selector("[data-figure=turns] svg", timeout=120_000)
    shown = time.perf_counter() - started
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return page, {"first_paint_s": float(paint) / 1000, "table_s": shown}


def filter_milliseconds(page: Page, name: str, value: str) -> float:
    """From choosing a filter to the frame that shows its table."""
    return float(
        page.evaluate(
            """async ([name, value]) => {
              const select = document.querySelector(`[data-filter=${name}]`);
              const body = document.querySelector('.train-curves-suite .compare-body');
              const started = performance.now();
              const drawn = new Promise((done) => {
                const watcher = new MutationObserver(() => {
                  watcher.disconnect();
                  requestAnimationFrame(() => done(performance.now()));
                });
                watcher.observe(body, { childList: true });
              });
              select.value = value;
              select.dispatchEvent(new Event('change', { bubbles: true }));
              return (await drawn) - started;
            }""",
            [name, value],
        )
    )


def measure(repeats: int, episodes: int) -> dict[str, float]:
    """Every figure."""
    measured: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as home, sync_playwright() as playwright:
        command = [sys.executable, "-m", "studio", "prepare", "--home", home]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        write_results(home, episodes)
        measured["answer_cpu_ms"] = [answer_cpu_milliseconds(home)]
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for _ in range(repeats):
            process, url, _ = start_studio(home)
            page, figures = open_suite(browser, url)
            first = [filter_milliseconds(page, name, value) for name, value in FILTERS]
            for name in ("family", "level", "reference"):
                filter_milliseconds(page, name, "" if name != "reference" else "orchestrator-0")
            again = [filter_milliseconds(page, name, value) for name, value in FILTERS]
            figures |= {"filter_ms": max(again), "filter_first_ms": max(first)}
            for name, value in figures.items():
                measured.setdefault(name, []).append(value)
            page.context.close()
            measured.setdefault("run_paint_s", []).append(first_paint_seconds(browser, url))
            process.terminate()
            process.wait(timeout=30)
        browser.close()
    return {name: median(values) for name, values in measured.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--save", type=Path, help="also write the JSON here")
    options = parser.parse_args()
    before = os.getloadavg()[0]
    figures = measure(options.repeats, options.episodes)
    cores = os.cpu_count() or 1
    load = {"before": round(before / cores, 2), "after": round(os.getloadavg()[0] / cores, 2)}
    report = {"cores": cores, "load": load, "episodes": options.episodes, "figures": figures, "limits": LIMITS}
    document = json.dumps(report, indent=1)
    if options.save:
        options.save.write_text(document + "\n")
    lines = [
        f"{name:18} {value:9.3f}  {f'(limit {LIMITS[name]:g})' if name in LIMITS else ''}"
        for name, value in figures.items()
    ]
    print(document if options.json else "\n".join(lines))


if __name__ == "__main__":
    main()
