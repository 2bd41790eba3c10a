"""A pool of one's own in the page: its tasks, its example queries, what can orchestrate it, what a training came to."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Step, Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import export_pool
from pool_registry.storage.data_folder import find_home
from tests.browser.conftest import Studio, watched_page
from tests.browser.test_run_page import choose, import_pool
from tests.trainer.jobs.test_outcome import append_solved
from tests.trainer.support.shop import build_shop
from trainer.jobs.queue import JobStore
from trainer.pool_recipe import build_pool_recipe
from trainer.recipe import load_recipe

PLAN = '{"steps": [{"worker": "calc", "arguments": {"expression": "6 * 7"}, "access": []}], "answer": "$1"}'


def open_pool(page: Page, url: str, tmp_path, name: str) -> None:
    """A shop under a name of its own, shown on the Pool page."""
    import_pool(page, url, export_pool(build_shop(tmp_path).model_copy(update={"name": name})))


def test_own_tasks_are_made_pasted_written_edited_and_struck_and_stay_so(page: Page, studio_url: str, tmp_path):
    open_pool(page, studio_url, tmp_path, "crm-tasks")
    page.goto(f"{studio_url}/train?tasks=crm-tasks")
    panel = page.get_by_role("region", name="Tasks", exact=True)
    rows = panel.get_by_label("Tasks of this recipe").locator("li")
    panel.get_by_label("Number of tasks").fill("20")
    panel.locator(".train-tasks-form").get_by_role("button", name="Make tasks").click()
    expect(panel).to_contain_text(re.compile(r"1[0-9]|20 made, 0 yours"))
    expect(rows.first).to_be_visible()

    struck = rows.nth(1).locator("b").inner_text()
    panel.get_by_role("button", name=f"Strike: {struck}", exact=True).click()
    expect(panel).to_contain_text("1 struck")

    panel.get_by_role("button", name="Paste or upload").click()
    panel.get_by_role("textbox", name="Tasks").fill("Capital of Kenya?\tNairobi\nno answer\n")
    expect(panel).to_contain_text("Line 2 write a query and its answer")
    expect(panel).to_contain_text("It is Nairobi.")
    panel.get_by_role("button", name="Add 1 task").click()
    expect(rows.first).to_contain_text("Capital of Kenya?")

    panel.get_by_role("button", name="Paste or upload").click()
    survey = {"name": "survey.csv", "mimeType": "text/csv", "buffer": "Aufgabe;Ergebnis\nGröße?;9\n".encode("cp1252")}
    panel.get_by_label("A file of tasks").set_input_files(survey)
    expect(panel).to_contain_text("survey.csv has the columns Aufgabe, Ergebnis")
    panel.get_by_label("Queries from").select_option("Aufgabe")
    panel.get_by_label("Answers from").select_option("Ergebnis")
    expect(panel).to_contain_text("Read as CSV with semicolons in Windows-1252: queries from Aufgabe")
    panel.get_by_label("Encoding").fill("latin-99")
    panel.get_by_label("Encoding").press("Tab")
    expect(panel).to_contain_text("no encoding 'latin-99'")
    panel.get_by_label("Encoding").fill("")
    panel.get_by_label("Encoding").press("Tab")
    panel.get_by_role("button", name="Add 1 task").click()
    expect(rows.first).to_contain_text("Größe?")
    panel.get_by_role("button", name="Strike: Größe?", exact=True).click()
    expect(panel).to_contain_text("2 struck")

    panel.get_by_role("button", name="Write one").click()
    panel.get_by_label("Query", exact=True).fill("What is 6 * 7?")
    panel.get_by_label("Answer", exact=True).fill("42")
    expect(panel.locator(".train-tasks-examples li").first).to_be_visible()
    tried = panel.locator(".train-tasks-try").get_by_role("status")
    assert tried.inner_text() == "", "no answer was given, so none is graded"
    panel.get_by_label("Try an answer").fill("It is 43.")
    expect(panel.get_by_role("status").filter(has_text="wrong")).to_be_visible()
    panel.get_by_label("Reference plan").fill(PLAN.replace("calc", "abacus"))
    panel.get_by_role("button", name="Save", exact=True).click()
    expect(panel).to_contain_text("the pool has no abacus")
    panel.get_by_label("Reference plan").fill(PLAN)
    panel.get_by_role("button", name="Run the plan").click()
    expect(panel).to_contain_text("It answers 42.")
    assert not Axe().run(page, context=".train-tasks").response["violations"]
    panel.get_by_role("button", name="Save", exact=True).click()
    expect(rows.first).to_contain_text("What is 6 * 7?")

    panel.get_by_role("button", name="Edit: Capital of Kenya?", exact=True).click()
    panel.get_by_label("Answer", exact=True).fill("Mombasa")
    panel.get_by_role("button", name="Save", exact=True).click()
    expect(rows.nth(1)).to_contain_text("= Mombasa")

    panel.get_by_role("button", name="Make tasks", exact=True).click()
    panel.locator(".train-tasks-form").get_by_role("button", name="Make tasks").click()
    expect(page.locator(".page-toast")).to_contain_text("2 of your own stay; 1 that you struck or edited stay out")
    expect(rows.nth(1)).to_contain_text("= Mombasa")
    expect(rows.filter(has_text=struck)).to_have_count(0)
    page.reload()
    expect(rows.nth(1)).to_contain_text("= Mombasa")


def test_an_own_pool_runs_its_own_queries_and_grades_them(page: Page, studio_url: str, tmp_path):
    open_pool(page, studio_url, tmp_path, "crm-run")
    page.goto(f"{studio_url}/?pool=crm-run")
    query = page.locator("#query textarea")
    expect(page.locator("#run-pool input")).to_have_value("crm-run")
    expect(page.locator("#composer-note")).to_contain_text("no tasks of its own yet")
    expect(query).to_have_value("")

    page.locator("#composer-note").get_by_role("link", name="make or write some").click()
    panel = page.get_by_role("region", name="Tasks", exact=True)
    panel.get_by_role("button", name="Write one").click()
    panel.get_by_label("Query", exact=True).fill("What is 6 * 7?")
    panel.get_by_label("Answer", exact=True).fill("42")
    panel.get_by_label("What it is for").select_option("test")
    panel.get_by_label("Reference plan").fill(PLAN)
    panel.get_by_role("button", name="Save", exact=True).click()
    expect(panel.get_by_label("Tasks of this recipe")).to_contain_text("What is 6 * 7?")

    page.goto(f"{studio_url}/pool?pool=crm-run")
    expect(page.get_by_role("region", name="What can orchestrate this pool")).to_contain_text("Reads any pool")
    page.locator("[data-key=run]").click()
    expect(query).to_have_value("What is 6 * 7?")
    choose(page, "run-orchestrator", "Oracle")
    choose(page, "run-mode", "review")  # the run is drawn before it has a verdict
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="Approve and run").click()
    expect(page.get_by_test_id("verdict")).to_contain_text("Correct")

    page.get_by_role("button", name="Keep as a task").click()
    expect(page.get_by_text("Not kept: there is a task with this query already")).to_be_visible()

    choose(page, "run-pool", "starter")
    expect(query).not_to_have_value("What is 6 * 7?")
    choose(page, "run-pool", "crm-run")
    expect(query).to_have_value("What is 6 * 7?")
    page.evaluate(SLOW_FETCH)
    choose(page, "run-pool", "starter")
    query.fill("my own words")  # while the server looks for a query of the other pool
    expect(page.locator("#run-suite input")).to_have_value(re.compile("level"))
    page.wait_for_timeout(500)  # what would replace them comes a moment later
    expect(query).to_have_value("my own words")


def record_wrong_run(studio: Studio, pool: str) -> str:
    """A run of a new pool that answers 269 where 297 is right; its id."""
    store = open_store(find_home(studio.home))
    starter = store.pools.latest("starter").pool
    store.pools.save(starter.model_copy(update={"name": pool}))

    async def run() -> str:
        steps = (Step(1, "calculator", {"expression": "300 - 31"}),)
        async with live_pool(store.pools.latest(pool).pool) as live:
            spec, plan = EpisodeSpec("How many days until Christmas?"), OraclePolicy(Turn(steps, "$1"))
            return (await run_episode(spec, plan, live, sink=store.traces)).id

    with ThreadPoolExecutor(1) as thread:  # Playwright's own loop runs in this one
        episode = thread.submit(lambda: asyncio.run(run())).result()
    store.close()
    return episode


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_thumbs_beside_an_answer_ask_what_is_right_and_can_be_changed(browser, studio, studio_url, width, dark):
    episode = record_wrong_run(studio, f"crm-thumbs-{width}")
    with watched_page(browser, width, 900, dark=dark) as page:
        page.goto(f"{studio_url}/?episode={episode}")
        up, down = (page.get_by_role("button", name=f"The answer is {word}") for word in ("right", "wrong"))
        verdict, field = page.get_by_test_id("verdict"), page.get_by_label("What is right?")
        expect(verdict).to_have_count(0)
        up.click()
        expect(verdict).to_have_text("Correct")
        expect(up).to_have_attribute("aria-pressed", "true")
        down.click()
        expect(field).to_have_value("269")
        expect(field).to_be_focused()
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator(".run-verdict-form .form-problem")).to_contain_text("Correct the answer")
        field.fill("297")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert not Axe().run(page, context=".run-verdict").response["violations"]
        page.get_by_role("button", name="Save", exact=True).click()
        expect(verdict).to_have_text("Wrong, expected 297")
        expect(down).to_have_attribute("aria-pressed", "true")
        down.click()
        expect(field).to_have_value("297")
        page.get_by_role("button", name="I do not know").click()
        expect(verdict).to_have_text("Wrong")
        expect(field).to_have_count(0)


def test_every_answer_of_a_comparison_is_judged_where_it_stands(page: Page, studio: Studio, studio_url: str):
    first, second = (record_wrong_run(studio, f"crm-both-{number}") for number in (1, 2))
    page.goto(f"{studio_url}/compare?e={first}&e={second}")
    left, right = (page.locator(f".compare-query-side[data-place='{place}']") for place in (0, 1))
    right.get_by_role("button", name="The answer is wrong").click()
    right.get_by_label("What is right?").fill("297")
    right.get_by_role("button", name="Save", exact=True).click()
    expect(right.get_by_test_id("verdict")).to_have_text("Wrong, expected 297")
    expect(left.get_by_test_id("verdict")).to_have_count(0)
    left.get_by_role("button", name="The answer is right").click()
    expect(left.get_by_test_id("verdict")).to_have_text("Correct")
    page.reload()
    expect(page.get_by_test_id("verdict")).to_have_text(["Correct", "Wrong, expected 297"])


def test_keeping_a_run_asks_for_the_right_answer_and_drops_a_wrong_plan(page: Page, studio: Studio, studio_url: str):
    episode = record_wrong_run(studio, "crm-keep")
    page.goto(f"{studio_url}/?episode={episode}")
    keep, dialog = page.get_by_role("button", name="Keep as a task"), page.get_by_role("dialog", name="Is 269 right?")
    keep.click()
    assert not Axe().run(page, context=".run-keep").response["violations"]
    dialog.get_by_role("button", name="Cancel").click()
    expect(keep).to_be_focused()
    keep.click()
    field = dialog.get_by_label("What is right?")
    expect(field, "the answer stands there to be corrected").to_have_value("269")
    dialog.get_by_role("button", name="Keep this answer").click()
    expect(dialog.locator(".form-problem")).to_contain_text("Correct the answer first")
    field.fill("297")
    dialog.get_by_role("button", name="Keep this answer").click()
    expect(page.get_by_test_id("verdict")).to_contain_text("Wrong, expected 297")
    page.get_by_role("link", name="Kept: look at the tasks").click()
    row = page.get_by_label("Tasks of this recipe").locator("li").first
    expect(row).to_contain_text("= 297")
    expect(row).not_to_contain_text("calculator")


SLOW_FETCH = (
    "() => { const f = fetch; window.fetch = (...a) => new Promise((r) => setTimeout(() => r(f(...a)), 400)); }"
)


@pytest.fixture
def finished(studio: Studio) -> str:
    """A finished training of the shop, with its results."""
    store = open_store(find_home(studio.home))
    jobs = JobStore(store.engine, store.home)
    row = jobs.submit(build_pool_recipe("crm-done", 70), here=True)
    jobs.claim(row.id)
    append_solved(jobs.folder(row.id), "smollm2-reader", {1, 2, 12})
    append_solved(jobs.folder(row.id), f"{row.id}@27", {*range(10), 11, 12, 13})
    jobs.finish(row.id, "done", "", "")
    store.close()
    return row.id


def test_a_finished_training_says_what_it_came_to_and_what_can_be_done(
    page: Page, studio_url: str, finished: str, tmp_path
):
    open_pool(page, studio_url, tmp_path, "crm-done")
    page.goto(f"{studio_url}/train?job={finished}")
    outcome = page.get_by_test_id("outcome")
    expect(outcome).to_contain_text("Solves 13 of 20 of the made practice tasks that were held out, was 3 (+50 points")
    expect(outcome).to_contain_text("None of your own questions was measured.")
    expect(outcome).to_have_attribute("data-verdict", "open")  # made tasks alone are no reason for green
    links = {link.inner_text(): link.get_attribute("href") for link in outcome.get_by_role("link").all()}
    assert list(links) == ["Add some", "Run", "Compare", "Serve", "Publish"]
    assert links["Add some"] == "/train?tasks=crm-done"
    assert f"orchestrator={finished}%4027&pool=crm-done" in (links["Serve"] or "") and finished in (
        links["Compare"] or ""
    )
    page.goto(f"{studio_url}/pool?pool=crm-done")
    expect(page.get_by_role("region", name="What can orchestrate this pool")).to_contain_text("Solves 13 of 20")


@pytest.mark.parametrize(("right", "verdict"), [({*range(2, 6)}, "open"), (set(), "worse")])
def test_own_words_are_typed_for_measuring_and_stand_before_and_after(
    page: Page, studio: Studio, studio_url: str, tmp_path, right, verdict
):
    name = f"crm-words-{verdict}"
    open_pool(page, studio_url, tmp_path, name)
    page.goto(f"{studio_url}/train?tasks={name}")
    panel = page.get_by_role("region", name="Tasks", exact=True)
    panel.get_by_role("button", name="Ask in your words").click()
    expect(panel).to_contain_text("never trained on")
    panel.get_by_label("Query", exact=True).fill("what's 6 times 7?")
    panel.get_by_label("Answer", exact=True).fill("42")
    expect(panel.get_by_label("What it is for")).to_have_value("test")
    panel.get_by_role("button", name="Save", exact=True).click()
    row = panel.get_by_label("Tasks of this recipe").locator("li").filter(has_text="what's 6 times 7?")
    expect(row).to_contain_text("test")
    expect(row).to_contain_text("yours")

    store = open_store(find_home(studio.home))
    jobs = JobStore(store.engine, store.home)
    job = jobs.submit(build_pool_recipe(name, 70), here=True)
    jobs.claim(job.id)
    append_solved(jobs.folder(job.id), "smollm2-reader", {0, 12}, own=range(6))
    append_solved(jobs.folder(job.id), f"{job.id}@27", {*right, *range(6, 15)}, own=range(6))
    jobs.finish(job.id, "done", "", "")
    store.close()
    page.goto(f"{studio_url}/train?job={job.id}")
    outcome = page.get_by_test_id("outcome")
    expect(outcome).to_contain_text(f"Solves {len(right)} of 6 of your own held-out questions, was 1")
    expect(outcome).to_contain_text("Solves 9 of 14 of the made practice tasks that were held out, was 1")
    expect(outcome).to_have_attribute("data-verdict", verdict)
    expect(outcome.get_by_role("link").first).to_have_text("Run" if verdict == "open" else "Run the model before it")


def test_a_start_that_does_not_fit_asks_first_and_its_advice_applies(page: Page, studio_url: str):
    recipe = load_recipe("cpu-first-steps").model_dump(mode="json")
    fit = {
        "device": "this machine", "parts": [], "need_bytes": 93_000_000_000, "free_bytes": 8_000_000_000, "fits": False,
        "advice": ["model.checkpointing: true frees 80 GB; then it fits"], "episodes": 1, "cost": None, "note": "",
        "edited": {
            "model.checkpointing: true frees 80 GB; then it fits": {
                **recipe, "model": {**recipe["model"], "checkpointing": True},
            }
        },
    }  # fmt: skip
    page.route("**/api/pages/train/fit", lambda route: route.fulfill(json={"ok": True, "problems": [], "fit": fit}))
    page.goto(f"{studio_url}/train?new=1")
    expect(page.locator(".train-fit")).to_contain_text("93 GB needed")
    page.locator(".train-go").click()
    dialog = page.get_by_role("alertdialog", name="It will not fit")
    expect(dialog).to_contain_text("It needs 93 GB, and this machine has 8.0 GB free.")
    dialog.get_by_role("button", name="Change the recipe").click()
    expect(dialog).to_have_count(0)
    page.locator(".train-fit-advice").get_by_role("button", name="Apply").click()
    expect(page.locator("[data-key='model.checkpointing'] input")).to_be_checked()
