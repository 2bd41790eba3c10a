"""The Compare page as a person uses it: one query side by side, suites, training drift, pool conditions, ablations."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from orchestrator.checkpoints import JOB_NAME
from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from tests.browser.conftest import Studio, watched_page
from tests.browser.support.evaluations import Pair, write_evaluation
from tests.browser.support.jobs import note_step, set_state, write_job
from tests.browser.test_train_page import no_job_left
from trainer.jobs.queue import JobStore
from trainer.results.figures import compute_figures
from trainer.results.rows import RESULTS, ResultRow, read_results

__all__ = ["no_job_left"]

SLOW_MS = 180_000  # a job's process starts on a machine that may be busy


@pytest.fixture(scope="module")
def data(studio: Studio) -> Iterator[tuple[str, Pair, str]]:
    """An evaluation, its recorded pair of episodes, and a training job in the running studio's data folder."""
    store = open_store(find_home(studio.home))
    job, pair = write_evaluation(store)
    yield job, pair, write_job(store)
    store.close()


@pytest.fixture(scope="module")
def rows(studio: Studio, data: tuple[str, Pair, str]) -> list[ResultRow]:
    return read_results(find_home(studio.home).jobs / data[0] / RESULTS)


def saved(page: Page, frame: Locator, label: str) -> bytes:
    """The file that an export button gives."""
    with page.expect_download() as told:
        frame.get_by_role("button", name=label, exact=True).click()
    return Path(told.value.path()).read_bytes()


def table_of(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.decode())))


def open_pair(page: Page, url: str, pair: Pair, more: str = "") -> None:
    page.goto(f"{url}/compare?e={pair.whole}&e={pair.short}{more}")
    expect(page.locator(".compare-query-side [data-testid=verdict]")).to_have_count(2)


# (a) One query


def test_two_orchestrators_run_side_by_side_and_a_reload_shows_the_same(page, studio_url, data):
    page.goto(f"{studio_url}/compare?o=oracle&o=starter-grpo")
    expect(page.locator(".compare-chip")).to_have_count(2)
    page.get_by_role("combobox", name="Suite").select_option("ledger 2")
    before = page.get_by_role("textbox", name="Query").input_value()
    page.get_by_role("button", name="Draw a query").click()
    expect(page.get_by_role("textbox", name="Query")).not_to_have_value(before)
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator(".compare-query-side")).to_have_count(2)
    expect(page.locator(".compare-query-side[data-place='0'] [data-testid=verdict]")).to_have_text(
        "Correct", timeout=SLOW_MS
    )
    expect(page.locator(".compare-query-side[data-place='1'][data-state='ended']")).to_be_visible(timeout=SLOW_MS)
    expect(page.locator("[data-table=query] tbody tr")).to_have_count(2)
    assert len(re.findall(r"[?&]e=", page.url)) == 2
    answers = page.locator(".compare-query-answer-cell").all_inner_texts()
    page.reload()
    expect(page.locator(".compare-query-side[data-place='0'] [data-testid=verdict]")).to_have_text("Correct")
    expect(page.locator(".compare-query-answer-cell")).to_have_text(answers, use_inner_text=True)


def test_the_same_step_stands_at_the_same_place_and_what_is_gone_is_marked(page, studio_url, data):
    open_pair(page, studio_url, data[1])
    sides = page.locator(".compare-query-side")

    def place(side: int, step: int) -> tuple[float, float]:
        frame, card = (
            sides.nth(side).locator(".run-graph"),
            sides.nth(side).locator(f".run-graph-world .run-graph-card[data-id='{step}']"),
        )
        outer, inner = frame.bounding_box(), card.bounding_box()
        assert outer and inner
        return round(inner["x"] - outer["x"]), round(inner["y"] - outer["y"])

    for side in (0, 1):  # fitted into its frame
        expect(sides.nth(side).locator(".run-graph")).to_have_attribute("data-zoom", re.compile("[0-9]"))
    for step in (1, 2, 3):
        assert place(0, step) == place(1, step)
    ghost = sides.nth(1).locator(".run-graph-ghost")
    expect(ghost).to_have_count(1)
    expect(ghost).to_contain_text("not here")
    expect(sides.nth(1).locator(".run-graph-world .run-graph-card[data-differs='same']")).to_have_count(3)
    label = sides.nth(1).locator(".run-graph-world .run-graph-card[data-id='1']").get_attribute("aria-label")
    assert label and "Compared with the reference: same" in label
    expect(page.locator(".compare-query-entry")).to_have_text(re.compile("Step 4 .* of the reference is not here"))
    expect(page.locator(".compare-graph-legend")).to_contain_text("other access")


