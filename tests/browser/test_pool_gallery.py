"""The gallery as a person uses it: one worker of each group added and tested in real Chromium, real peers behind."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from fastapi import FastAPI
from playwright.sync_api import Locator, Page, Route, expect

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from studio.prepare import prepare_store
from tests.browser.conftest import SECRET, free_port, watched_page
from tests.browser.test_pool_and_traces import card, open_pool
from tests.pool_registry.workers.test_mcp_sdk import Service
from tests.pool_registry.workers.test_space import make_app

MCP_SERVER = Path(__file__).parents[1] / "pool_registry" / "support" / "mcp_server.py"
FUNCTIONS = '''
from typing import TypedDict

class Shape(TypedDict):
    area: float
    kind: str

def area(width: float, height: float = 2.0) -> Shape:
    """Area of a rectangle.

    Args:
        width: Its width in meters.
    """
    return {"area": width * height, "kind": "square" if width == height else "oblong"}


def _private():
    return 1
'''
SLOW_MS = 60_000  # starting a program on a busy machine
LONG_MS = 240_000  # several, one after the other


def new_pool(page: Page, url: str, name: str) -> Locator:
    """An empty pool of its own for a test; the drawer."""
    page.goto(f"{url}/pool")
    page.get_by_role("button", name="New pool").click()
    drawer = page.locator(".page-drawer")
    drawer.get_by_label("Name", exact=True).fill(name)
    drawer.get_by_role("button", name="Create").click()
    expect(page.get_by_label("Pool", exact=True)).to_have_value(name)
    expect(drawer).to_be_hidden()
    return drawer


def template(page: Page, name: str) -> Locator:
    return page.locator(f"[data-template={name}]")


def add_and_test(page: Page, where: Locator, said: str) -> None:
    """Click Test where a worker was just added, and see what came of it."""
    where.locator(".pool-gallery-test").click()
    expect(where.locator(".pool-test")).to_have_attribute("data-status", "OK", timeout=SLOW_MS)
    expect(where.locator(".pool-test .page-value")).to_contain_text(said)


def test_tools_models_and_role_agents_are_added_by_one_click_and_tested_by_a_second(page, studio, model_port):
    drawer = new_pool(page, studio.url, "clicks")
    page.get_by_role("button", name="Add worker").click()

    page.get_by_label("Search templates").fill("expression")
    expect(page.locator(".pool-gallery-card:visible")).to_have_count(1)
    template(page, "calculator").get_by_role("button", name="Add Calculator").click()
    add_and_test(page, template(page, "calculator"), "7402030.3")
    page.get_by_label("Search templates").fill("")

    server = page.locator(f"[data-server='http://127.0.0.1:{model_port}/v1']")
    expect(server).to_contain_text("vLLM")
    server.get_by_role("button", name="Add acme/small-1").click()
    add_and_test(page, server, "hello")

    template(page, "compatible").get_by_role("button", name="Add Any").click()
    drawer.get_by_role("button", name="Add Any OpenAI-compatible URL").click()
    expect(drawer.locator(".form-problem:not(:empty)").first).to_have_text("this is missing")
    drawer.get_by_label("Base URL").fill(f"http://127.0.0.1:{model_port}/v1")
    drawer.get_by_role("button", name="List its models").click()
    expect(drawer.get_by_label("Model", exact=True)).to_have_value("acme/small-1")
    drawer.get_by_role("button", name="Add Any OpenAI-compatible URL").click()
    expect(template(page, "compatible").locator(".pool-gallery-test")).to_be_focused()
    add_and_test(page, template(page, "compatible"), "hello")

    page.keyboard.press("Escape")
    page.get_by_role("button", name="Add worker").click()  # the new models can be chosen now
    page.get_by_label("Role agents run on").select_option("small-1")
    template(page, "critic").get_by_role("button", name="Add Critic").click()
    add_and_test(page, template(page, "critic"), "hello")
    page.keyboard.press("Escape")
    expect(card(page, "critic")).to_contain_text("acme/small-1")
    expect(card(page, "critic").locator(".page-health")).to_have_attribute("data-health", "ok")
    expect(card(page, "calculator").locator(".pool-test")).to_contain_text("7402030.3")


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_all_workers_are_tested_by_one_click_and_each_says_whether_it_was_called(browser, studio, width, dark):
    store = prepare_store(str(studio.home))
    parameters = {"type": "object", "properties": {"kg": {"type": "number"}}, "required": ["kg"]}
    function = {"target": "bakery:order_flour", "parameters": parameters}
    workers = (
        WorkerSpec(name="calc", kind="calculator", description="Evaluates an expression."),
        WorkerSpec(name="off", kind="calculator", description="Is not tested.", enabled=False),
        WorkerSpec(name="order_flour", kind="function", description="Orders flour.", config=function),
        WorkerSpec(name="inner", kind="orchestrator", description="Answers parts of a question."),
    )
    store.pools.save(Pool(name="tests", workers=workers))
    store.close()
    with watched_page(browser, width, 900, dark=dark) as page:
        page.goto(f"{studio.url}/pool?pool=tests")
        page.get_by_role("button", name="Test all").click()
        expect(page.locator(".page-toast")).to_have_text(
            "1 of 3 workers answered a call, 1 only probed, 1 failed", timeout=LONG_MS
        )
        expect(card(page, "calc").locator(".pool-test")).to_contain_text("7402030.3")
        expect(card(page, "inner").locator(".pool-test")).to_contain_text("Probed")
        expect(card(page, "inner").locator(".pool-test-note")).to_contain_text("Not called")
        expect(card(page, "order_flour").locator(".pool-test-note")).to_contain_text("may change something outside")
        expect(card(page, "off").locator(".pool-test")).to_have_count(0)
        expect(page.get_by_role("button", name="Test all")).to_be_enabled()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_key_is_a_reference_that_says_at_once_whether_it_resolves(page, studio):
    drawer = new_pool(page, studio.url, "keys")
    page.get_by_role("button", name="Add worker").click()
    template(page, "deepseek").get_by_role("button", name="Add DeepSeek").click()
    key, state = drawer.get_by_label("API key", exact=True), drawer.locator(".form-key-state")
    expect(key).to_have_value("env:DEEPSEEK_API_KEY")
    expect(state).to_contain_text("export DEEPSEEK_API_KEY=")
    key.fill("env:PODIUM_TEST_KEY")
    expect(state).to_have_attribute("data-state", "ok")
    key.fill("sk-this-is-a-key-itself")
    expect(key).to_have_value("")
    expect(state).to_contain_text("move it to this system's keyring")
    key.fill("PODIUM_TEST_KEY")
    key.press("Tab")
    expect(key).to_have_value("env:PODIUM_TEST_KEY")
    drawer.get_by_role("button", name="Add DeepSeek").click()
    expect(template(page, "deepseek").locator(".pool-gallery-added")).to_contain_text("deepseek")
    page.keyboard.press("Escape")
    expect(card(page, "deepseek")).to_contain_text("env:PODIUM_TEST_KEY")
    assert SECRET not in page.content() and "sk-this-is-a-key-itself" not in page.content()


@pytest.mark.slow
def test_an_mcp_tool_is_added_and_called_within_five_clicks(page, studio):
    new_pool(page, studio.url, "mcp")
    page.evaluate("window.clicks = 0; addEventListener('click', (event) => event.detail && window.clicks++, true)")
    page.get_by_role("button", name="Add worker").click()
    template(page, "mcp").get_by_role("button", name="Open MCP server").click()
    drawer = page.locator(".page-drawer")
    expect(drawer.locator(".page-warning")).to_contain_text("runs a program on this machine")
    drawer.get_by_label("Command").fill(f"'{sys.executable}' '{MCP_SERVER}'")
    drawer.get_by_role("button", name="Connect").click()
    offers = drawer.locator(".pool-import-offer")
    expect(offers.first).to_be_visible(timeout=SLOW_MS)
    expect(offers.filter(has_text="Add two numbers")).to_contain_text("Takes a, b")
    assert drawer.locator(".pool-import-offer input:not(:disabled):not(:checked)").count() == 0
    drawer.get_by_role("button", name="Add 1").click()
    first = drawer.locator(".pool-import-added").first
    first.get_by_label("A", exact=True).fill("40")
    first.get_by_label("B", exact=True).fill("2")
    first.get_by_role("button", name="Call it").click()
    expect(first.locator(".page-out-head")).to_have_attribute("data-status", "OK", timeout=SLOW_MS)
    expect(first.locator(".page-value")).to_have_text("42")
    assert page.evaluate("window.clicks") <= 5

    page.keyboard.press("Escape")
    added = card(page, "mcp_server_add")
    expect(added).to_contain_text("runs a program")
    added.get_by_role("button", name="Refresh mcp_server_add").click()
    expect(page.locator(".page-toast")).to_contain_text("Nothing has changed", timeout=SLOW_MS)
    page.get_by_role("button", name="Test mcp_server_add").click()
    expect(added.locator(".page-health")).to_have_attribute("data-health", "ok", timeout=SLOW_MS)


@pytest.mark.slow
def test_an_mcp_server_behind_a_url_gives_tools_that_answer(page, studio):
    drawer = new_pool(page, studio.url, "mcp-url")
    page.get_by_role("button", name="Add worker").click()
    template(page, "mcp").get_by_role("button", name="Open MCP server").click()
    drawer.get_by_text("A URL", exact=True).click()
    expect(drawer.locator(".page-warning")).to_be_hidden()  # nothing runs here
    service = Service()
    try:
        drawer.get_by_label("URL").fill(f"http://127.0.0.1:{service.port}/mcp")
        drawer.get_by_role("button", name="Connect").click()
        drawer.get_by_label("Filter").fill("Add two numbers", timeout=SLOW_MS)
        drawer.get_by_role("button", name="Add 1").click()
        drawer.get_by_label("A", exact=True).fill("40")
        drawer.get_by_label("B", exact=True).fill("2")
        drawer.get_by_role("button", name="Call it").click()
        expect(drawer.locator(".page-value")).to_have_text("42", timeout=SLOW_MS)
    finally:
        service.kill()


@pytest.mark.slow
def test_an_endpoint_of_a_space_becomes_a_tool(page, studio, tmp_path):
    drawer = new_pool(page, studio.url, "space")
    page.get_by_role("button", name="Add worker").click()
    template(page, "space").get_by_role("button", name="Open Hugging Face Space").click()
    app = make_app(tmp_path)
    app.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
    try:
        drawer.get_by_label("Space", exact=True).fill(app.local_url)
        drawer.get_by_role("button", name="Look").click()
        offers = drawer.locator(".pool-import-offer")
        expect(offers).to_have_count(4, timeout=SLOW_MS)
        expect(offers.filter(has_text="not one file")).to_have_count(1)
        drawer.get_by_role("button", name="None").click()
        offers.filter(has_text="Takes a, b").locator("input").check()
        drawer.get_by_role("button", name="Add 1 worker").click()
        drawer.get_by_label("A", exact=True).fill("40")
        drawer.get_by_role("button", name="Call it").click()
        expect(drawer.locator(".page-value")).to_contain_text("42", timeout=SLOW_MS)
    finally:
        app.close()


def test_a_server_that_cannot_be_started_is_told_and_nothing_typed_is_lost(page, studio):
    drawer = new_pool(page, studio.url, "broken")
    page.get_by_role("button", name="Add worker").click()
    template(page, "mcp").get_by_role("button", name="Open MCP server").click()
    drawer.get_by_label("Command").fill("no-such-program-anywhere --flag")
    drawer.get_by_role("button", name="Connect").click()
    expect(drawer.locator(".form-general, .form-problem").filter(has_text="no-such-program-anywhere")).to_be_visible()
    expect(drawer.get_by_label("Command")).to_have_value("no-such-program-anywhere --flag")


def test_a_pasted_key_moves_to_the_keyring_by_one_button(page, studio):
    sent: list[object] = []

    def keep(route: Route) -> None:
        sent.append(route.request.post_data_json)
        route.fulfill(json={"reference": "keyring:DEEPSEEK_API_KEY"})

    page.route("**/api/keyring", keep)
    drawer = new_pool(page, studio.url, "moved")
    page.get_by_role("button", name="Add worker").click()
    template(page, "deepseek").get_by_role("button", name="Add DeepSeek").click()
    key = drawer.get_by_label("API key", exact=True)
    key.fill("sk-this-is-a-key-itself")
    expect(key).to_have_value("")
    expect(drawer.get_by_label("Name in the keyring")).to_be_focused()
    drawer.get_by_role("button", name="Store in the keyring").click()
    expect(key).to_have_value("keyring:DEEPSEEK_API_KEY")
    assert sent == [{"name": "DEEPSEEK_API_KEY", "value": "sk-this-is-a-key-itself"}]
    expect(drawer.get_by_label("Key", exact=True)).to_have_value("")


def test_functions_of_a_file_become_tools(page, studio, tmp_path):
    drawer = new_pool(page, studio.url, "functions")
    file = tmp_path / "shapes.py"
    file.write_text(FUNCTIONS)
    page.get_by_role("button", name="Add worker").click()
    template(page, "function").get_by_role("button", name="Open Python function").click()
    drawer.get_by_label("Function").fill(str(file))
    drawer.get_by_role("button", name="Look").click()
    expect(drawer.locator(".pool-import-offer")).to_have_count(1, timeout=SLOW_MS)
    expect(drawer.locator(".pool-import-offer")).to_contain_text("Takes width, height; returns {area, kind}")
    expect(drawer.get_by_label("Their calls only read")).to_be_hidden()  # in the sandbox they can do nothing else
    drawer.get_by_text("Back", exact=True).click()
    drawer.get_by_label("They use the network").check()
    drawer.get_by_role("button", name="Look").click()
    drawer.get_by_label("Their calls only read").check()
    drawer.get_by_role("button", name="Add 1 worker").click()
    expect(drawer).to_contain_text("Returns {area, kind}")
    drawer.get_by_label("Width").fill("3")
    drawer.get_by_role("button", name="Call it").click()
    expect(drawer.locator(".page-value")).to_contain_text("oblong", timeout=SLOW_MS)
    pool = page.request.get(f"{studio.url}/api/pools/functions").json()
    assert [worker["effects"] for worker in pool["workers"]] == ["none"]


def test_uploaded_documents_can_be_searched(page, studio, tmp_path):
    drawer = new_pool(page, studio.url, "library")
    (tmp_path / "tides.md").write_text("# Tides\n\nThe spring tide comes twice a month.\n")
    (tmp_path / "moons.txt").write_text("Phobos is the larger moon of Mars.\n")
    page.get_by_role("button", name="Add worker").click()
    template(page, "documents").locator(".pool-gallery-add").click()
    (tmp_path / "program.exe").write_text("no document")
    upload = drawer.get_by_label("Upload documents")
    upload.set_input_files(tmp_path / "program.exe")
    expect(drawer.locator(".form-problem:not(:empty)")).to_contain_text(".pdf")
    upload.set_input_files([tmp_path / "tides.md", tmp_path / "moons.txt"])
    expect(drawer.get_by_label("Documents", exact=True)).to_have_value(re.compile("artifacts.documents"))
    drawer.get_by_role("button", name="Add Documents").click()
    add_and_test(page, template(page, "documents"), "moons.txt")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Try it documents").click()
    drawer.get_by_label("Query").fill("larger moon of Mars")
    drawer.get_by_role("button", name="Call it").click()
    expect(drawer.locator(".page-value")).to_contain_text("Phobos", timeout=SLOW_MS)


def test_operations_of_an_api_become_tools_and_one_answers(page, studio):
    drawer = new_pool(page, studio.url, "api")
    page.get_by_role("button", name="Add worker").click()
    template(page, "openapi").get_by_role("button", name="Open OpenAPI document").click()
    drawer.get_by_label("Document", exact=True).fill("this is no document")
    drawer.get_by_role("button", name="Read it").click()
    expect(drawer.locator(".form-problem:not(:empty), .form-general:not(:empty)").first).to_be_visible()
    drawer.get_by_label("Document", exact=True).fill("")
    with api_server() as url:
        drawer.get_by_label("URL of the document").fill(f"{url}/openapi.json")
        drawer.get_by_role("button", name="Read it").click()
        expect(drawer.locator(".pool-import-offer")).to_have_count(2)
        drawer.get_by_label("Filter").fill("forget")
        expect(drawer.locator(".pool-import-offer:visible")).to_have_count(1)
        drawer.get_by_role("button", name="None").click()  # of those that the filter shows
        drawer.get_by_role("button", name="Add 1 worker").click()
        drawer.get_by_label("City").fill("Lima")
        drawer.get_by_role("button", name="Call it").click()
        expect(drawer.locator(".page-value")).to_contain_text("21.5 in Lima", timeout=SLOW_MS)


@contextmanager
def api_server() -> Iterator[str]:
    """A real FastAPI service over a socket; its address."""
    app = FastAPI()

    @app.get("/weather/{city}", operation_id="weather")
    def weather(city: str) -> dict[str, str]:
        """Weather of a city."""
        return {"said": f"21.5 in {city}"}

    @app.delete("/weather/{city}", operation_id="forget_weather")
    def forget(city: str) -> None:
        """Forget a city's weather."""

    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(timeout=60)


