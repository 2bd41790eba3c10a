"""A studio behind a real TLS proxy: whose word it takes, what it marks Secure, and that streams flow."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError

import pytest

from orchestrator.engine.events import EpisodeStarted, TurnStarted
from studio.access.accounts import Accounts
from studio.access.login_brake import FREE_TRIES, compute_wait_s
from studio.prepare import prepare_store
from tests.machine import missing
from tests.studio.support.served import START_S, free_port
from tests.studio.support.tls_proxy import tls_proxy

pytestmark = pytest.mark.slow
PASSWORD = "correct horse battery"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: http.client.HTTPMessage
    body: bytes


@dataclass(frozen=True)
class Site:
    """A studio with its proxy. Visitors have addresses of their own on this machine: 127.0.0.2 and on."""

    port: int
    studio_port: int
    certificate: Path

    @property
    def origin(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def connect(self, address: str) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=self.certificate)
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=60, context=context, source_address=(address, 0)
        )

    def send(self, method: str, path: str, address: str, body: str = "", **headers: str) -> Reply:
        return read(self.connect(address), method, path, body, headers)

    def send_past_the_proxy(self, method: str, path: str, address: str, body: str = "", **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.studio_port, timeout=60, source_address=(address, 0))
        return read(connection, method, path, body, headers)

    def log_in(self, address: str, password: str = PASSWORD, **headers: str) -> Reply:
        form = f"name=ada&password={password.replace(' ', '+')}"
        kind = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.origin}
        return self.send("POST", "/login", address, form, **kind, **headers)


def read(connection: http.client.HTTPConnection, method: str, path: str, body: str, headers: dict[str, str]) -> Reply:
    try:
        connection.request(
            method, path, body.encode(), {name.replace("_", "-"): text for name, text in headers.items()}
        )
        response = connection.getresponse()
        return Reply(response.status, response.headers, response.read())
    finally:
        connection.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if not sys.platform.startswith("linux") or shutil.which("openssl") is None:
        missing("openssl, and a loopback network with more than one address")
    folder = tmp_path_factory.mktemp("proxied")
    store = prepare_store(str(folder / "home"))
    Accounts(store.engine).add("ada", PASSWORD)
    store.traces.append("unfinished", EpisodeStarted("q", "starter", "h", "direct", {}, "2026-01-01T00:00:00+00:00"))
    store.traces.append("unfinished", TurnStarted(1, 0.0))
    store.traces.flush()
    store.close()
    port = free_port()
    command = [sys.executable, "-m", "studio", "--port", str(port), "--no-browser", "--login", "--proxy", "127.0.0.1"]
    process = subprocess.Popen(
        [*command, "--home", str(folder / "home")],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_for_login(port, process)
        with tls_proxy(folder, port) as proxied:
            yield Site(proxied, port, folder / "cert.pem")
    finally:
        process.terminate()
        process.wait(30)


def wait_for_login(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "the studio ended"
        with suppress(HTTPError, OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/login", timeout=5):
            return
        time.sleep(0.1)
    raise AssertionError("the studio did not answer")


def cookie_of(reply: Reply) -> str:
    return reply.headers["set-cookie"].partition(";")[0]


def test_the_cookie_is_for_https_alone_and_the_visitor_has_an_address_of_its_own(site):
    reply = site.log_in("127.0.0.2", X_Forwarded_For="8.8.8.8")
    assert reply.status == 200
    assert {"secure", "httponly"} <= {part.strip().lower() for part in reply.headers["set-cookie"].split(";")}
    sessions = site.send("GET", "/api/sessions", "127.0.0.2", Cookie=cookie_of(reply))
    addresses = [session["address"] for session in json.loads(sessions.body)["sessions"]]
    assert addresses == ["127.0.0.2"], "what a visitor claims does not count"


def test_a_visitor_who_comes_past_the_proxy_is_not_believed(site):
    form, kind = f"name=ada&password={PASSWORD.replace(' ', '+')}", "application/x-www-form-urlencoded"
    reply = site.send_past_the_proxy(
        "POST", "/login", "127.0.0.9", form,
        Content_Type=kind, X_Forwarded_For="8.8.8.8", X_Forwarded_Proto="https",
    )  # fmt: skip
    assert "secure" not in reply.headers["set-cookie"].lower()
    sessions = site.send("GET", "/api/sessions", "127.0.0.2", Cookie=cookie_of(reply))
    assert "127.0.0.9" in [session["address"] for session in json.loads(sessions.body)["sessions"]]


def test_commands_come_from_the_proxys_own_pages_only(site):
    cookie = cookie_of(site.log_in("127.0.0.2"))
    command = {"Cookie": cookie, "Content-Type": "application/json"}
    body = json.dumps({"reference": "env:NOT_SET_ANYWHERE"})
    own = site.send("POST", "/api/pages/pool/check_reference", "127.0.0.2", body, **command, Origin=site.origin)
    assert own.status == 200, own.body
    for origin in ("https://evil.example", f"http://127.0.0.1:{site.studio_port}", "null"):
        foreign = site.send("POST", "/api/pages/pool/check_reference", "127.0.0.2", body, **command, Origin=origin)
        assert foreign.status == 403, (origin, foreign.body)


def test_the_brake_slows_the_guesser_whatever_it_claims_and_nobody_else(site):
    for number in range(FREE_TRIES + 2):
        assert site.log_in("127.0.0.5", "wrong guess", X_Forwarded_For=f"9.9.9.{number}").status == 401
    started = time.monotonic()
    site.log_in("127.0.0.5", "wrong guess", X_Forwarded_For="9.9.9.99")
    guesser_s = time.monotonic() - started
    assert guesser_s >= compute_wait_s(FREE_TRIES + 2), "claims of other addresses escape the brake"
    cookie = site.log_in("127.0.0.6")
    assert cookie.status == 200


def test_an_event_stream_flows_through_the_proxy_before_it_ends(site):
    cookie = cookie_of(site.log_in("127.0.0.2"))
    connection = site.connect("127.0.0.2")
    try:
        connection.request("GET", "/api/episodes/unfinished/stream", headers={"Cookie": cookie})
        response = connection.getresponse()
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.readline().startswith((b"event:", b"id:", b"retry:", b":"))
    finally:
        connection.close()