def test_zooming_or_panning_one_graph_moves_the_others(page, studio_url, data):
    open_pair(page, studio_url, data[1])
    graphs = page.locator(".compare-query-side .run-graph")
    first, other = graphs.nth(0), graphs.nth(1)
    expect(other).to_have_attribute("data-zoom", re.compile("[0-9]"))
    fitted = str(other.get_attribute("data-zoom"))
    first.get_by_role("button", name="Zoom in").click()
    expect(other).not_to_have_attribute("data-zoom", fitted)
    expect(other).to_have_attribute("data-zoom", str(first.get_attribute("data-zoom")))
    first.get_by_role("button", name="Fit the graph into the frame").click()
    expect(other).to_have_attribute("data-zoom", fitted)
    place = str(other.locator(".run-graph-world").get_attribute("style"))
    outer = first.bounding_box()
    assert outer
    page.mouse.move(outer["x"] + outer["width"] / 2, outer["y"] + 6)
    page.mouse.down()
    page.mouse.move(outer["x"] + outer["width"] / 2 + 40, outer["y"] + 30)
    page.mouse.up()
    expect(other.locator(".run-graph-world")).not_to_have_attribute("style", place)
    moved = str(first.locator(".run-graph-world").get_attribute("style"))
    expect(other.locator(".run-graph-world")).to_have_attribute("style", moved)


def test_the_reference_can_be_changed_and_a_step_is_shown_side_by_side(page, studio_url, data):
    open_pair(page, studio_url, data[1])
    page.get_by_role("button", name="Make it the reference").click()
    expect(page.locator(".compare-query-entry")).to_have_text(re.compile("Step 4 .* is only here"))
    expect(page).to_have_url(re.compile("reference=1"))
    page.locator(".compare-query-entry").click()
    steps = page.get_by_role("region", name="The selected step")
    expect(steps).to_contain_text("Has no such step")
    expect(steps.locator(".compare-step-side").first).to_contain_text("calculator")
    page.locator(".compare-query-side[data-place='1'] .run-graph-world .run-graph-card[data-id='1']").click()
    expect(steps.locator(".compare-step-side", has_text="Step 1 · sql")).to_have_count(2)
    expect(page.locator(".run-graph-world .run-graph-card.run-graph-lit[data-id='1']")).to_have_count(2)


def test_what_cannot_start_is_told_and_the_others_run(page, studio_url, data):
    page.goto(f"{studio_url}/compare?o=oracle&o=starter-grpo&o=nobody")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator(".compare-query .run-view-notice")).to_contain_text("nobody was not started")
    expect(page.locator(".compare-query-side")).to_have_count(2)
    page.goto(f"{studio_url}/compare?o=oracle")
    expect(page.locator(".compare-picker")).to_contain_text("Choose 2 to 4")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator(".page-toast.page-bad")).to_contain_text("choose 2 to 4")


def test_graphs_are_saved_as_pictures_and_their_steps_as_csv(page, studio_url, data):
    open_pair(page, studio_url, data[1])
    frame = page.locator("[data-figure='graph-2']")
    drawn = ET.fromstring(saved(page, frame, "SVG"))
    words = "".join(drawn.itertext())
    assert "not here" in words and "sql" in words
    assert [line["against_reference"] for line in table_of(saved(page, frame, "CSV"))] == ["same"] * 3
    table = saved(page, page.locator("[data-table=query]"), "Markdown").decode()
    assert table.startswith("| Orchestrator | Answer | Correct |") and table.count("\n") == 4


