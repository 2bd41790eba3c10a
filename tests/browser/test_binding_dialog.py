"""The Binding dialog of the Pool page: which workers here stand for those that a checkpoint learnt elsewhere."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from pool_registry.pool import export_pool
from pool_registry.starter import starter_pool
from tests.browser.test_run_page import import_pool
from trainer.tasks.pool_conditions import apply_condition

CHECKPOINT = "starter-grpo"


def open_dialog(page: Page) -> None:
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Binding", exact=True).click()
    drawer = page.locator(".page-drawer")
    drawer.get_by_label("Checkpoint").select_option(CHECKPOINT)
    expect(drawer.locator(".pool-binding-row").first).to_be_visible()
    expect(drawer.locator(".pool-binding-rows")).not_to_have_attribute("aria-busy", "true")


def test_a_learnt_worker_is_bound_to_another_one_and_reset(page: Page, studio_url: str):
    pool, renaming = apply_condition("renamed", starter_pool(), 1)
    import_pool(page, studio_url, export_pool(pool))
    page.goto(f"{studio_url}/pool?pool={pool.name}")
    open_dialog(page)
    drawer = page.locator(".page-drawer")
    row = drawer.locator(".pool-binding-row[data-learnt=sql]")
    choice = drawer.get_by_label("Worker for sql", exact=True)
    summary = drawer.locator(".pool-binding-summary")
    expect(row).to_have_attribute("data-state", "bound")
    expect(choice.locator("option:checked")).to_have_text(f"Automatic: {renaming['sql']}")

    choice.select_option(renaming["python"])
    expect(row).to_have_attribute("data-state", "chosen")
    expect(row).to_contain_text("your choice")
    expect(summary).to_contain_text("1 chosen by you")
    choice.select_option("None")
    expect(row).to_have_attribute("data-state", "unbound")
    expect(row).to_contain_text("Its steps will be PARSE_ERR.")

    page.reload()  # the choice is kept with the pool's version
    open_dialog(page)
    expect(row).to_have_attribute("data-state", "unbound")
    drawer.get_by_role("button", name="Reset all").click()
    expect(row).to_have_attribute("data-state", "bound")
    expect(choice.locator("option:checked")).to_have_text(f"Automatic: {renaming['sql']}")
    expect(summary).not_to_contain_text("chosen by you")
    expect(drawer.get_by_role("button", name="Reset all")).to_be_hidden()


def test_a_pool_that_a_checkpoint_learnt_needs_no_binding(page: Page, studio_url: str):
    page.goto(f"{studio_url}/pool?pool=starter")
    open_dialog(page)
    expect(page.locator(".pool-binding-summary")).to_contain_text("nothing needs to be bound")
