"""`tasks make` on a pool of agents, as a person types it: the estimate, the sentences, and a kill in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from tests.trainer.support.experts import AUTHOR, Script, build_experts, serve_script

pytestmark = pytest.mark.slow


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def home(script, tmp_path) -> Iterator[Path]:
    """A data folder with the pool of experts."""
    folder = tmp_path / "home"
    with serve_script(script) as url:
        store = open_store(find_home(str(folder)))
        store.pools.save(build_experts(url))
        store.close()
        yield folder


def start(home: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "trainer", "tasks", "make", "--pool", "experts", "--home", str(home), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(home: Path, *options: str) -> tuple[int | None, str, str]:
    process = start(home, *options)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_without_an_author_one_sentence_names_the_agents(home, script):
    code, out, err = run(home)
    assert (code, out, script.calls) == (2, "", []) and err.count("\n") == 1
    assert "--author with one of editor, law1" in err


def test_a_dry_run_says_what_it_takes_and_asks_nobody(home, script):
    code, out, _ = run(home, "--author", AUTHOR, "--dry-run")
    assert code == 0 and out.startswith("About 1,0") and not script.calls


def test_a_second_call_after_a_kill_asks_no_answered_question_again(home, script):
    killed: list[subprocess.Popen[str]] = []

    def kill(model: str, text: str) -> None:
        if killed and len(script.calls) == 40:
            os.kill(killed[0].pid, signal.SIGKILL)

    script.before = kill
    killed.append(start(home, "--author", AUTHOR, "--count", "20"))
    assert killed[0].wait(timeout=120) == -signal.SIGKILL and not (home / "tasks" / "experts.jsonl").is_file()
    journal = home / "tasks" / "experts.questions"
    records = [json.loads(line) for line in journal.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    answered = {(row["worker"], row["key"]) for row in records if row["kind"] == "reply"}
    assert len(answered) > 10
    script.calls.clear()
    code, out, err = run(home, "--author", AUTHOR, "--count", "20")
    assert code == 0 and "20 questions of agents kept" in out and "About" in err
    again = {
        (model, key)
        for model, key in answered
        for called, text in script.calls
        if called == model and key in text.casefold()
    }
    assert not again
    lines = [json.loads(line) for line in (home / "tasks" / "experts.jsonl").read_text().splitlines()]
    assert len(lines) == 20 and {line["checked"] for line in lines} == {"agreement of 3"}


def test_progress_goes_to_stderr_and_json_stays_clean(home):
    code, out, err = run(home, "--author", AUTHOR, "--count", "8", "--json")
    assert code == 0 and json.loads(out)["made"] == 8
    lines = err.splitlines()
    assert lines[0].startswith("About ") and lines[-1].startswith("8 of 8 kept: ") and "\x1b" not in err


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(home, script):
    started: list[subprocess.Popen[str]] = []

    def interrupt(model: str, text: str) -> None:
        if len(script.calls) == 40:
            os.kill(started[0].pid, signal.SIGINT)

    script.before = interrupt
    started.append(start(home, "--author", AUTHOR, "--count", "20", "--json"))
    out, err = started[0].communicate(timeout=120)
    kept = json.loads(out)["made"]
    assert started[0].returncode == 130 and 0 < kept < 20, err
    assert len((home / "tasks" / "experts.jsonl").read_text().splitlines()) == kept
    assert "Stopping: no new call is made" in err and "the same command goes on" in err and "Traceback" not in err
    before = {(model, text) for model, text in script.calls if model != AUTHOR}
    script.calls.clear()
    code, out, _ = run(home, "--author", AUTHOR, "--count", "20", "--json")
    assert code == 0 and json.loads(out)["made"] == 20
    assert not before & set(script.calls), "nothing is paid twice"


def test_a_second_ctrl_c_ends_at_once(home, script):
    started: list[subprocess.Popen[str]] = []
    answered = threading.Event()

    def interrupt(model: str, text: str) -> None:
        if len(script.calls) == 10:
            os.kill(started[0].pid, signal.SIGINT)
        if len(script.calls) >= 10:
            answered.wait(60)

    script.before = interrupt
    started.append(start(home, "--author", AUTHOR, "--count", "20"))
    assert started[0].stderr is not None
    for line in started[0].stderr:
        if line.startswith("Stopping"):
            break
    os.kill(started[0].pid, signal.SIGINT)
    _, err = started[0].communicate(timeout=30)
    answered.set()
    assert started[0].returncode == 130 and "Traceback" not in err