# (b) Suites


def test_the_table_and_its_files_say_what_the_rows_say(page, studio_url, data, rows):
    page.goto(f"{studio_url}/compare?tab=suite&job={data[0]}&reference=base")
    line = page.locator("[data-table=scores] tr[data-key=oracle]")
    seen = [row for row in rows if row.orchestrator == "oracle" and row.condition == "seen"]
    mean = compute_figures(seen).mean
    told = f"{mean.mean * 100:.0f} % [{mean.low * 100:.0f}, {mean.high * 100:.0f}]"
    expect(line.locator("td[data-name='mean@2']")).to_have_text(told)
    frame = page.locator("[data-table=scores]")
    by_name = {each["Orchestrator"]: each for each in table_of(saved(page, frame, "CSV"))}
    assert float(by_name["oracle"]["mean_low"]) == pytest.approx(mean.low) and by_name["base"]["difference"] == ""
    assert told in saved(page, frame, "Markdown").decode()


def test_every_figure_is_saved_as_a_picture_and_as_numbers(page, studio_url, data):
    """In a test of its own: without a person to ask, Chromium saves ten files from one page and no more."""
    page.goto(f"{studio_url}/compare?tab=suite&job={data[0]}&reference=base")
    assert saved(page, page.locator("[data-figure=pareto]"), "PNG").startswith(b"\x89PNG")
    expect(page.locator("[data-table=equal-cost]")).to_contain_text("Evaluate some baselines")
    for name in ("pareto", "families", "workers", "turns"):
        figure = page.locator(f"[data-figure={name}]")
        expect(figure.locator("svg.compare-chart")).to_be_visible()
        assert ET.fromstring(saved(page, figure, "SVG")).tag.endswith("svg")
        assert len(table_of(saved(page, figure, "CSV"))) >= 3


def test_a_count_opens_its_tasks_and_a_task_its_traces_side_by_side(page, studio_url, data):
    page.goto(f"{studio_url}/compare?tab=suite&job={data[0]}&reference=oracle")
    count = page.locator("[data-table=scores] tr[data-key=base] [data-which=regressed]")
    number = int(re.sub(r"\D", "", count.inner_text()))
    count.click()
    tasks = page.get_by_role("region", name="Tasks", exact=True)
    expect(tasks.locator("h3")).to_contain_text(f"{number} tasks")
    expect(tasks.locator(".compare-task-task")).to_have_count(number)
    tasks.locator(".compare-task-task[data-task='ledger-2-0']").get_by_role("link", name="Side by side").click()
    expect(page.locator(".compare-query-side [data-testid=verdict]")).to_have_count(2)
    expect(page.locator(".run-graph-ghost")).to_have_count(1)


def test_filters_live_in_the_address(page, studio_url, data):
    page.goto(f"{studio_url}/compare?tab=suite&job={data[0]}")
    page.get_by_role("combobox", name="Family").select_option("atlas")
    expect(page.locator("[data-table=scores] tr[data-key=oracle] td[data-name=Tasks]")).to_have_text("20")
    page.get_by_role("combobox", name="Pool condition").select_option("renamed")
    expect(page.locator(".train-curves-suite > .train-mute")).to_contain_text("20 tasks")
    page.reload()
    expect(page.get_by_role("combobox", name="Family")).to_have_value("atlas")
    expect(page.get_by_role("combobox", name="Pool condition")).to_have_value("renamed")
    page.goto(f"{studio_url}/compare?tab=suite&job=never-was")
    expect(page.locator(".compare-empty")).to_contain_text("never-was")


