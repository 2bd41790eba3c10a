"""Takes the README's pictures of a fresh studio.

    python scripts/screenshots.py [--out assets/screenshots] [--all] [--jobs FOLDER]

Runs the studio on a data folder of its own, presses Run, selects a step and photographs the page in real
Chromium. With --all every page is taken at 1440 and 390 px, light and dark, to be looked at. With --jobs a
copy of that data folder is used, so that the Train page shows its newest job.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from pool_registry.storage.data_folder import find_home
from scripts.running_studio import run_studio
from studio.prepare import build_starter_data

HEIGHTS = {1440: 1000, 390: 844}
# page, selector that appears when it is ready
OTHER_PAGES = (("pool", ".page-card"), ("traces", ".traces-table tbody tr"), ("serve", "h1"), ("publish", "h1"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("assets/screenshots"))
    parser.add_argument("--all", action="store_true", help="Every page, width and colour scheme.")
    parser.add_argument("--jobs", type=Path, help="A data folder with trained jobs; it is copied.")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with run_filled_studio(options.jobs) as url, sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for width in HEIGHTS if options.all else (1440,):
            for dark in (False, True):
                take_pictures(browser, url, width, dark, options)
        browser.close()


def take_pictures(browser: Browser, url: str, width: int, dark: bool, options: argparse.Namespace) -> None:
    """Take the Run and Compare pages, and with --all the others, in one width and colour scheme."""
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHTS[width]},
        color_scheme="dark" if dark else "light",
        device_scale_factor=1,
        reduced_motion="reduce",
    )
    page = context.new_page()
    scheme = f"{'dark' if dark else 'light'}{'' if width == 1440 else f'-{width}'}"
    open_finished_run(page, url)
    page.screenshot(path=options.out / f"run-{scheme}.png", full_page=True)
    open_comparison(page, url)
    page.screenshot(path=options.out / f"compare-{scheme}.png", full_page=True)
    if options.all:
        for name, ready in OTHER_PAGES:
            page.goto(f"{url}/{name}")
            page.locator(ready).first.wait_for()
            if name == "pool":
                page.locator("[data-health=ok]").first.wait_for()
            page.screenshot(path=options.out / f"{name}-{scheme}.png", full_page=True)
        take_train_page(page, url, scheme, options.out)
    context.close()


def take_train_page(page: Page, url: str, scheme: str, out: Path) -> None:
    """Take the recipe, and every tab of the newest job where there is one."""
    page.goto(f"{url}/train?new=1")
    page.locator(".train-needs[data-ready=true], .train-needs[data-ready=false]").wait_for()
    page.screenshot(path=out / f"train-recipe-{scheme}.png", full_page=True)
    if not page.locator(".train-job").count():
        return
    page.locator(".train-job").first.click()
    page.locator("[data-testid=job-state]").wait_for()
    for tab in ("curves", "rollouts", "checkpoints", "log"):
        page.locator(f"[data-tab={tab}]").click()
        page.wait_for_timeout(1200)
        page.screenshot(path=out / f"train-{tab}-{scheme}.png", full_page=True)


def open_comparison(page: Page, url: str) -> None:
    """Compare three orchestrators on one query: the reference plan, the trained model, and a random plan."""
    page.goto(f"{url}/compare?o=oracle&o=starter-grpo&o=random_plan")
    page.locator(".compare-chip").nth(2).wait_for()
    page.get_by_role("button", name="Compare", exact=True).click()
    for place in range(3):
        page.locator(f".compare-query-side[data-place='{place}'][data-state='ended']").wait_for(timeout=600_000)
    page.wait_for_timeout(600)


def open_finished_run(page: Page, url: str) -> None:
    """Run the page's example query and select a step in the middle."""
    page.goto(url)
    page.wait_for_function("document.querySelector('#query textarea')?.value")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_test_id("answer").wait_for(timeout=600_000)
    page.locator(".run-graph-card:visible").last.click()
    page.locator(".run-inspector-head").wait_for()
    page.evaluate("window.scrollTo(0, 0)")
    page.wait_for_timeout(400)


@contextmanager
def run_filled_studio(jobs: Path | None = None) -> Iterator[str]:
    """A studio with an empty data folder, or a copy of `jobs`; yields its address."""
    with tempfile.TemporaryDirectory(prefix="podium-pictures-") as home:
        if jobs is not None:
            shutil.copytree(jobs, home, dirs_exist_ok=True)
        build_starter_data(find_home(home), with_model=False)  # as `make setup` does
        with run_studio(Path(home)) as url:
            yield url


if __name__ == "__main__":
    main()
