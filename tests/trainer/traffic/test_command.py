"""The command `tasks candidates`: it lists, accepts, strikes, and says what it did not do and why."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from studio.__main__ import app
from trainer.demonstrations.episode_task import Judgement
from trainer.tasks.practice.stored import list_own_tasks
from trainer.tasks.practice.traffic_record import read_traffic

RIGHT = Judgement(is_right=True, by="ann", place="page")


@pytest.fixture
def invoke(store):
    def run(*arguments: str):
        return CliRunner().invoke(app, ["tasks", "candidates", "--pool", "shop", *arguments])

    return run


def test_it_lists_what_waits_and_what_to_look_at(invoke, ask):
    assert "Nothing waits" in invoke().output
    ask("Mail 6 * 7 to ann.lee@example.com", judgement=RIGHT)
    output = invoke().output
    assert "judged right by ann, page" in output and "an e-mail address (ann.lee@example.com)" in output


def test_all_are_accepted_but_those_that_need_a_look(invoke, ask):
    ask("What is 6 * 7?", judgement=RIGHT)
    ask("Mail 6 * 7 to ann.lee@example.com", judgement=RIGHT)
    assert invoke("--accept", "all").exit_code == 0
    assert [task.query for task in list_own_tasks("shop")] == ["What is 6 * 7?"]
    (waiting,) = json.loads(invoke("--json").output)["candidates"]
    assert invoke("--accept", waiting["id"]).exit_code == 1
    assert invoke("--accept", waiting["id"], "--query", "Mail 6 * 7", "--split", "test").exit_code == 0
    assert {task.ref.split for task in list_own_tasks("shop") if task.query == "Mail 6 * 7"} == {"test"}


def test_a_struck_one_is_gone_and_consent_is_said_by_an_option(invoke, ask):
    ask("What is 6 * 7?", judgement=RIGHT, source="served", user="app")
    assert json.loads(invoke("--json").output)["candidates"] == []
    (waiting,) = json.loads(invoke("--clients", "--json").output)["candidates"]
    assert read_traffic("shop").clients
    assert json.loads(invoke("--strike", waiting["id"], "--json").output)["candidates"] == []


def test_striking_what_is_no_candidate_says_so(invoke, ask):
    ask("What is 6 * 7?", judgement=RIGHT)
    refused = invoke("--strike", "nothing")
    assert refused.exit_code == 1 and "nothing: it is no candidate any more" in refused.output


def test_options_that_go_with_one_candidate_are_refused_for_several(invoke):
    result = invoke("--accept", "all", "--answer", "42")
    assert result.exit_code and "go with one --accept" in f"{result.output}{result.exception}"
