"""The box of the Pool page: each kind of text becomes a tested worker within two clicks, real peers behind."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from fastapi import FastAPI
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import watched_page
from tests.browser.test_pool_gallery import MCP_SERVER, SLOW_MS, new_pool
from tests.pool_registry.support.openapi_service import make_app, served

SKILL = """---
name: short-answers
description: Answers in one sentence. Use it for questions that want no more.
---
# Short answers

Answer in one sentence.
"""


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with served(make_app()) as address:
        yield address


@contextmanager
def replying_agent(text: str) -> Iterator[str]:
    """The address of an agent that answers every message of A2A with one text."""
    app = FastAPI()

    @app.post("/rpc")
    def answer() -> dict[str, object]:
        parts = [{"kind": "text", "text": text}]
        return {"jsonrpc": "2.0", "id": 1, "result": {"kind": "message", "role": "agent", "parts": parts}}

    with served(app) as address:
        yield f"{address}/rpc"


def paste(page: Page, text: str) -> Locator:
    page.get_by_label("Paste what you have").fill(text)
    return page.locator(".page-drawer")


def expect_tested(drawer: Locator, name: str, status: str = "OK", count: int = 1) -> None:
    """What came of the test stands under the worker's name, without a click."""
    box = drawer.locator(f"[data-name='{name}'] .pool-test")
    expect(box).to_have_attribute("data-status", status, timeout=SLOW_MS)
    expect(drawer.locator(".pool-import-added")).to_have_count(count)


def test_a_curl_line_is_added_and_tested_by_one_click(page, studio, service):
    new_pool(page, studio.url, "pasted_curl")
    drawer = paste(page, f"curl '{service}/v1/items/7?deep=true' \\\n  -H 'accept: application/json'")
    expect(drawer.get_by_text("1 of 1 can be added.")).to_be_visible()
    drawer.get_by_role("button", name="Add 1 worker").click()
    expect_tested(drawer, "items")
    expect(drawer.locator(".pool-test")).to_contain_text('"id": "7"')


