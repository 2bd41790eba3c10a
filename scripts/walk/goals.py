"""What a new user wants, one function each: it goes there click by click, and returns what stands there at the end.

To add a goal, write a function and a row of GOALS. They are walked in this order, in one studio.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from urllib.request import Request, urlopen

from playwright.sync_api import expect

from scripts.walk.walker import PATIENCE_MS, Walker

TRAINING_MS = 600_000  # a job imports torch and loads its model before it stops
QUESTION = "What is 17 * 23?"


def answer_first_query(walker: Walker) -> str:
    """The query that stands there, answered."""
    walker.page.goto(walker.url)
    walker.page.wait_for_function("document.querySelector('#query textarea')?.value")
    return walker.ask(walker.page.locator("#query textarea").input_value())


def ask_own_question(walker: Walker) -> str:
    """A question of one's own, with what the page has chosen."""
    walker.page.goto(walker.url)
    return walker.ask(QUESTION)


def ask_on(walker: Walker) -> str:
    """A question that goes on with the answer before."""
    walker.page.goto(walker.url)
    walker.ask(QUESTION)
    walker.clicks = 0
    walker.page.get_by_label("Follow up").fill("and 19 * 23?")
    walker.press("Ask")
    return walker.read_answer("What is 19 * 23?")


def correct_an_answer(walker: Walker) -> str:
    """An answer that is said to be wrong, with the right one."""
    walker.page.goto(walker.url)
    walker.ask(QUESTION)
    walker.clicks = 0
    walker.press("The answer is wrong")
    walker.page.get_by_label("What is right?").fill("392")
    walker.press("Save")
    walker.page.get_by_test_id("verdict").wait_for()
    return walker.page.get_by_test_id("verdict").inner_text()


def share_a_run(walker: Walker) -> str:
    """A link to a run, opened by somebody who knows nothing else of the studio."""
    walker.page.goto(walker.url)
    walker.ask(QUESTION)
    walker.clicks = 0
    walker.press("Share")
    dialog = walker.page.get_by_role("dialog", name="Share this run")
    walker.click(dialog.get_by_role("button", name="Make a link"))
    link = dialog.get_by_label("The link, which is shown this once").input_value()
    assert walker.page.context.browser is not None, "a page of a browser"
    visitor = walker.page.context.browser.new_page()
    visitor.goto(link)
    answer = visitor.get_by_test_id("answer")
    answer.wait_for()
    text = answer.inner_text()
    visitor.close()
    return text


def add_and_test_worker(walker: Walker) -> str:
    """A worker of the gallery in a new pool, tested."""
    walker.make_pool("walked")
    walker.press("Add worker")
    card = walker.page.locator("[data-template=units]")
    walker.click(card.locator(".pool-gallery-add"))
    walker.click(card.locator(".pool-gallery-test"))
    walker.page.wait_for_selector(".pool-test[data-status]", timeout=PATIENCE_MS)
    return walker.page.locator(".pool-test").first.inner_text()


def paste_a_request(walker: Walker) -> str:
    """A curl line of one's own service, pasted into a new pool: added and tested, then asked."""
    walker.make_pool("stock")
    line = f"curl '{walker.service}/stock?item=tea'"
    walker.page.get_by_label("Paste what you have").fill(line)
    walker.press("Add 1 worker", ".page-drawer")
    walker.page.wait_for_selector(".page-drawer .pool-test[data-status]", timeout=PATIENCE_MS)
    return walker.page.locator(".page-drawer .pool-test").first.inner_text()


def answer_by_own_pool(walker: Walker) -> str:
    """A question that a pool of one's own answers: two workers of the gallery, then Run on that pool."""
    walker.make_pool("mine")
    walker.press("Add worker")
    for template in ("units", "calculator"):
        card = walker.page.locator(f"[data-template={template}]")
        walker.click(card.locator(".pool-gallery-add"))
        card.locator(".pool-gallery-test").wait_for(timeout=PATIENCE_MS)
    walker.press("Close", ".page-drawer")
    walker.click(walker.page.locator("[data-key=run]"))
    return walker.ask("Convert 5 miles to km")


def serve_and_ask(walker: Walker) -> str:
    """The pool as a model, asked by a client of the OpenAI API."""
    walker.start("serve")
    walker.press("Start serving")
    card = walker.page.get_by_role("article", name="podium-starter")
    expect(card.locator(".traces-pill")).to_have_text("ready", timeout=PATIENCE_MS)
    address = re.search(r"http://[\w.:]+/v1", card.inner_text())
    assert address is not None, "the card says where it is served"
    body = {"model": "podium-starter", "messages": [{"role": "user", "content": QUESTION}]}
    request = Request(f"{address[0]}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
    with urlopen(request, timeout=PATIENCE_MS / 1000) as reply:
        return str(json.load(reply)["choices"][0]["message"]["content"])


def start_and_stop_training(walker: Walker) -> str:
    """The training that the page offers first: started, seen running, stopped with what it has learnt."""
    walker.start("train")
    walker.page.wait_for_selector(".train-go[aria-disabled=false]", timeout=PATIENCE_MS)
    walker.click(walker.page.locator(".train-go"))
    question = walker.page.get_by_role("button", name="Start anyway")
    walker.page.wait_for_function("location.search.includes('job=') || document.querySelector('.train-confirm')")
    if question.is_visible():
        walker.click(question)
    state = walker.page.get_by_test_id("job-state")
    state.and_(walker.page.locator("[data-state=running]")).wait_for(timeout=PATIENCE_MS)
    walker.press("Stop and save")
    state.and_(walker.page.locator("[data-state=stopped]")).wait_for(timeout=TRAINING_MS)
    return walker.page.locator(".train-job-wait").first.inner_text()


GOALS: dict[str, Callable[[Walker], str]] = {
    "first answer": answer_first_query,
    "own question": ask_own_question,
    "question that goes on": ask_on,
    "wrong answer corrected": correct_an_answer,
    "run shared": share_a_run,
    "worker added and tested in a new pool": add_and_test_worker,
    "curl line pasted into a new pool": paste_a_request,
    "answer by an own pool": answer_by_own_pool,
    "pool served and asked": serve_and_ask,
    "training started and stopped": start_and_stop_training,
}
