"""The command line as scripts and people meet it: its output and exit codes, real ports, bad folders.

Every process takes seconds to import what it needs: what is no matter of processes runs in this one.
"""

from __future__ import annotations

import io
import json
import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing, redirect_stderr, redirect_stdout
from unittest import mock

import pytest

from studio.__main__ import main
from trainer.tasks import find_task

pytestmark = pytest.mark.medium

QUERY = find_task("forge", 1, "test", 3).query


def studio(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "studio", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=300,
    )


def studio_here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The same in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with mock.patch.object(sys, "argv", ["studio", *arguments]), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def one_line(done: subprocess.CompletedProcess[str], said: str) -> None:
    assert done.returncode == 2, done.stderr
    assert said in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.strip().startswith("podium: ")


def test_one_query_headless_prints_its_trace(tmp_path):
    done = studio("run", "--pool", "starter", "--orchestrator", "oracle", QUERY, "--json", "--home", str(tmp_path))
    assert done.returncode == 0, done.stderr
    trace = json.loads(done.stdout)
    assert trace["correct"] is True and trace["outcome"] == "answered"
    assert trace["events"][0]["type"] == "episode_started"
    plain = studio("run", QUERY, "--orchestrator", "oracle", "--home", str(tmp_path))
    assert plain.stdout.strip() == str(trace["answer"]) and "Correct." in plain.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", ""), "empty"),
        (("run", "x" * 100_000, "--orchestrator", "oracle"), "oracle"),
        (("run", "Who are you?", "--orchestrator", "oracle"), "oracle"),
        (("run", QUERY, "--orchestrator", "nope"), "nope"),
        (("run", QUERY, "--pool", "nope"), "nope"),
        (("run", QUERY, "--orchestrator", "smollm2-reader", "--without", "spelling"), "no repair 'spelling'"),
    ],
)
def test_a_query_that_cannot_run_is_one_line(tmp_path, arguments, said):
    one_line(studio_here(*arguments, "--home", str(tmp_path)), said)


def test_a_port_in_use_is_told_before_anything_starts(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = studio("--port", str(port), "--no-browser", "--home", str(tmp_path))
    one_line(done, f"port {port}")
    assert "--port" in done.stderr


def test_an_unusable_data_folder_is_told(tmp_path):
    file = tmp_path / "file"
    file.write_text("I am no folder")
    one_line(studio_here("run", QUERY, "--home", str(file / "home")), "--home")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_read_only_data_folder_is_told(tmp_path):
    tmp_path.chmod(0o500)
    one_line(studio("run", QUERY, "--home", str(tmp_path / "home")), "--home")


def test_a_database_of_a_newer_version_is_left_alone(tmp_path):
    assert studio("run", QUERY, "--orchestrator", "oracle", "--home", str(tmp_path)).returncode == 0
    database = next(tmp_path.glob("*.db"))
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    before = database.read_bytes()
    one_line(studio_here("run", QUERY, "--home", str(tmp_path)), "newer")
    assert database.read_bytes() == before


def test_a_database_that_is_none_is_told_and_kept(tmp_path):
    assert studio("run", QUERY, "--orchestrator", "oracle", "--home", str(tmp_path)).returncode == 0
    database = next(tmp_path.glob("*.db"))
    for extra in tmp_path.glob("*.db-*"):
        extra.unlink()
    database.write_bytes(b"garbage " * 10_000)
    one_line(studio_here("run", QUERY, "--home", str(tmp_path)), str(database.name))
    assert database.read_bytes().startswith(b"garbage")


@pytest.mark.slow
def test_the_doctor_names_what_is_there_and_how_to_get_what_is_not(tmp_path):
    done = studio("doctor", "--quick", "--home", str(tmp_path), PATH="/nonexistent")
    assert done.returncode == 0, done.stderr
    for word in ("python", "gradio", "torch", "gpu", "chromium", "data folder", "sql", "python"):
        assert word in done.stdout
    assert "apt-get install chromium" in done.stdout


def test_help_is_helpful():
    said = " ".join(studio("--help").stdout.split())
    for word in ("--port", "--home", "--no-browser", "run", "doctor", "prepare"):
        assert word in said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--without-worker", "calcualtor"), "has no worker 'calcualtor'; the nearest names are: calculator"),
        (("--max-cost", "-1"), "$-1 is no cap on what a run may cost; give an amount above $0"),
        (("--seen-by", "calculator"), "'calculator' names no readers; write WORKER=READER"),
        (("--seen-by", "calculator=nobody"), "has no worker 'nobody'"),
    ],
)
def test_limits_of_a_run_that_cannot_be_kept_are_one_sentence(tmp_path, options, sentence):
    one_line(studio_here("run", QUERY, "--orchestrator", "oracle", *options, "--home", str(tmp_path)), sentence)


def test_a_run_on_the_command_line_keeps_its_limits(tmp_path):
    limits = ("--without-worker", "calculator", "--max-cost", "0.02", "--seen-by", "2=units", "--seen-by", "sql=")
    command = ("run", QUERY, "--orchestrator", "random_plan:5", *limits, "--home", str(tmp_path))
    done = studio_here(*command, "--json")
    document = json.loads(done.stdout)
    assert document["run_limits"]["without_workers"] == ["calculator"] and document["run_limits"]["max_cost"] == 0.02
    assert document["run_limits"]["seen_by"] == {"$2": ["units"], "sql": []}
    assert document["run_limits"]["broken"] == [], "proven from the trace"
    steps = [step for event in document["events"] if event["type"] == "turn_taken" for step in event["turn"]["steps"]]
    assert steps and "calculator" not in [step["worker"] for step in steps], "the orchestrator is shown the others"
    said = "limits: Without calculator. At most $0.02. The output of step 2 is seen by units alone."
    assert said in studio_here(*command).stderr
