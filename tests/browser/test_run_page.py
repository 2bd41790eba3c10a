"""The Run page as a person uses it, in real Chromium against a real studio."""

from __future__ import annotations

import json
import re
import signal
import urllib.request
from contextlib import suppress

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import WINDOWS, Studio, wait_until, watched_page
from tests.browser.support.pools import XSS, SlowModel, chat_pool, slow_model

TOGGLES, TOGGLE_MS = 3, 5000
FINISHED = re.compile("answered", re.IGNORECASE)


def run_first_query(page: Page, url: str) -> str:
    """Open the page, press Run, wait for the finished graph; the episode's id."""
    page.goto(f"{url}/?pool=starter&orchestrator=oracle")
    expect(page.locator("#query textarea")).not_to_have_value("")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_test_id("state")).to_have_text(FINISHED)
    return page.evaluate("new URLSearchParams(location.search).get('episode')")


def import_pool(page: Page, url: str, document: str) -> None:
    page.goto(f"{url}/pool")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Import").click()
    page.get_by_label("Pool as JSON").fill(document)
    page.locator(".page-drawer").get_by_role("button", name="Import").click()
    expect(page.locator(".page-toast")).to_contain_text(re.compile("Saved as version|Imported"))
    if "off until you agree" in page.locator(".page-toast").inner_text():
        agree_to_all(page)


def agree_to_all(page: Page) -> None:
    """Switch on every worker of an imported pool, after it has said what it wants."""
    asking = page.locator(".pool-consent")
    expect(asking).to_be_visible()
    for box in asking.get_by_role("checkbox").all():
        box.check()
    asking.get_by_role("button", name="Switch on the ticked").click()
    expect(asking).to_have_count(0)
    expect(page.locator(".page-toast")).to_contain_text("Switched on")


def open_options(page: Page) -> None:
    """Unfold the form and its options, where they are not open."""
    page.locator("#query textarea").click()
    options = page.locator("#run-mode")
    for _ in range(TOGGLES):  # the page may unfold them itself in the moment before the click, which then folds them
        if not options.is_visible():
            page.get_by_role("button", name="Options").click()
        with suppress(AssertionError):
            expect(options).to_be_visible(timeout=TOGGLE_MS)
            return
    expect(options).to_be_visible()


def choose(page: Page, box: str, value: str) -> None:
    if not page.locator(f"#{box}").is_visible():
        open_options(page)
    field = page.locator(f"#{box} input")
    if field.get_attribute("aria-expanded") != "true":  # after a choice of several the list stays open, over the field
        field.click()
    page.get_by_role("option", name=re.compile(f"^{re.escape(value)}( ·|$)")).click()


def start_slow_run(page: Page, url: str, pool: str, query: str = "two plus two?") -> str:
    page.goto(f"{url}/?pool={pool}")
    expect(page.locator("#run-pool input")).to_have_value(pool)
    choose(page, "run-orchestrator", "Direct")
    page.locator("#query textarea").fill(query)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_test_id("state")).to_have_text(re.compile("running", re.IGNORECASE))
    expect(page.locator(".run-graph-world .run-graph-card")).to_have_count(1)
    return page.evaluate("new URLSearchParams(location.search).get('episode')")


def test_the_first_run_ends_in_a_finished_graph_after_one_click(page, studio_url):
    run_first_query(page, studio_url)
    expect(page.get_by_test_id("verdict")).to_have_attribute("data-correct", "true")
    expect(page.get_by_test_id("answer")).not_to_be_empty()
    cards = page.locator(".run-graph-world .run-graph-card")
    expect(cards.nth(4)).to_be_attached()
    expect(page.locator(".run-graph-role-tool").first).to_be_attached()
    wait_until(page, lambda: page.locator(".run-graph path").count() > cards.count())
    for figure in ("wall", "critical", "speedup", "tokens", "cost"):
        expect(page.locator(f"[data-figure*={figure}]").first).to_be_attached()
    wait_until(page, lambda: page.locator(".run-timeline-row").count() >= cards.count())


