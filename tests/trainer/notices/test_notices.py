"""Notices against a server on loopback: what is sent, what is left out, and what a server that fails comes to."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from pool_registry.errors import StorageError
from pool_registry.storage.data_folder import find_home
from studio.__main__ import app
from trainer.job_process import run_job
from trainer.notices import send
from trainer.notices.send import Notice, notify
from trainer.notices.settings import NoticeSettings, read_settings, write_settings
from trainer.recipe import Recipe


@pytest.fixture
def hook(monkeypatch):
    """A server that keeps what it gets and answers with `statuses`, the last one again and again."""
    monkeypatch.setattr(send, "WAITS_S", (0.0, 0.01, 0.01))
    taken = SimpleNamespace(documents=[], headers=[], statuses=[204], url="")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.documents.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            taken.headers.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(taken.statuses.pop(0) if len(taken.statuses) > 1 else taken.statuses[0])
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    taken.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    yield taken
    server.shutdown()
    server.server_close()


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    return find_home(str(tmp_path))


NOTICE = Notice(kind="gate_refused", title="A candidate is refused", pool="clinic", queries=["Where is Dr Lund?"])


def test_without_a_webhook_nothing_is_sent(home, hook):
    notify(home, NOTICE)
    assert not hook.documents


def test_a_notice_holds_texts_of_queries_only_where_that_is_allowed(home, hook):
    write_settings(home, NoticeSettings(webhook=hook.url))
    notify(home, NOTICE)
    assert "Lund" not in json.dumps(hook.documents) and hook.documents[0]["title"] == "A candidate is refused"
    write_settings(home, NoticeSettings(webhook=hook.url, queries=True))
    notify(home, NOTICE)
    assert hook.documents[1]["queries"] == ["Where is Dr Lund?"]


def test_only_the_chosen_kinds_are_sent(home, hook):
    write_settings(home, NoticeSettings(webhook=hook.url, kinds=("job_ended",)))
    notify(home, NOTICE)
    assert not hook.documents


def test_address_and_key_may_be_references_and_stand_in_no_file_or_text(home, hook, monkeypatch, caplog):
    monkeypatch.setenv("HOOK_URL", hook.url)
    monkeypatch.setenv("HOOK_KEY", "Bearer of-a-long-secret")
    write_settings(home, NoticeSettings(webhook="env:HOOK_URL", authorization="env:HOOK_KEY"))
    notify(home, Notice(kind="job_ended", title="done", text="it used Bearer of-a-long-secret"))
    assert hook.headers[0]["authorization"] == "Bearer of-a-long-secret"
    assert "of-a-long-secret" not in json.dumps(hook.documents) + (home.root / "notices.json").read_text()
    monkeypatch.delenv("HOOK_KEY")
    notify(home, NOTICE)
    assert len(hook.documents) == 1 and "was not sent" in caplog.text and "HOOK_KEY" in caplog.text


def test_a_server_that_fails_is_tried_three_times_and_one_that_refuses_once(home, hook, caplog):
    write_settings(home, NoticeSettings(webhook=hook.url))
    hook.statuses[:] = [503, 429, 200]
    notify(home, NOTICE)
    assert len(hook.documents) == 3 and not caplog.text
    hook.statuses[:] = [500]
    notify(home, NOTICE)
    assert len(hook.documents) == 6 and "was not sent" in caplog.text
    hook.statuses[:] = [404]
    notify(home, NOTICE)
    assert len(hook.documents) == 7


def test_nobody_there_and_a_damaged_setting_end_nothing(home, monkeypatch, caplog):
    monkeypatch.setattr(send, "WAITS_S", (0.0,))
    write_settings(home, NoticeSettings(webhook="http://127.0.0.1:9/"))
    notify(home, NOTICE)
    (home.root / "notices.json").write_text('{"webhook": 3}')
    notify(home, NOTICE)
    assert caplog.text.count("was not sent") == 2
    with pytest.raises(StorageError, match="correct or delete it"):
        read_settings(home)


def test_a_setting_that_cannot_be_read_ends_nothing(home, caplog):
    (home.root / "notices.json").mkdir()
    notify(home, NOTICE)
    assert "was not sent" in caplog.text
    with pytest.raises(StorageError, match=r"notices\.json cannot be read"):
        read_settings(home)


@pytest.mark.parametrize("url", ["ftp://host/x", "hook", "http://user:word@host/"])
def test_what_is_no_address_is_refused_when_it_is_set(url):
    with pytest.raises(ValueError, match="webhook"):
        NoticeSettings(webhook=url)


@pytest.mark.medium
def test_a_job_that_ends_gives_notice(store, jobs, hook, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(store.home.root))
    write_settings(store.home, NoticeSettings(webhook=hook.url))
    job = jobs.submit(Recipe.model_validate({"pool": "nowhere", "evaluate": {"orchestrators": ["oracle"]}}), here=True)
    assert not run_job(job.id, store, jobs)
    (notice,) = hook.documents
    assert (notice["kind"], notice["job"], notice["title"]) == ("job_ended", job.id, f"Job {job.id} is failed")
    assert "nowhere" in notice["text"]


def test_the_command_sets_shows_and_tries_it(home, hook):
    def run(*arguments: str):
        return CliRunner().invoke(app, ["notices", *arguments], catch_exceptions=False)

    assert "No notice is sent" in run().stdout
    done = run("--webhook", hook.url, "--kind", "job_ended", "--test")
    assert done.exit_code == 0 and "The notice was taken." in done.stdout and len(hook.documents) == 1
    assert read_settings(home).kinds == ("job_ended",)
    assert "No notice is sent" in run("--off").stdout and read_settings(home) == NoticeSettings()
    assert run("--test").exit_code == 2