def test_two_versions_are_compared_and_the_older_one_is_restored(page, studio):
    drawer = new_pool(page, studio.url, "versions")
    page.get_by_role("button", name="Add worker").click()
    for name in ("units", "calculator"):
        template(page, name).locator(".pool-gallery-add").click()
        expect(template(page, name).locator(".pool-gallery-added")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Remove units").click()
    drawer.get_by_role("button", name="Remove units").click()
    page.get_by_role("button", name="Edit calculator").click()
    drawer.get_by_label("Description").fill("<b>Counts</b> & adds.")
    drawer.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Version 5").click()
    drawer.get_by_label("Compare version").select_option("3")
    changes = drawer.locator(".pool-version-worker")
    expect(changes).to_have_count(2)
    expect(drawer.locator("[data-name=units][data-change=removed]")).to_be_visible()
    edited = drawer.locator("[data-name=calculator] tbody tr")
    expect(edited).to_contain_text("description")
    expect(edited.locator("ins")).to_have_text("<b>Counts</b> & adds.")
    drawer.get_by_role("button", name="Restore version 3").click()
    expect(card(page, "units")).to_be_visible()
    expect(card(page, "calculator")).not_to_contain_text("Counts")


def test_the_gallery_is_used_by_keyboard_and_gives_focus_back(page, studio):
    open_pool(page, studio.url, "by_keys")  # others count the workers of the starter pool
    add = page.get_by_role("button", name="Add a worker")
    add.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Search templates")).to_be_focused()
    page.keyboard.type("units")
    template(page, "units").locator(".pool-gallery-add").focus()
    page.keyboard.press("Enter")
    expect(template(page, "units").locator(".pool-gallery-added")).to_contain_text("units_2")
    page.keyboard.press("Escape")
    expect(page.locator(".page-drawer")).to_be_hidden()
    expect(add).to_be_focused()


@pytest.mark.parametrize(
    ("width", "dark"), [*(pytest.param(1440, dark, marks=pytest.mark.slow) for dark in (False, True)), (390, False)]
)
def test_axe_finds_nothing_in_the_gallery_and_nothing_sticks_out(browser, studio, width, dark):
    with watched_page(browser, width=width, dark=dark) as page:
        open_pool(page, studio.url, f"axe_{width}_{dark}".lower())
        page.get_by_role("button", name="Add worker").click()
        expect(page.locator("[data-server]").first).to_be_visible(timeout=SLOW_MS)
        template(page, "units").locator(".pool-gallery-add").click()
        template(page, "units").locator(".pool-gallery-test").click()
        expect(template(page, "units").locator(".pool-test")).to_be_visible()
        assert violations(page) == []
        template(page, "mistral").locator(".pool-gallery-add").click()
        expect(page.locator(".form-key-state")).not_to_be_empty()
        assert violations(page) == []
        assert page.evaluate("document.querySelector('.page-drawer').scrollWidth <= innerWidth")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def violations(page: Page) -> list[object]:
    found = Axe().run(page).response["violations"]
    return [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found]