def test_a_click_on_a_step_shows_what_it_saw_was_sent_and_returned(page, studio_url):
    run_first_query(page, studio_url)
    last = page.locator(".run-graph-world .run-graph-card").last
    number = last.get_attribute("data-id")
    last.click()
    inspector = page.get_by_role("complementary", name="Inspector")
    expect(inspector).to_contain_text("calendar")
    expect(inspector).to_contain_text("Step ")  # what it was allowed to see
    expect(inspector.locator(".run-inspector-seen").first).to_be_visible()
    expect(page.locator(f".run-timeline-row[aria-pressed=true][data-key*='{number}']")).to_have_count(1)
    expect(page.locator(f"tr[data-row='{number}']")).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile(f"step={number}"))
    page.locator(".run-matrix tr button").first.click()  # the matrix selects, too
    expect(page.locator(".run-graph-world .run-graph-card[aria-pressed=true]")).to_have_attribute("data-id", "1")


def test_steps_can_be_reached_and_opened_with_the_keyboard(page, studio_url):
    run_first_query(page, studio_url)
    page.locator(".run-graph-world .run-graph-card").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".run-inspector-head")).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".run-graph-world .run-graph-card[aria-pressed=true]")).not_to_have_attribute("data-id", "1")


@pytest.mark.slow
def test_a_link_reopens_a_run_after_a_restart(page, studio: Studio):
    episode = run_first_query(page, studio.url)
    answer = page.get_by_test_id("answer").inner_text()
    page.goto("about:blank")
    studio.restart()
    page.goto(f"{studio.url}/?episode={episode}&step=2")
    expect(page.get_by_test_id("answer")).to_have_text(answer)
    expect(page.locator(".run-graph-world .run-graph-card[aria-pressed=true]")).to_have_attribute("data-id", "2")
    expect(page.locator(".run-inspector-head")).to_be_visible()
    expect(page.locator("#query textarea")).not_to_have_value("")


def test_a_link_opens_a_run_that_is_under_way_and_follows_it(browser, studio: Studio):
    with slow_model() as address, watched_page(browser) as page:
        import_pool(page, studio.url, chat_pool("midway", address))
        episode = start_slow_run(page, studio.url, "midway")
        with watched_page(browser) as second:
            second.goto(f"{studio.url}/?episode={episode}")
            expect(second.get_by_test_id("state")).to_have_text(re.compile("running", re.IGNORECASE))
            SlowModel.release.set()
            for each in (page, second):
                expect(each.get_by_test_id("state")).to_have_text(FINISHED)
                expect(each.get_by_test_id("answer")).to_have_text("four")


def test_while_a_model_writes_the_place_of_its_steps_is_seen(browser, studio: Studio):
    with slow_model() as address, watched_page(browser) as page:
        import_pool(page, studio.url, chat_pool("awaited", address))
        page.goto(f"{studio.url}/?pool=awaited&orchestrator=model:pal")
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
        page.locator("#query textarea").fill("hi")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_test_id("planning")).to_contain_text("The orchestrator writes its plan")
        expect(page.locator(".run-graph-skeleton i")).to_have_count(4)
        expect(page.locator(".run-graph-skeleton i").last).to_be_visible()
        SlowModel.release.set()
        expect(page.get_by_test_id("state")).not_to_have_text("Running")
        expect(page.locator(".run-graph-skeleton")).to_be_hidden()