@pytest.mark.slow
def test_an_evaluation_is_started_from_the_page_and_its_figures_appear(page, studio: Studio, data):
    page.goto(f"{studio.url}/compare?tab=suite&o=oracle&o=starter-grpo")
    page.locator(".compare-evaluate summary").click()
    form = page.locator(".compare-evaluate")
    for family in ("atlas", "forge", "itinerary"):
        form.locator("[data-group=families]").get_by_label(family).uncheck()
    form.locator("[data-group=levels]").get_by_label("level 2").uncheck()
    form.locator("[data-group=orchestrators]").get_by_label("Tiny after SFT and GRPO").uncheck()
    form.get_by_label("Samples of each").fill("0")
    expect(form.locator(".page-problems")).to_contain_text("evaluate.samples")
    form.get_by_label("Samples of each").fill("1")
    form.get_by_label("Tasks", exact=True).fill("2")
    expect(form.locator(".compare-evaluate-foot")).to_contain_text("2 episodes at most")
    form.get_by_role("button", name="Start the evaluation").click()
    page.wait_for_url(re.compile("job=compare-"))
    oracle = page.locator("[data-table=scores] tr[data-key=oracle]")
    expect(oracle.locator("td[data-name='Right']")).to_contain_text("100 %", timeout=SLOW_MS)
    job = page.evaluate("new URLSearchParams(location.search).get('job')")
    expect(page.locator(f".compare-job-job[data-job='{job}']")).to_contain_text("done", timeout=SLOW_MS)
    store = open_store(find_home(studio.home))
    try:
        assert JobStore(store.engine, store.home).recipe(job).evaluate.count == 2
    finally:
        store.close()


def test_one_button_ticks_what_a_trained_orchestrator_must_beat(page, studio_url, data):
    page.goto(f"{studio_url}/compare?tab=suite&o=oracle")
    page.locator(".compare-evaluate summary").click()
    choices = page.locator(".compare-evaluate [data-group=orchestrators]")
    choices.get_by_role("button", name="Tick the baselines").click()
    for label in ("Direct, solver", "Self-consistency, solver", "solver as planner", "Router, workers by predictor"):
        expect(choices.get_by_label(label, exact=True)).to_be_checked()
    expect(choices.get_by_label("Tiny after SFT and GRPO", exact=True)).not_to_be_checked()


# (c) Training, (d) pool conditions, (e) ablations


def test_drift_over_a_job_and_a_click_shows_example_plans(page, studio_url, data):
    page.goto(f"{studio_url}/compare?tab=training&train={data[2]}")
    for name in ("accuracy", "width", "depth", "parallelism", "drift-turns", "diversity", "shares"):
        expect(page.locator(f"[data-figure={name}] svg.compare-chart")).to_be_visible()
    shares = table_of(saved(page, page.locator("[data-figure=shares]"), "CSV"))
    assert {line["series"] for line in shares} >= {"sql", "reader"} and len(shares) > 100
    chart = page.locator("[data-figure=depth] .compare-chart-hit rect")
    box = chart.bounding_box()
    assert box
    chart.click(position={"x": box["width"] - 2, "y": box["height"] / 2})
    expect(page.get_by_role("region", name="Example plans").locator(".train-rollouts-group").first).to_be_visible()
    expect(page).to_have_url(re.compile("step=100"))
    page.reload()
    expect(page.get_by_role("region", name="Example plans").locator(".train-rollouts-tile").first).to_be_visible()


def test_training_jobs_are_listed_by_the_names_that_people_gave_them(page, studio: Studio, data):
    name = find_home(studio.home).jobs / data[2] / JOB_NAME
    name.write_text("Second try", encoding="utf-8")
    try:
        page.goto(f"{studio.url}/compare?tab=training&train={data[2]}")
        jobs = page.get_by_role("combobox", name="Training job")
        expect(jobs.locator("option", has_text=data[2])).to_have_text(f"Second try ({data[2]})")
    finally:
        name.unlink()


