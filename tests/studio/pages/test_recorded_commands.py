"""The Tasks panel's command for data sets of tool use: what was uploaded becomes a pool, tasks and first runs."""

from __future__ import annotations

from base64 import b64encode

import pytest

from studio.pages.train.commands import TrainCommands
from tests.trainer.support.tool_use_files import BFCL_ANSWER, BFCL_QUESTION, OPENAI, TOOL_FILES, write_lines
from trainer.tasks.practice.stored import list_own_tasks


@pytest.fixture
def send(runtime, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(runtime.store.home.root))
    return TrainCommands(runtime).run


def upload(content: bytes, name: str = "Shop calls.jsonl", answers: bytes = b"") -> dict[str, str]:
    return {"name": name, "data": b64encode(content).decode(), "answers": b64encode(answers).decode()}


@pytest.mark.parametrize("name", TOOL_FILES)
def test_a_file_of_each_format_is_previewed_with_a_name_for_its_pool(send, name):
    preview = send("read_tasks", upload(TOOL_FILES[name].content))["preview"]
    assert TOOL_FILES[name].form in preview["form"] and preview["new_pool"] == "shop_calls"
    assert preview["total"] == 1 and not preview["problems"] and not preview["lacking"]


def test_a_pool_is_made_and_its_first_plans_are_run(send, runtime):
    made = send("make_recorded_pool", {**upload(write_lines(OPENAI)), "new_pool": "shop-calls"})
    recorded = made["recorded"]
    assert recorded["sentence"] == "Made the pool shop-calls: 2 tools, 1 task with a reference plan."
    (run,) = recorded["runs"]
    assert run["correct"] and [node["worker"] for node in run["graph"]["nodes"]] == ["get_stock", "get_price"]
    assert len(run["graph"]["edges"]) == 1 and runtime.store.traces.episode(run["episode"]).answer == 3.5
    assert len(list_own_tasks("shop-calls")) == 1
    preview = send("read_tasks", upload(write_lines(OPENAI), "shop-calls.jsonl"))["preview"]
    assert preview["new_pool"] == "shop-calls_2", "the name of another pool is not offered"


def test_questions_and_answers_of_a_suite_are_two_files(send):
    alone = send("read_tasks", upload(write_lines(BFCL_QUESTION)))["preview"]
    assert alone["total"] == 0 and "no ground_truth" in alone["problems"][0]["sentence"]
    files = upload(write_lines(BFCL_QUESTION), answers=write_lines(BFCL_ANSWER))
    preview = send("read_tasks", files)["preview"]
    assert preview["total"] == 1 and "recorded call" in preview["notes"][0]
    assert send("make_recorded_pool", {**files, "new_pool": "suite"})["recorded"]["runs"][0]["correct"]


@pytest.mark.parametrize(
    ("action", "fields", "sentence"),
    [
        ("make_recorded_pool", {"new_pool": "No name!"}, "small letters"),
        ("make_recorded_pool", {"new_pool": "x", **upload(b"question,answer\na,1\n")}, "no calls of tools"),
        ("add_tasks", {"pool": "starter"}, "make a new pool of it"),
        ("read_tasks", upload(b"question,answer\na,1\n"), "choose the own tasks of one"),
    ],
)
def test_what_cannot_be_made_is_refused_in_a_sentence(send, action, fields, sentence):
    reply = send(action, {**upload(write_lines(OPENAI)), **fields})
    assert not reply["ok"] and sentence in reply["problems"][0][1]