def test_the_stop_button_ends_a_run_and_keeps_what_happened(browser, studio: Studio):
    with slow_model() as address, watched_page(browser) as page:
        import_pool(page, studio.url, chat_pool("stopped", address))
        episode = start_slow_run(page, studio.url, "stopped")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_test_id("state")).to_have_text(re.compile("stopped", re.IGNORECASE))
        expect(
            page.locator(
                ".run-graph-world .run-graph-card[data-status=TIMEOUT], "
                ".run-graph-world .run-graph-card[data-status=EXEC_ERR]"
            )
        ).to_have_count(1)
        with urllib.request.urlopen(f"{studio.url}/api/episodes/{episode}") as answer:
            trace = json.load(answer)
        assert trace["outcome"] == "stopped" and trace["answer"] is None
        ended = [event for event in trace["events"] if event["type"] == "step_ended"]
        assert len(ended) == 1


@pytest.mark.slow
def test_a_run_cut_short_by_kill_9_is_shown_as_interrupted(browser, studio: Studio):
    with slow_model() as address, watched_page(browser) as page:
        import_pool(page, studio.url, chat_pool("killed", address))
        episode = start_slow_run(page, studio.url, "killed")
        page.goto("about:blank")
        studio.restart(signal.SIGKILL)
        page.goto(f"{studio.url}/?episode={episode}")
        expect(page.get_by_test_id("state")).to_have_text(re.compile("interrupted", re.IGNORECASE))
        expect(page.locator(".run-graph-world .run-graph-card")).to_have_count(1)


@pytest.mark.parametrize("where", ["query", "answer"])
def test_what_people_and_models_write_is_text_never_markup(browser, studio: Studio, where):
    with slow_model() as address, watched_page(browser) as page:
        name = f"xss-{where}"
        import_pool(page, studio.url, chat_pool(name, address))
        SlowModel.reply = XSS
        SlowModel.release.set()
        page.goto(f"{studio.url}/?pool={name}")
        expect(page.locator("#run-pool input")).to_have_value(name)
        choose(page, "run-orchestrator", "Direct")
        page.locator("#query textarea").fill(XSS if where == "query" else "hi")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_test_id("answer")).to_contain_text("<img src=x")
        page.locator(".run-graph-world .run-graph-card").first.click()
        expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("<script>")
        page.goto(f"{studio.url}/traces")
        expect(page.locator(".traces-table tbody tr").first).to_contain_text("<img")
        assert page.evaluate("window.hacked") is None


def test_rounds_without_a_valid_turn_say_what_was_wrong(browser, studio: Studio):
    with slow_model() as address, watched_page(browser) as page:
        import_pool(page, studio.url, chat_pool("babble", address))
        SlowModel.reply = "I would rather talk about the weather."
        SlowModel.release.set()
        page.goto(f"{studio.url}/?pool=babble")
        expect(page.locator("#run-pool input")).to_have_value("babble")
        choose(page, "run-orchestrator", "Model")
        page.locator("#query textarea").fill("Say hi.")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_test_id("state")).to_have_text(re.compile("out of rounds", re.IGNORECASE))
        failed = page.locator(".run-graph-failed button")
        expect(failed).to_have_count(1)  # the same fault six times over is said once
        expect(failed).to_contain_text("Rounds 1 to 6")
        failed.click()
        expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("talk about the weather")


INSIDE = """bars => bars.every((bar) => {
  const [at, track] = [bar.getBoundingClientRect(), bar.parentElement.getBoundingClientRect()];
  return at.left >= track.left - 0.5 && at.right <= track.right + 0.5;
})"""


@pytest.mark.slow
def test_a_step_of_no_time_at_the_end_of_a_long_turn_has_its_bar_in_sight(browser, studio: Studio):
    plan = {"steps": [{"worker": "first", "instruction": "hi", "access": []}], "answer": "$1"}
    with slow_model() as address, watched_page(browser) as page:
        import_pool(page, studio.url, chat_pool("slow-turn", address))
        SlowModel.reply = json.dumps(plan)
        page.goto(f"{studio.url}/?pool=slow-turn")
        expect(page.locator("#run-pool input")).to_have_value("slow-turn")
        choose(page, "run-orchestrator", "Model")
        page.locator("#query textarea").fill("Say hi.")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_test_id("state")).to_have_text(re.compile("running", re.IGNORECASE))
        page.wait_for_timeout(1500)
        SlowModel.release.set()
        expect(page.get_by_test_id("answer")).not_to_be_empty()
        bars = page.locator(".run-timeline-step .run-timeline-bar:not([hidden])")
        expect(bars).to_have_count(1)
        assert bars.evaluate_all(INSIDE)


