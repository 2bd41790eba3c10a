"""Train on this pool: tasks are made of what the workers answer, read, struck, and learnt by a job."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from bench.support.small_presets import make_small_base, shrink_recipe
from pool_registry.pool import export_pool
from tests.browser.conftest import Studio
from tests.browser.test_run_page import import_pool
from tests.browser.test_train_page import LONG_MS, start
from tests.trainer.support.shop import build_shop
from trainer.pool_recipe import build_pool_recipe
from trainer.recipe import dump_recipe


@pytest.mark.slow
def test_practice_tasks_are_made_struck_and_given_to_a_job(page: Page, studio_url: str, tmp_path):
    import_pool(page, studio_url, export_pool(build_shop(tmp_path)))
    page.goto(f"{studio_url}/pool?pool=shop")
    page.get_by_role("button", name="Train on this pool").click()
    drawer = page.locator(".page-drawer")
    expect(drawer.get_by_role("heading", name="No tasks yet")).to_be_visible()
    expect(drawer.get_by_role("button", name="Train", exact=True)).to_be_hidden()

    drawer.get_by_label("Number of tasks").fill("0")
    drawer.get_by_role("button", name="Make tasks").click()
    expect(drawer.locator(".form-general")).to_contain_text("give a number from 1")
    drawer.get_by_label("Number of tasks").fill("30")
    drawer.get_by_role("button", name="Make tasks").click()
    rows = drawer.locator(".pool-training-list li:has(b)")
    expect(rows.first).to_be_visible()
    expect(drawer.get_by_role("heading", name=re.compile(r"\d+ tasks: \d+ to learn"))).to_be_visible()

    query = rows.first.locator("b").inner_text()
    before = rows.count()
    drawer.get_by_role("button", name=f"Strike: {query}", exact=True).click()
    expect(rows).to_have_count(before - 1)

    drawer.get_by_role("button", name="Train", exact=True).click()
    expect(page).to_have_url(re.compile(r"/train\?job=shop-reader-"))
    page.get_by_role("button", name=re.compile("Stop|Remove|Cancel")).first.click()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return make_small_base(tmp_path / "base", "starter")


@pytest.mark.slow
def test_a_pool_goes_from_its_workers_to_a_trained_checkpoint_that_runs(
    page: Page, studio: Studio, tmp_path, base: Path
):
    """The whole way in the page. The recipe is the button's, on a random model with few steps."""
    import_pool(page, studio.url, export_pool(build_shop(tmp_path).model_copy(update={"name": "corner"})))
    page.goto(f"{studio.url}/pool?pool=corner")
    page.get_by_role("button", name="Train on this pool").click()
    drawer = page.locator(".page-drawer")
    drawer.get_by_label("Number of tasks").fill("30")
    drawer.get_by_role("button", name="Make tasks").click()
    tasks = drawer.get_by_role("heading", name=re.compile(r"\d+ tasks: \d+ to learn"))
    expect(tasks).to_be_visible()
    to_learn = int(re.findall(r"\d+", tasks.inner_text())[1])

    job = start(page, studio.url, dump_recipe(shrink_recipe(build_pool_recipe("corner", to_learn), base)))
    expect(page.get_by_test_id("job-state")).to_have_text("Done", timeout=LONG_MS)
    outcome = page.get_by_test_id("outcome")
    expect(outcome).to_contain_text(re.compile(r"Solves \d+ of \d+ of the made practice tasks"))

    outcome.get_by_role("link", name="Compare").click()
    rows = page.locator("[data-table=scores] tbody tr")
    expect(rows.filter(has_text="corner-reader")).not_to_have_count(0)
    page.goto(f"{studio.url}/train?job={job}")
    outcome.get_by_role("link", name="Run", exact=True).click()
    expect(page.locator("#run-orchestrator input")).to_have_value(re.compile("corner-reader"))
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_test_id("export")).to_be_visible(timeout=LONG_MS)  # the run has ended, whatever it came to
