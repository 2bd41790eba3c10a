"""What a worker brings, and its description from evidence: measured in the page, accepted by a person."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from pool_registry.pool import export_pool
from tests.browser.test_run_page import import_pool
from tests.trainer.support.experts import AUTHOR, Script, build_experts, serve_script
from tests.trainer.support.shop import build_shop


def test_a_worker_is_measured_and_described_and_the_description_is_taken(page: Page, studio_url: str, tmp_path):
    shop = build_shop(tmp_path).model_copy(update={"name": "measured"})
    import_pool(page, studio_url, export_pool(shop))
    page.goto(f"{studio_url}/pool?pool=measured")
    drawer = page.locator(".page-drawer")

    page.get_by_role("button", name="Measure city_of").click()
    expect(drawer.get_by_role("heading", name="What does city_of bring?")).to_be_visible()
    drawer.get_by_role("button", name="Replay tasks").click()
    expect(drawer.locator(".form-general")).to_contain_text("podium tasks make --pool measured")
    drawer.get_by_role("button", name="Close").last.click()

    page.get_by_role("button", name="Train on this pool").click()
    drawer.get_by_label("Number of tasks").fill("60")
    drawer.get_by_role("button", name="Make tasks").click()
    expect(drawer.get_by_role("heading", name=re.compile(r"\d+ tasks: \d+ to learn"))).to_be_visible()
    drawer.get_by_role("button", name="Close").last.click()

    page.get_by_role("switch", name="Disable city_of").click()
    page.get_by_role("button", name="What did it bring?").click()
    drawer.get_by_label("Done by").select_option("oracle")
    drawer.get_by_role("button", name="Replay tasks").click()
    expect(drawer.locator(".pool-value-verdict")).to_contain_text("points higher", timeout=60_000)
    row = drawer.locator("tr[data-figure=score] td")
    expect(row.first).to_have_text("100 %")
    expect(row.nth(2).locator("small")).to_have_text(re.compile(r"^\+\d+ % to \+\d+ %$"))
    drawer.get_by_text("tasks came out otherwise").click()
    expect(drawer.locator(".pool-value-tasks li").first).to_contain_text("right only with it")

    drawer.get_by_role("button", name="Describe this worker").click()
    text = drawer.get_by_label("Proposed description")
    expect(text).to_have_value(re.compile(r"^Returns the city of a customer\. Measured by Podium: 100% of \d+ calls"))
    text.fill("Returns the city of a customer. Always there.")
    drawer.get_by_role("button", name="Use this description").click()
    expect(page.locator("[data-name=city_of] .page-about")).to_have_text(
        "Returns the city of a customer. Always there."
    )


@pytest.mark.slow
def test_an_agent_is_evaluated_alone_and_its_card_has_the_facts(page: Page, studio_url: str):
    with serve_script(Script()) as url:
        pool = build_experts(url).model_copy(update={"name": "judged-alone"})
        import_pool(page, studio_url, export_pool(pool))
        page.goto(f"{studio_url}/pool?pool=judged-alone")
        drawer = page.locator(".page-drawer")
        page.get_by_role("button", name="Measure law1").click()
        drawer.get_by_role("button", name="Evaluate it alone").click()
        expect(drawer.locator(".form-general")).to_contain_text("no tasks to measure with yet")
        drawer.get_by_role("button", name="Close").last.click()

        page.get_by_role("button", name="Train on this pool").click()
        drawer.get_by_label("Number of tasks").fill("20")
        drawer.get_by_label("Questions for agents").select_option(AUTHOR)
        drawer.get_by_role("button", name="Make tasks").click()
        expect(drawer.get_by_role("heading", name=re.compile("^20 tasks: "))).to_be_visible()
        drawer.get_by_role("button", name="Close").last.click()

        page.get_by_role("button", name="Measure law1").click()
        drawer.get_by_role("button", name="Evaluate it alone").click()
        expect(page).to_have_url(re.compile(r"/train\?job=law1-alone-"))
        expect(page.get_by_test_id("job-state")).to_have_text("Done", timeout=180_000)
        page.goto(f"{studio_url}/pool?pool=judged-alone")
        facts = page.get_by_role("region", name="Facts of law1")
        expect(facts).to_contain_text(re.compile(r"Right alone in \d of \d"))
        expect(facts).to_contain_text("newest graded runs, 500 at most")
        facts.get_by_role("button", name="Refresh").click()
        expect(facts).to_contain_text("From all graded runs of this pool")
        expect(page.get_by_role("region", name="Facts of med1")).to_have_count(0)
