"""Plans that wait, from a shell: `podium run --mode review` and `podium approvals`."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from studio.__main__ import app
from trainer.tasks import find_task

TASK = find_task("forge", 3, "test", 2)
pytestmark = pytest.mark.medium
runner = CliRunner()


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("home"))


@pytest.fixture(autouse=True)
def keep_home(home, monkeypatch) -> None:
    monkeypatch.setenv("PODIUM_HOME", home)


def invoke(home: str, *arguments: str):
    return runner.invoke(app, [*arguments, "--home", home])


@pytest.fixture
def held(home) -> str:
    result = invoke(home, "run", TASK.query, "--orchestrator", "oracle", "--mode", "review", "--json")
    assert result.exit_code == 3, result.output
    return json.loads(result.stdout)["id"]


def test_a_reviewed_run_waits_with_a_code_of_its_own_and_is_listed(home, held):
    assert held in invoke(home, "approvals").stdout
    shown = invoke(home, "approvals", held).stdout
    assert "every plan waits for a person" in shown and TASK.oracle_turn.steps[0].worker in shown


def test_approving_prints_the_answer_and_a_second_time_says_who_was_first(home, held):
    result = invoke(home, "approvals", held, "--approve", "--note", "fine", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0 and document["correct"] is True
    assert document["audit"][-1]["text"] == "fine" and document["audit"][-1]["by"]
    again = invoke(home, "approvals", held, "--approve")
    assert "has approved this plan already" in str(again.exception)


def test_an_account_without_a_name_decides(home, held, monkeypatch):
    monkeypatch.setattr("getpass.getuser", Mock(side_effect=KeyError("uid not found: 12345")))
    document = json.loads(invoke(home, "approvals", held, "--approve", "--json").stdout)
    assert document["audit"][-1]["by"] == "a person at the command line"


def test_the_plan_that_a_person_is_asked_about_stands_beside_the_json(home, monkeypatch):
    monkeypatch.setattr("studio.cli.runs.approvals.sys", Mock(stdin=Mock(isatty=lambda: True)))
    arguments = ("run", TASK.query, "--orchestrator", "oracle", "--mode", "review", "--json", "--home", home)
    result = runner.invoke(app, arguments, input="y\n")
    typed, _, document = result.stdout.partition("\n")  # the runner echoes here what is typed
    assert typed.endswith("y") and json.loads(document)["correct"] is True
    assert "every plan waits for a person" in result.stderr


def test_an_edit_changes_one_step_and_runs(home, held):
    edit = {"edit": "change", "step": 1, "arguments": {"code": "print(7)"}}
    result = invoke(home, "approvals", held, "--edit", json.dumps(edit), "--json")
    audit = json.loads(result.stdout)["audit"]
    assert audit[-1]["kind"] == "edited" and audit[-1]["text"] == "step 1 changed"


def test_a_rejected_run_ends_without_an_answer(home, held):
    result = invoke(home, "approvals", held, "--reject")
    assert result.exit_code == 1 and "rejected" in result.stderr
