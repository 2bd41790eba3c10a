"""An agent's skills at the pages: agreed to at an import, refused where their folder is gone, shown in the budget."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Studio, watched_page
from tests.browser.support.pools import SlowModel, chat_pool, slow_model
from tests.browser.test_run_page import import_pool


def test_a_skill_is_agreed_to_read_and_shown_in_the_budget(browser, studio: Studio, tmp_path: Path):
    folder = tmp_path / "invoices"
    folder.mkdir()
    text = "---\nname: invoices\ndescription: Totals of invoices.\n---\nAdd the tax last.\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    with slow_model() as base_url, watched_page(browser) as page:
        SlowModel.release.set()
        document = json.loads(chat_pool("skilled", base_url))
        document["workers"] = document["workers"][:1]
        document["workers"][0]["config"]["skills"] = [str(folder)]
        import_pool(page, studio.url, json.dumps(document))
        page.get_by_role("button", name="Edit first", exact=True).click()
        page.get_by_label("Skills").fill(str(tmp_path / "gone"))
        page.locator(".page-drawer").get_by_role("button", name="Save").click()
        page.get_by_role("button", name="I have read this: go on").click()
        expect(page.locator(".form-wrong")).to_contain_text("cannot be read")
        page.goto(f"{studio.url}/?pool=skilled&orchestrator=direct:first")
        expect(page.locator("#run")).to_be_enabled()
        page.locator("#query textarea").fill("Use invoices: what is due?")
        page.locator("#run").click()
        page.locator(".run-graph-world .run-graph-card").first.click()
        budget = page.get_by_test_id("context")
        expect(budget.get_by_role("listitem")).to_contain_text(
            ["Role", "Skills", "Skill invoices, read", "Instruction", "Room for the reply"]
        )
        expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("Add the tax last.")
