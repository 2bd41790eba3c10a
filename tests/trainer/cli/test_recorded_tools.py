"""The commands `tasks check` and `tasks add` on data sets of tool use."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tests.trainer.support.tool_use_files import BFCL_ANSWER, BFCL_QUESTION, SHAREGPT, write_lines
from trainer.__main__ import app
from trainer.errors import UnusableTasks

RUNNER = CliRunner()


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files of conversations, of a suite's questions, and of its answers."""
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    contents = {
        "calls": write_lines(SHAREGPT, {"messages": [{"role": "narrator", "content": "c"}]}),
        "questions": write_lines(BFCL_QUESTION),
        "answers": write_lines(BFCL_ANSWER),
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.jsonl").write_bytes(content)
    return {name: str(tmp_path / f"{name}.jsonl") for name in contents}


def test_a_file_is_checked_with_every_problem_by_line(files):
    checked = RUNNER.invoke(app, ["tasks", "check", files["calls"]])
    assert checked.exit_code == 0
    assert "Read as ShareGPT in JSONL: 1 conversation with 1 tool" in checked.stdout
    assert "line 2: message 1: the role 'narrator' is not known here" in checked.stdout
    assert "podium tasks add --pool NEW" in checked.stdout


def test_a_suite_is_checked_with_its_answers(files):
    alone = RUNNER.invoke(app, ["tasks", "check", files["questions"]])
    assert alone.exit_code == 2 and "(--answers FILE)" in " ".join(alone.stdout.split())
    both = RUNNER.invoke(app, ["tasks", "check", files["questions"], "--answers", files["answers"]])
    assert both.exit_code == 0 and 'labelled "recorded call"' in both.stdout


def test_a_file_makes_a_pool_that_an_oracle_solves(files, tmp_path):
    home = ["--home", str(tmp_path / "home")]
    made = RUNNER.invoke(app, ["tasks", "add", "--file", files["calls"], "--pool", "calls", *home])
    assert made.exit_code == 0 and "on the new pool calls" in made.stdout
    assert "line 2: message 1" in made.stderr
    source = ["--pool", "calls", "--source", "practice:calls", "--split", "validation"]
    graded = RUNNER.invoke(app, ["evaluate", "--orchestrator", "oracle", *source, "--json", *home])
    assert graded.exit_code == 0 and '"mean": 1.0' in graded.stdout
    again = RUNNER.invoke(app, ["tasks", "add", "--file", files["calls"], "--pool", "calls", *home])
    assert isinstance(again.exception, UnusableTasks) and "give --pool a new name" in str(again.exception)