def test_an_openapi_document_is_added_and_tested_by_one_click(page, studio, service):
    new_pool(page, studio.url, "pasted_document")
    operation = {"operationId": "getItem", "parameters": [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "example": "9", "default": "9"}}
    ]}  # fmt: skip
    document = {"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "servers": [{"url": f"{service}/v1"}]}
    drawer = paste(page, json.dumps(document | {"paths": {"/items/{id}": {"get": operation}}}))
    drawer.get_by_role("button", name="Add 1 worker").click()
    expect_tested(drawer, "get_item")


def test_the_address_of_a_document_with_a_key_takes_two_clicks(page, studio, service):
    new_pool(page, studio.url, "pasted_address")
    drawer = paste(page, f"{service}/v1/openapi.json env:PODIUM_TEST_KEY")
    drawer.get_by_role("button", name="Look").click()
    drawer.get_by_role("button", name="Add").last.click()
    expect(drawer.locator(".pool-test").first).to_be_visible(timeout=SLOW_MS)


def test_servers_of_a_clients_settings_take_two_clicks(page, studio):
    new_pool(page, studio.url, "pasted_servers")
    entry = {"command": sys.executable, "args": [str(MCP_SERVER)], "env": {"API_TOKEN": "abcdef-123456-planted"}}
    text = json.dumps({"mcpServers": {"tests": entry}})
    drawer = paste(page, text)
    expect(drawer).to_contain_text(f"Starts {sys.executable}")
    expect(drawer).to_contain_text("export API_TOKEN=...")
    drawer.get_by_label("What you have").fill(text.replace("abcdef-123456-planted", "env:PODIUM_TEST_KEY"))
    expect(drawer).not_to_contain_text("export API_TOKEN=...")
    drawer.get_by_role("button", name="Start and look").click()
    add = drawer.get_by_role("button", name="Add", exact=False).last
    expect(add).to_be_visible(timeout=SLOW_MS)
    add.click()
    expect(drawer.locator("[data-name=tests_add] .pool-test")).to_have_attribute("data-status", "OK", timeout=SLOW_MS)


def test_tools_are_called_at_the_address_that_a_person_gives(page, studio, service):
    new_pool(page, studio.url, "pasted_tools")
    schema = {"type": "object", "properties": {"item": {"type": "string"}, "amount": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": "orders", "description": "Orders.", "parameters": schema}}]
    drawer = paste(page, json.dumps(tools))
    expect(drawer).to_contain_text("each returns its call, labelled")
    drawer.get_by_label("Server").fill(f"{service}/v1")
    drawer.get_by_role("button", name="Go on").click()
    drawer.get_by_role("button", name="Add 1 worker").click()
    expect_tested(drawer, "orders")  # a POST may change something: it is probed


def test_a_skill_becomes_an_agent_on_a_model_of_the_pool(page, studio, model_port):
    new_pool(page, studio.url, "pasted_skill")
    drawer = paste(page, f"127.0.0.1:{model_port}")
    drawer.get_by_role("button", name="Look").click()
    drawer.get_by_role("button", name="Add 1 worker").click()
    expect_tested(drawer, "small-1")
    drawer.get_by_role("button", name="Done").click()
    drawer = paste(page, SKILL)
    expect(drawer.get_by_label("Runs on")).to_have_value("small-1")
    drawer.get_by_role("button", name="Go on").click()
    drawer.get_by_role("button", name="Add 1 worker").click()
    expect_tested(drawer, "short-answers")


def test_an_agent_card_is_added_and_tested_by_one_click(page, studio):
    new_pool(page, studio.url, "pasted_card")
    with replying_agent("hello there") as address:
        card = {"name": "Geo", "description": "Knows places.", "url": address, "version": "1", "capabilities": {}}
        drawer = paste(page, json.dumps({**card, "protocolVersion": "0.3.0", "skills": []}))
        drawer.get_by_role("button", name="Add 1 worker").click()
        expect_tested(drawer, "geo")
        expect(drawer.locator(".pool-test")).to_contain_text("hello there")


def test_a_team_of_autogen_becomes_its_agents_and_functions(page, studio, model_port):
    client = {"provider": "autogen_ext.models.openai.OpenAIChatCompletionClient", "config": {
        "model": "small-1", "base_url": f"http://127.0.0.1:{model_port}/v1",
    }}  # fmt: skip
    code = {"name": "stock", "source_code": "def stock(item: str) -> int:\n    return len(item)\n"}
    tool = {"provider": "autogen_core.tools.FunctionTool", "config": code}
    clerk = {"name": "clerk", "system_message": "Sell.", "model_client": client, "tools": [tool]}
    agent = {"provider": "autogen_agentchat.agents.AssistantAgent", "component_type": "agent", "config": clerk}
    team = {"provider": "autogen_agentchat.teams.RoundRobinGroupChat", "config": {"participants": [agent]}}
    new_pool(page, studio.url, "pasted_team")
    drawer = paste(page, json.dumps(team))
    expect(drawer.locator(".pool-paste-actions")).to_contain_text("loads them in the sandbox")
    expect(drawer.locator(".pool-paste-notes")).to_contain_text("Not carried over")
    drawer.get_by_role("button", name="Look").click()
    drawer.get_by_role("button", name="Add 2 workers").click()
    expect(drawer.locator(".pool-import-added")).to_have_count(2, timeout=SLOW_MS)
    expect(drawer.locator("[data-name='stock']")).to_be_visible()
    expect(drawer.locator("[data-name='clerk']")).to_be_visible()


def test_what_is_nothing_says_what_is_accepted(page, studio):
    new_pool(page, studio.url, "pasted_nothing")
    drawer = paste(page, "make me a sandwich")
    expect(drawer.locator(".form-problem").first).to_contain_text("Accepted are")
    expect(drawer.get_by_role("button", name="Go on")).to_be_disabled()


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_the_box_and_its_drawer_fit_and_can_be_read(browser, studio, width, dark):
    with watched_page(browser, width, 900, dark=dark) as page:
        new_pool(page, studio.url, f"pasted_look_{width}")
        paste(page, '{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"TOKEN": "abc"}}}}')
        expect(page.locator(".pool-paste-verdict")).to_contain_text("a list of MCP servers")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        results = Axe().run(page)
        assert not results.response["violations"], results.generate_report()
