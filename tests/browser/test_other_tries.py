"""A run in which a rejected call was tried with other words: the tries count apart and are no failures."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from playwright.sync_api import Page, expect

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Step, Turn
from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.storage.data_folder import find_home
from tests.browser.conftest import Studio
from tests.browser.support.jobs import Scripted

COUNTS = "2, 4 other tries"


def compute(k: int, expression: str, need: str) -> Step:
    access = (int(expression[1]),) if expression.startswith("$") else ()
    return Step(k, "calculator", {"expression": expression}, access, need=need)


TURNS = [
    Turn((compute(1, "kilos of salmon", "The price"), compute(2, "$1 * 2", "The product")), "$2"),
    Turn(tuple(compute(k, text, "The price") for k, text in ((3, "kilos"), (4, "31"), (5, "salmon"))), trial=True),
    Turn((compute(6, "$4 * 2", "The product"),), "$6"),
]


def record_mended_run(studio: Studio) -> str:
    """Run the turns on the studio's starter pool; returns the episode's id."""

    async def run() -> str:
        store = open_store(find_home(studio.home))
        async with live_pool(store.pools.latest("starter").pool) as pool:
            episode = await run_episode(EpisodeSpec("2 kilos?"), Scripted(TURNS), pool, sink=store.traces)
        store.close()
        return episode.id

    with ThreadPoolExecutor(1) as aside:  # Playwright has an event loop in the tests' own thread
        return aside.submit(asyncio.run, run()).result()


def test_other_tries_count_apart_and_are_drawn_calmly(page: Page, studio: Studio):
    episode = record_mended_run(studio)
    page.goto(f"{studio.url}/?episode={episode}")
    expect(page.locator("[data-figure=steps]")).to_have_text(COUNTS)
    expect(page.get_by_test_id("answer")).to_have_text("62")
    expect(page.locator(".run-graph-world .run-graph-card[data-status=TRIED]")).to_have_count(4)
    expect(page.locator(".run-view [data-status$=ERR]")).to_have_count(0)
    expect(page.locator(".run-timeline-turn").nth(1)).to_contain_text("Round 2: other words")
    page.locator(".run-graph-world .run-graph-card[data-id='3']").click()
    expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("No match")

    page.goto(f"{studio.url}/traces?source=all")
    expect(page.locator(f"tr[data-episode='{episode}'] td[data-name=Steps]")).to_have_text(COUNTS)
