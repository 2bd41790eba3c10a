"""A real studio in a subprocess and a fresh page of real Chromium for each test.

At its end every test also asserts that the page logged no error and asked no other host for anything.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.machine import missing
from tests.studio.support.model_server import model_server

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# What every page is looked at in: `make test` takes a light screen and a dark phone, `make test-all` the other two.
WINDOWS = [
    (1440, False),
    (390, True),
    pytest.param(390, False, marks=pytest.mark.slow),
    pytest.param(1440, True, marks=pytest.mark.slow),
]
SECRET = "planted-4711-secret"  # the value of PODIUM_TEST_KEY in the studio
PATIENCE = 60_000  # ms; a busy machine is no failure, and a test that passes does not wait for it
expect.set_options(timeout=PATIENCE)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Studio:
    """A studio process on its own data folder; `restart` keeps port and folder."""

    home: Path
    port: int = field(default_factory=free_port)
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)  # more of its environment, after a restart too
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "studio", "--port", str(self.port), "--no-browser"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **self.variables}
        with (self.home.parent / f"{self.home.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--home", str(self.home), *self.arguments], env=environment, stdout=log, stderr=log
            )
        try:
            self._wait()
        except AssertionError:
            self.process.kill()
            raise

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(timeout=60)

    def restart(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.stop(how)
        self.start()

    def _wait(self) -> None:
        deadline = time.monotonic() + 240  # a busy machine is no failure
        while time.monotonic() < deadline:
            assert self.process is not None and self.process.poll() is None, "the studio ended"
            try:
                with urllib.request.urlopen(self.url, timeout=2):
                    return
            except urllib.error.HTTPError:  # it asks for a login
                return
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError("the studio did not answer within 240 s")


@pytest.fixture(scope="package")
def model_port() -> Iterator[int]:
    """The port of a model server on this machine, for the studio to discover."""
    with model_server("vllm", ["acme/small-1"]) as port:
        yield port


@pytest.fixture(scope="package")
def studio(tmp_path_factory: pytest.TempPathFactory, model_port: int) -> Iterator[Studio]:
    """The studio that all modules share: each test makes pools of its own. It has one key in its environment."""
    variables = {"PODIUM_DISCOVER_PORTS": str(model_port), "PODIUM_TEST_KEY": SECRET}
    running = Studio(tmp_path_factory.mktemp("studio") / "home", variables=variables)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="package")
def studio_url(studio: Studio) -> str:
    return studio.url


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        missing("Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        browser.new_context()  # the one that watched_page uses
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with watched_page(browser) as opened:
        yield opened


def _is_problem(message: ConsoleMessage) -> bool:
    """An error of ours. Gradio reports its own open stream as one when a page is left."""
    return message.type == "error" and not _is_left(message.text)


def _is_left(text: str) -> bool:
    """What a browser and Gradio say of a request that was cut off because its page was left."""
    return "AbortError" in text or "aborted" in text or "Connection errored out" in text


def wait_until(page: Page, is_so: Callable[[], bool]) -> None:
    """Let the browser's events arrive until it is so. For what Playwright has no waiting of its own."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not is_so():
        assert time.monotonic() < deadline, "it did not become so"
        page.wait_for_timeout(50)


@contextlib.contextmanager
def watched_page(browser: Browser, width: int = 1440, height: int = 900, dark: bool = False) -> Iterator[Page]:
    """A page whose console errors and foreign requests fail the test, without the cookies and storage of earlier ones.

    All pages share one context, and so the browser's cache: a page of the studio loads in half the time.
    """
    context = browser.contexts[0]
    others = context.pages
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
    problems: list[str] = []
    logged_out: list[str] = []  # a page that logs out may still ask for what its last run needs, and rightly gets 401

    def is_expected(text: str) -> bool:
        return bool(_is_left(text) or (logged_out and "401" in text))

    page.on("pageerror", lambda error: None if _is_left(str(error)) else problems.append(f"page error: {error}"))
    page.on(
        "console",
        lambda message: (
            problems.append(message.text) if message.type == "error" and not is_expected(message.text) else None
        ),
    )
    page.on("request", lambda request: problems.extend(_foreign(request.url)))
    page.on("request", lambda request: logged_out.append(request.url) if request.url.endswith("/logout") else None)
    page.on(
        "response",
        lambda answer: (
            problems.append(f"{answer.status} {answer.url}")
            if answer.status >= 400 and not (logged_out and answer.status == 401)
            else None
        ),
    )
    try:
        yield page
    finally:
        if not others:
            _clear_storage(page)
        for opened in context.pages:
            if opened not in others:
                opened.close()
        if not others:
            context.clear_cookies()
            context.clear_permissions()
    assert not problems, problems


def _clear_storage(page: Page) -> None:
    """Forget what the page's origin stored, such as the chosen theme, also where the page itself does not answer."""
    address = urllib.parse.urlsplit(page.url)
    if address.scheme in ("http", "https"):
        origin = f"{address.scheme}://{address.netloc}"
        session = page.context.new_cdp_session(page)
        session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "local_storage"})


def _foreign(url: str) -> list[str]:
    local = url.startswith(("http://127.0.0.1:", "http://localhost:", "data:", "blob:"))
    return [] if local else [f"request to another host: {url}"]
