"""Cards of the graph: whole names up to 40 letters, and one colour for one worker."""

from __future__ import annotations

import json

from playwright.sync_api import Browser, expect

from tests.browser.conftest import watched_page
from tests.browser.support.scripted_model import scripted_model, sums_pool
from tests.browser.test_run_page import FINISHED, import_pool

LONG = "mcp-server-calculator_calculate_an_exact"
PLAN = {
    "steps": [
        {"worker": LONG, "arguments": {"instruction": "Say four."}, "access": []},
        {"worker": "calculator", "arguments": {"expression": "2 + 2"}, "access": []},
        {"worker": "calculator", "arguments": {"expression": "$2 + 1"}, "access": [2]},
    ],
    "answer": "$3",
}
IS_CUT = "(node) => node.scrollWidth > node.clientWidth || node.scrollHeight > node.clientHeight + 1"


def test_a_name_of_forty_letters_is_whole_and_a_worker_has_one_colour(browser: Browser, studio_url: str):
    assert len(LONG) == 40
    with scripted_model([json.dumps(PLAN), "four"]) as address, watched_page(browser) as page:
        import_pool(page, studio_url, sums_pool("wordy", address, ("planner", LONG)))
        page.goto(f"{studio_url}/?pool=wordy&orchestrator=model:planner")
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
        page.locator("#query textarea").fill("What is two plus two, and one more?")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_test_id("state")).to_have_text(FINISHED)
        cards = page.locator(".run-graph-world .run-graph-card")
        expect(cards).to_have_count(3)
        for number in (0, 1, 2):
            card = cards.nth(number)
            assert not card.locator(".run-graph-name").evaluate(IS_CUT)
            assert not card.evaluate("(node) => node.scrollHeight > node.clientHeight")
        colours = cards.evaluate_all("(list) => list.map((node) => getComputedStyle(node, '::before').backgroundColor)")
        assert colours[1] == colours[2] != colours[0]
