"""Train on this pool: tasks are made of what the workers answer, read, struck, and learnt by a job."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from pool_registry.pool import export_pool
from tests.browser.test_run_page import import_pool
from tests.trainer.support.shop import build_shop


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
