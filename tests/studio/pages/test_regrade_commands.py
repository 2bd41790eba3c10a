"""Grading an evaluation again from the Compare page: what is shown, who may keep it, and what is stored then."""

from __future__ import annotations

import json

import pytest

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from studio.access.roles import Rights, UserRole, current_rights
from studio.pages.compare.commands import CompareCommands
from trainer.job_process import run_job
from trainer.recipe import parse_recipe
from trainer.results.rows import read_results
from trainer.tasks.sources.jsonl import load_tasks

pytestmark = pytest.mark.medium
COUNT = 4
EDIT = {"query": "What is 2 plus 1?", "answer": "77", "verifier": "number"}


@pytest.fixture
def evaluated(runtime, tmp_path):
    """A finished evaluation of sums, and what sends commands about it."""
    lines = [
        {
            "query": f"What is {number} plus 1?",
            "answer": number + 1,
            "split": "test",
            "plan": {"steps": [{"worker": "calculator", "instruction": f"{number} + 1"}], "answer": "$1"},
        }
        for number in range(COUNT)
    ]
    file = tmp_path / "sums.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    calculator = WorkerSpec(name="calculator", kind="calculator", description="arithmetic")
    runtime.store.pools.save(Pool(name="sums", workers=(calculator,)))
    section = {"orchestrators": ["oracle", "random_plan"], "source": f"file:{file}", "count": COUNT}
    recipe = parse_recipe(json.dumps({"name": "m", "pool": "sums", "evaluate": section}))
    key = runtime.jobs.submit(recipe, here=True).id
    run_job(key, runtime.store, runtime.jobs)
    commands = CompareCommands(runtime)
    return key, lambda action, **fields: commands.run(action, {"job": key, **fields}), file


def test_an_edited_answer_changes_sides_and_is_kept_only_on_command(runtime, evaluated):
    key, send, _ = evaluated
    tasks = send("regrade_tasks", search="2 plus")["tasks"]
    (row,) = tasks["rows"]
    assert (row["answer"], row["episodes"], row["fields"]["verifier"]["kind"]) == ("3", 2, "number")
    shown = send("regrade", edits=[EDIT])["regrading"]
    wrong = [line for line in shown["changed"] if line["orchestrator"] == "oracle"]
    assert [(line["query"], line["expected"], line["correct"]) for line in wrong] == [(EDIT["query"], "77", False)]
    oracle = next(line for line in shown["ranking"] if line["orchestrator"] == "oracle")
    assert (oracle["before"], oracle["after"]) == (1, 1 - 1 / COUNT)
    folder = runtime.jobs.folder(key)
    assert all(line.correct for line in read_results(folder.results) if line.orchestrator == "oracle"), "only shown"

    stale = send("keep_regrading", edits=[EDIT], digest="0" * 16)
    assert not stale["ok"] and "Grade again" in stale["problems"][0][1]
    assert send("keep_regrading", edits=[EDIT], digest=shown["digest"])["ok"]
    stored = [line for line in read_results(folder.results) if line.orchestrator == "oracle" and not line.correct]
    assert [line.query for line in stored] == [EDIT["query"]]
    assert runtime.store.traces.row(stored[0].episode).correct is False
    assert [task.query for task in load_tasks(folder.path / "edits-1.jsonl").tasks] == [EDIT["query"]]


def test_what_is_wrong_with_an_edit_or_a_source_is_a_sentence(evaluated):
    _, send, file = evaluated
    reply = send("regrade", edits=[{**EDIT, "answer": "many"}])
    assert reply["problems"][0][0] == "edits" and "is no number" in reply["problems"][0][1]
    assert "are generated, and would grade as before" in send("regrade_tasks", source="ledger")["tasks"]["problem"]
    assert "cannot be read" in send("regrade_tasks", source=f"file:{file}x")["tasks"]["problem"]
    assert not send("regrade", job="nobody")["ok"]


def test_a_viewer_looks_by_the_tasks_of_now_and_edits_nothing(evaluated):
    _, send, file = evaluated
    token = current_rights.set(Rights(UserRole.VIEWER))
    try:
        assert send("regrade")["ok"]
        for fields in ({"edits": [EDIT]}, {"ask_judges": True}, {"source": f"file:{file}x"}):
            reply = send("regrade", **fields)
            assert not reply["ok"] and "owners may" in reply["problems"][0][1]
    finally:
        current_rights.reset(token)
