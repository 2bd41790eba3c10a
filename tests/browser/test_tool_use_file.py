"""A data set of tool use is dropped on the Train page and seen as a pool and as graphs, in two clicks."""

from __future__ import annotations

import json
import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.trainer.support.tool_use_files import OPENAI, TOOL_FILES

DROP = """(panel, [name, text]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name));
  panel.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
}"""


def test_a_dropped_file_is_seen_as_a_pool_and_as_graphs(page: Page, studio_url: str):
    page.goto(f"{studio_url}/train?new=1")
    panel = page.get_by_role("region", name="Tasks", exact=True)
    expect(panel).to_be_visible()
    broken = {"messages": [{"role": "narrator", "content": "c"}]}
    text = "\n".join(map(json.dumps, (OPENAI, broken)))
    panel.evaluate(DROP, ["dropped-calls.jsonl", text])
    expect(panel).to_contain_text("Read as OpenAI messages in JSONL: 1 conversation with 2 tools")
    expect(panel).to_contain_text("Line 2 message 1: the role 'narrator' is not known here")
    assert not Axe().run(page, context=".train-tasks").response["violations"]

    panel.get_by_role("button", name="Make a pool with 1 task").click()
    expect(panel).to_contain_text("Made the pool dropped-calls: 2 tools, 1 task with a reference plan.")
    expect(panel.locator(".train-rollouts-graph rect.train-rollouts-node")).to_have_count(2)
    assert not Axe().run(page, context=".train-tasks").response["violations"]

    panel.get_by_role("link", name="Open in Run: What does tea").click()
    expect(page).to_have_url(re.compile("episode="))
    expect(page.locator("#run-view")).to_contain_text("get_price")
    page.goto(f"{studio_url}/pool?pool=dropped-calls")
    expect(page.get_by_text("get_stock").first).to_be_visible()


def test_a_name_that_is_taken_is_said_at_its_field(page: Page, studio_url: str):
    page.goto(f"{studio_url}/train?new=1")
    panel = page.get_by_role("region", name="Tasks", exact=True)
    expect(panel).to_be_visible()
    panel.evaluate(DROP, ["share.json", TOOL_FILES["sharegpt.json"].content.decode()])
    panel.get_by_label("Name of the new pool").fill("starter")
    panel.get_by_role("button", name="Make a pool with 1 task").click()
    expect(panel).to_contain_text("there is a pool 'starter' already")
