"""Rows of BFCL in which nothing fits, and rows of several turns, become tasks; what cannot be had is said by line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.baselines.oracle import OraclePolicy
from orchestrator.reader.refusal import REFUSAL
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from tests.trainer.support.tool_use_files import BFCL_ANSWER, BFCL_QUESTION, write_lines
from trainer.errors import UnusableTasks
from trainer.evaluation.grading import grade_answer
from trainer.tasks.practice.stored import open_practice
from trainer.tasks.sources.files.reader import ReadOptions
from trainer.tasks.sources.jsonl import TaskLine, make_task
from trainer.tasks.sources.source import TaskList
from trainer.tasks.task import Task, offer_workers
from trainer.tasks.tool_use.multi_turn import ASKS, MORE_FUNCTIONS, read_multi_turn
from trainer.tasks.tool_use.places import open_tool_data, read_tool_bytes
from trainer.tasks.tool_use.recorded_pool import RecordedPool, keep_recorded_pool, make_recorded_pool


def say(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def describe(name: str, *arguments: str) -> dict[str, Any]:
    properties = {argument: {"type": "string"} for argument in arguments}
    schema = {"type": "dict", "properties": properties, "required": list(arguments)}
    return {"name": name, "description": f"What {name} does.", "parameters": schema}


IRRELEVANT = {
    "id": "irrelevance_0",
    "question": [say("Sing me a song.")],
    "function": [describe("get_weight", "item")],
}
TURNS = {
    "id": "multi_turn_base_0",
    "question": [say("Go to the folder docs and show its files."), say("Sort the file a.txt.")],
    "involved_classes": ["Files"],
}
TRUTH = {"id": TURNS["id"], "ground_truth": [["cd(folder='docs')", "ls(all=True)"], ["sort('a.txt')"]]}
DESCRIPTIONS = [describe("cd", "folder"), describe("sort", "file_name"), describe("rm", "file_name")]


@pytest.fixture(autouse=True)
def _own_home(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_HOME", str(store.home.root))


def make(*records: object) -> RecordedPool:
    data = read_tool_bytes(write_lines(*records), "the file", ReadOptions())
    assert data is not None, "this is a data set of tool use"
    return make_recorded_pool(data, "suite")


def list_tasks(recorded: RecordedPool) -> list[Task]:
    return [line.task for line in recorded.read.lines if line.task is not None]


def run_plan(task: Task, pool: Pool) -> tuple[object, bool]:
    async def run() -> tuple[object, bool]:
        async with live_pool(pool) as live:
            episode = await run_episode(EpisodeSpec(task.query), OraclePolicy(task.oracle_turn), live)
            return episode.answer, (await grade_answer(task, episode.answer, live)).correct

    return asyncio.run(run())


def test_a_question_that_no_function_serves_is_right_as_a_refusal():
    recorded = make(IRRELEVANT, {**BFCL_QUESTION, **BFCL_ANSWER})
    refused, called = list_tasks(recorded)
    assert refused.query == "Sing me a song." and run_plan(refused, recorded.pool) == (REFUSAL, True)
    assert not refused.verifier.accepts("La la la") and refused.verifier.accepts(f"{REFUSAL}: a song")
    assert (refused.offered, called.offered) == (("get_weight",), ("shop_get_stock",)), "those of the own row alone"


def test_of_stored_tasks_a_refusal_is_run_with_the_tools_of_its_row(store: Store):
    recorded = make(IRRELEVANT, {**BFCL_QUESTION, **BFCL_ANSWER})
    keep_recorded_pool(store, recorded)
    source = open_practice("suite")
    (split,) = {task.ref.split for task in list_tasks(recorded) if "song" in task.query}
    (task,) = [task for task in source.tasks(split, 9) if "song" in task.query]
    assert task.pool is not None and [spec.name for spec in task.pool.workers] == ["get_weight"]


def test_without_refusals_tasks_are_run_on_the_whole_pool():
    assert [task.offered for task in list_tasks(make({**BFCL_QUESTION, **BFCL_ANSWER}))] == [()]


def test_each_turn_of_a_row_is_a_task_with_the_conversation_before_it():
    recorded = make(TURNS, TRUTH, *DESCRIPTIONS)
    first, second = list_tasks(recorded)
    steps = [(step.worker, dict(step.arguments), step.access) for step in first.oracle_turn.steps]
    assert steps == [("cd", {"folder": "docs"}, ()), ("ls", {"all": True}, (1,))], "one after the other"
    assert run_plan(first, recorded.pool)[1], "its answer states both calls"
    assert first.expected == ('recorded call cd {"folder": "docs"}', 'recorded call ls {"all": true}')
    assert second.query.startswith("Conversation so far:\n[user] Go to the folder docs")
    assert second.query.endswith("Now:\nSort the file a.txt.")
    assert [dict(step.arguments) for step in second.oracle_turn.steps] == [{"file_name": "a.txt"}]
    described = {spec.name: spec.description for spec in recorded.pool.workers}
    assert described["cd"] == "What cd does." and "does not describe" in described["ls"] and "rm" not in described


def test_answers_and_descriptions_may_be_files_of_a_folder(tmp_path: Path):
    more = tmp_path / "more"
    more.mkdir()
    (tmp_path / "turns.json").write_bytes(write_lines(TURNS))
    (tmp_path / "truth.json").write_bytes(write_lines(TRUTH))
    (more / "files.json").write_bytes(write_lines(*DESCRIPTIONS))
    data = open_tool_data(str(tmp_path / "turns.json"), ReadOptions(), [str(tmp_path / "truth.json"), str(more)])
    assert data is not None and not data.problems and len(list_tasks(make_recorded_pool(data, "suite"))) == 2


def test_what_a_row_of_several_turns_lacks_is_said_by_line():
    lines = make(TURNS, TRUTH).read.lines
    assert "give the descriptions of the functions as well" in lines[0].problems[0], "sort('a.txt') names no argument"
    odd = {**TURNS, **TRUTH, "ground_truth": [["cd(folder=HOME)"], ["ls()"]]}
    assert make(odd, {**BFCL_QUESTION, **BFCL_ANSWER}).read.lines[0].problems == (
        "ground_truth: 'cd(folder=HOME)' is no call with plain values such as grep(file_name='a.txt')",
    )


def test_a_turn_in_which_a_person_must_be_asked_makes_no_task_and_loses_no_other():
    row = {**TURNS, "question": [say("Go somewhere."), say("To docs.")], "ground_truth": [[], ["cd(folder='docs')"]]}
    first, second = make(row).read.lines
    assert first.problems == (ASKS,)
    assert second.task is not None and "[user] Go somewhere." in second.task.query


def test_a_function_that_is_offered_later_is_refused_before_and_called_then():
    row = {
        **TURNS,
        "question": [say("Go to docs."), say("Sort a.txt."), []],
        "missed_function": {"2": ["sort"]},
        "ground_truth": [["cd(folder='docs')"], [], ["sort(file_name='a.txt')"]],
    }
    _, refused, called = list_tasks(make(row))
    assert refused.expected == REFUSAL and refused.offered == ("cd",)
    assert called.query.endswith(f"Now:\n{MORE_FUNCTIONS}") and called.workers == ("sort",)
    assert called.offered == ("cd", "sort")


def test_a_row_in_which_any_call_is_right_makes_no_task():
    row = {**IRRELEVANT, "id": "live_relevance_0-0-0"}
    assert "the suite does not say which" in make(row).read.lines[0].problems[0]


def test_a_source_without_its_pool_takes_no_task_with_workers():
    task = make_task(TaskLine(query="q", answer=1, workers=("a",)), "own", 0)
    with pytest.raises(UnusableTasks, match="practice:POOL"):
        TaskList("file:x", [task])
    offered = offer_workers(task, Pool(name="empty"))
    assert offered.pool is not None and TaskList("practice:empty", [offered]).name


def test_a_refusal_has_no_other_answer():
    with pytest.raises(ValueError, match="leave this out"):
        make_task(TaskLine.model_validate({"query": "q", "answer": 42, "verifier": "refusal"}), "own", 0)


@given(st.lists(st.lists(st.text(max_size=30), max_size=3), min_size=1, max_size=3))
def test_any_calls_are_read_or_refused_with_a_sentence(truth: list[list[str]]):
    row = {**TURNS, "question": [say("a")] * len(truth), "ground_truth": truth}
    try:
        conversation = read_multi_turn(json.loads(json.dumps(row)))
    except ValueError as error:
        assert str(error).startswith(("ground_truth: ", "a call has no name"))
    else:
        assert len(conversation.calls) == sum(map(len, truth))