@pytest.mark.parametrize("query", ["", "x" * 100_000])
def test_a_query_that_cannot_run_says_why_and_stays(page, studio_url, query):
    page.goto(f"{studio_url}/?pool=starter&orchestrator=oracle")
    box = page.locator("#query textarea")
    expect(box).not_to_have_value("")
    box.fill(query)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("The run did not start")).to_be_visible()
    expect(box).to_have_value(query)


def test_run_waits_for_the_page_to_fill_in(page, studio_url):
    page.goto(f"{studio_url}/?pool=starter&orchestrator=oracle", wait_until="commit")
    page.get_by_role("button", name="Run", exact=True).click()  # as soon as it can be clicked at all
    expect(page.get_by_test_id("answer")).to_be_visible()
    expect(page.get_by_text("The run did not start")).to_have_count(0)


def test_what_is_typed_before_the_page_has_filled_in_stays(page, studio_url):
    page.route("**/queue/join*", lambda _: None)  # held: neither answered nor sent on
    with page.expect_request("**/queue/join*"):  # the page asks what to fill in, and gets no answer
        page.goto(studio_url)
    box = page.locator("#query textarea")
    box.fill("What is 6 * 7?")
    assert page.locator("#run").is_disabled()
    page.unroute("**/queue/join*")  # which sends those that were held on their way
    expect(page.locator("#run")).to_be_enabled()
    expect(box).to_have_value("What is 6 * 7?")
    page.reload()
    expect(page.locator("#run")).to_be_enabled()
    assert box.input_value(), "a page on which nobody types has a query ready to run"


def test_a_query_without_reference_plan_says_what_the_oracle_needs(page, studio_url):
    page.goto(f"{studio_url}/?pool=starter&orchestrator=oracle")
    expect(page.locator("#query textarea")).not_to_have_value("")
    page.locator("#query textarea").fill("Who are you?")
    page.locator("#query textarea").blur()
    page.wait_for_timeout(1500)  # what the server says of the query has come: the choice stays a person's own
    expect(page.locator("#run-orchestrator input")).to_have_value(re.compile("Oracle"))
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("The run did not start")).to_be_visible()
    expect(page.get_by_text("choose another orchestrator")).to_be_visible()


def test_the_list_of_orchestrators_has_headings(page, studio_url):
    page.goto(studio_url)
    expect(page.locator("#run")).to_be_enabled()
    page.locator("#run-orchestrator input").click()
    expect(page.locator("#run-orchestrator [role=option]").first).to_be_visible()
    heading = "(option) => getComputedStyle(option, '::before').content.replaceAll('\"', '')"
    shown = page.locator("#run-orchestrator [role=option]").evaluate_all(f"(list) => list.map({heading})")
    headings = [
        text for text in shown if text not in ("none", "Trained here")
    ]  # jobs of other tests may have trained some
    assert headings == ["For any pool", "Baselines", "Demonstrations"]


def test_a_page_is_fetched_when_the_pointer_rests_on_its_link(page, studio_url):
    page.goto(f"{studio_url}/traces")
    browser = page.context.new_cdp_session(page)  # a page is told nothing of what was fetched ahead
    states: list[str] = []
    browser.on("Preload.prefetchStatusUpdated", lambda event: states.append(event["status"]))
    browser.send("Preload.enable")
    link = page.locator("[data-page=serve]")
    link.hover()
    wait_until(page, lambda: "Ready" in states)
    link.click()
    expect(page.get_by_role("heading", name="Serve", exact=True)).to_be_visible()
    assert page.evaluate("performance.getEntriesByType('navigation')[0].deliveryType") == "navigational-prefetch"