def test_a_running_job_is_followed_and_what_is_drawn_stays(page, studio: Studio, data):
    store = open_store(find_home(studio.home))
    try:
        job = write_job(store, sft=4, grpo=6, shown=2, state="running")
        page.goto(f"{studio.url}/compare?tab=training&train={job}&step=10")
        live, plans = page.get_by_test_id("training-live"), page.get_by_role("region", name="Example plans")
        expect(live).to_have_text("running · step 10")
        expect(plans.locator(".train-rollouts-tile").first).to_be_visible()
        page.locator("[data-figure=width]").get_by_role("button", name="CSV").focus()
        page.evaluate("document.querySelector('.compare-training-plans .train-rollouts-tile').dataset.kept = 'yes'")
        for step in (11, 12):
            note_step(store, job, step, {"rollout/correct": 0.5, "rollout/width": 2.0 + step, "worker/sql": 1.0})
        expect(live).to_have_text("running · step 12")
        width = table_of(saved(page, page.locator("[data-figure=width]"), "CSV"))
        assert [line["value"] for line in width if line["step"] in ("11", "12")] == ["13", "14"]
        assert page.evaluate("document.activeElement.closest('[data-figure]').dataset.figure") == "width"
        expect(plans.locator("[data-kept=yes]")).to_have_count(1)
        set_state(store, job, "stopped")
        expect(live).to_have_text("stopped")
        set_state(store, job, "running")  # resumed: the page finds that it goes on
        note_step(store, job, 13, {"rollout/correct": 0.5, "rollout/width": 3.0})
        expect(live).to_have_text("running · step 13")
        set_state(store, job, "done")
        expect(live).to_have_text("done")
    finally:
        store.close()


def test_the_matrix_shows_what_was_measured_and_offers_what_was_not(page, studio_url, data):
    page.goto(f"{studio_url}/compare?tab=matrix&job={data[0]}")
    cell = page.locator("[data-table=matrix] tr[data-key=oracle] td[data-name=renamed]")
    expect(cell).to_contain_text("points")
    expect(page.locator("[data-table=matrix] tr[data-key=oracle] td[data-name=missing]")).to_have_text("–")
    assert "| oracle |" in saved(page, page.locator("[data-table=matrix]"), "Markdown").decode()
    assert "renamed" in saved(page, page.locator("[data-table=matrix]"), "SVG").decode()
    page.locator(".compare-empty").get_by_role("button", name="Start an evaluation").click()
    conditions = page.locator(".compare-evaluate [data-group=conditions]")
    expect(conditions.get_by_label("missing")).to_be_checked()
    expect(conditions.get_by_label("flaky")).not_to_be_checked()


def test_the_ablation_names_the_worker_that_carries_the_score(page, studio_url, data):
    page.goto(f"{studio_url}/compare?tab=ablation&job={data[0]}&ablated=starter-grpo")
    expect(page.locator("[data-figure=ablation] svg.compare-chart")).to_contain_text("without sql")
    expect(page.locator("[data-table=ablation-table] tbody tr").first).to_have_attribute("data-key", "sql")
    lost = table_of(saved(page, page.locator("[data-figure=ablation]"), "CSV"))
    assert [line["without"] for line in lost] == ["sql", "calculator"] and float(lost[0]["change_high"]) < 0
    page.locator(".compare-empty").get_by_role("button", name="Start an evaluation").click()
    switched = page.locator(".compare-evaluate [data-group=without]")
    expect(switched.get_by_label("reader")).to_be_checked()
    expect(switched.get_by_label("sql")).not_to_be_checked()


# Everywhere


@pytest.mark.parametrize(("width", "dark"), [(1440, False), pytest.param(390, True, marks=pytest.mark.slow)])
def test_every_view_fits_the_window_and_reads_well(browser, studio_url, data, width, dark):
    job, pair, training = data
    views = {
        f"?e={pair.whole}&e={pair.short}": ".compare-query-entry",
        f"?tab=suite&job={job}": "[data-figure=turns] svg",
        f"?tab=training&train={training}": "[data-figure=shares] svg",
        f"?tab=matrix&job={job}": "[data-table=matrix]",
        f"?tab=ablation&job={job}&ablated=oracle": "[data-figure=ablation] svg",
    }
    with watched_page(browser, width, 900, dark) as page:
        for address, shown in views.items():
            page.goto(f"{studio_url}/compare{address}")
            expect(page.locator(shown).first).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
            found = Axe().run(page, context="#compare-page").response["violations"]
            serious = [each for each in found if each["impact"] in ("serious", "critical")]
            assert not serious, (
                address,
                [(each["id"], [n["html"][:120] for n in each["nodes"][:3]]) for each in serious],
            )
