"""The form of notices by webhook: what is kept, what is refused at its field, and what a test brings back."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from studio.access.permissions import find_need
from studio.pages.train.commands import TrainCommands
from trainer.notices import send as sending
from trainer.notices.settings import read_settings


@pytest.fixture
def hook(monkeypatch):
    """A server that answers every POST with `status`."""
    monkeypatch.setattr(sending, "WAITS_S", (0.0, 0.01, 0.01))
    state = SimpleNamespace(status=200, headers=[], url="")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            state.headers.append(self.headers.get("authorization"))
            self.send_response(state.status)
            self.send_header("content-length", "5")
            self.end_headers()
            self.wfile.write(b"heard")

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture
def send(runtime):
    commands = TrainCommands(runtime)
    return lambda action, **notices: commands.run(action, {"notices": notices})


def test_a_test_is_sent_by_the_form_as_it_is_and_shows_what_came_back(runtime, send, hook, monkeypatch):
    monkeypatch.setenv("HOOK_KEY", "Bearer of-a-long-secret")
    reply = send("test_notice", webhook=hook.url, authorization="env:HOOK_KEY", kinds=["job_ended"], queries=False)
    assert (reply["status"], reply["reply"]) == (200, "heard")
    assert hook.headers == ["Bearer of-a-long-secret"] and "long-secret" not in str(reply)
    assert not read_settings(runtime.store.home).webhook, "a test saves nothing"
    hook.status = 404
    refused = send("test_notice", webhook=hook.url)
    assert not refused["ok"] and "404" in refused["problems"][0][1]
    assert send("test_notice", webhook="")["problems"][0][0] == "webhook"


def test_what_is_saved_is_shown_again_and_mistakes_stand_at_their_fields(runtime, send):
    url = "https://chat.example.org/hook"
    saved = send("set_notices", webhook=url, authorization="keyring:CHAT", kinds=["gate_refused"], queries=True)
    assert saved["ok"] and "1 of 4" in saved["message"]
    shown = send("notices")["notices"]
    assert (shown["webhook"], shown["kinds"], shown["queries"]) == (url, ["gate_refused"], True)
    assert set(shown["labels"]) == {"job_ended", "cap_reached", "gate_refused", "candidate_ready"}
    wrong = send("set_notices", webhook="http://169.254.169.254/x", authorization="sk-a-key", kinds=["party"])
    assert {where for where, _ in wrong["problems"]} == {"webhook", "authorization", "kinds"}
    assert read_settings(runtime.store.home).webhook == url


def test_only_owners_read_and_set_where_notices_go(runtime):
    commands = TrainCommands(runtime).commands
    assert {find_need(commands[name]).role for name in ("notices", "set_notices", "test_notice")} == {"owner"}