def test_a_query_can_be_drawn_from_any_suite(page, studio_url):
    page.goto(f"{studio_url}/?pool=starter&orchestrator=oracle")
    box = page.locator("#query textarea")
    expect(box).not_to_have_value("")
    choose(page, "run-suite", "ledger · level 2")
    page.get_by_role("button", name="Draw a query").click()
    expect(box).to_have_value(re.compile("company", re.IGNORECASE))
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_test_id("verdict")).to_have_attribute("data-correct", "true")


def test_a_link_to_nowhere_says_so(browser, studio_url):
    context = browser.new_context()  # the 404 of the stream is a console error on purpose
    page = context.new_page()
    page.goto(f"{studio_url}/?episode=nothing")
    expect(page.get_by_text("There is no episode nothing")).to_be_visible()
    context.close()


@pytest.mark.parametrize("path", ["/", "/pool", "/traces"])
@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_every_page_fits_and_is_readable_in_light_and_dark(browser, studio_url, path, dark, width):
    with watched_page(browser, width=width, height=844, dark=dark) as page:
        page.goto(f"{studio_url}{path}?pool=starter&orchestrator=oracle")
        if path == "/":
            expect(page.locator("#query textarea")).not_to_have_value("")
            page.get_by_role("button", name="Run", exact=True).click()
            expect(page.get_by_test_id("state")).to_have_text(FINISHED)
        elif path == "/pool":
            expect(page.locator(".page-card").first).to_be_visible()
        else:
            expect(page.locator(".traces-table")).to_be_attached()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
        assert contrast(page, "body") > 7
        heading = page.locator("h1, .run-summary-query, .run-graph-name").first
        expect(heading).to_be_visible()
        light, shade = page.evaluate("getComputedStyle(document.body).backgroundColor"), dark
        assert (sum(map(int, re.findall(r"\d+", light)[:3])) < 200) == shade


def test_the_list_of_steps_on_a_phone_is_as_tall_as_the_steps(browser, studio_url):
    with watched_page(browser, width=390, height=844) as page:
        page.goto(f"{studio_url}/?pool=starter&orchestrator=direct")
        page.locator("#query textarea").fill("What is 17 * 23?")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_test_id("state")).to_have_text(FINISHED)
        expect(page.locator(".run-graph-list .run-graph-card")).to_have_count(1)
        heights = [
            page.locator(name).evaluate("box => box.clientHeight")
            for name in (".run-graph", ".run-graph-list .run-graph-card")
        ]
        assert heights[0] - heights[1] < 120, "the rest is a heading and the button for the graph"


def contrast(page: Page, selector: str) -> float:
    """WCAG's contrast of an element's text against its own background."""
    foreground, background = page.eval_on_selector(
        selector, "e => { const s = getComputedStyle(e); return [s.color, s.backgroundColor] }"
    )

    def luminance(color: str) -> float:
        parts = [int(each) / 255 for each in re.findall(r"\d+", color)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(foreground), luminance(background)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("path", ["/", "/pool", "/traces"])
@pytest.mark.parametrize("dark", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_axe_finds_nothing_to_complain_about(browser, studio_url, path, dark):
    with watched_page(browser, dark=dark) as page:
        page.goto(f"{studio_url}{path}?pool=starter&orchestrator=oracle")
        if path == "/":
            expect(page.locator("#query textarea")).not_to_have_value("")
            page.get_by_role("button", name="Run", exact=True).click()
            expect(page.get_by_test_id("verdict")).to_be_visible()
            page.locator(".run-graph-world .run-graph-card").last.click()
            expect(page.locator(".run-inspector-head")).to_be_visible()
        else:
            expect(page.locator(".page-card, .traces-table").first).to_be_visible()
        found = Axe().run(page).response["violations"]
        assert found == [], [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found]
