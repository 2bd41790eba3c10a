"""Data sets of tool use: each format ends as a pool, tasks, and a run of the reference plan whose graph stands."""

from __future__ import annotations

import asyncio
import json

import pytest

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.baselines.oracle import OraclePolicy
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.pool import check_pool
from tests.trainer.support.tool_use_files import (
    BFCL_ANSWER,
    BFCL_QUESTION,
    CHAT,
    HERMES,
    OPENAI,
    SHAREGPT,
    STOCK,
    TOOL_FILES,
    TOOLBENCH,
    XLAM,
    openai_call,
    write_lines,
)
from trainer.errors import UnusableTasks
from trainer.evaluation.grading import grade_answer
from trainer.tasks.practice.stored import list_own_tasks
from trainer.tasks.registry import open_source
from trainer.tasks.sources.files.reader import ReadOptions
from trainer.tasks.task import Task
from trainer.tasks.tool_use.places import open_tool_data, read_tool_bytes
from trainer.tasks.tool_use.recorded_pool import RecordedPool, keep_recorded_pool, make_recorded_pool

OPTIONS = ReadOptions()


@pytest.fixture(autouse=True)
def _own_home(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_HOME", str(store.home.root))


@pytest.fixture(autouse=True)
def home(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_HOME", str(store.home.root))


def make(content: bytes, name: str = "shop") -> RecordedPool:
    data = read_tool_bytes(content, "the file shop.jsonl", OPTIONS)
    assert data is not None, "this is a data set of tool use"
    return make_recorded_pool(data, name)


def take(content: bytes) -> Task:
    (line,) = make(content).read.lines
    assert line.task is not None, line.problems
    return line.task


def list_problems(*records: object) -> dict[int, str]:
    return {line.number: line.problems[0] for line in make(write_lines(*records)).read.lines if line.problems}


async def run_oracle(recorded: RecordedPool, task: Task):
    assert task.oracle_turn is not None
    async with live_pool(recorded.pool) as live:
        episode = await run_episode(EpisodeSpec(task.query), OraclePolicy(task.oracle_turn), live)
        return episode, await grade_answer(task, episode.answer, live)


@pytest.mark.parametrize("name", TOOL_FILES)
def test_a_file_of_each_format_becomes_a_pool_whose_plan_runs(store: Store, name: str):
    file = TOOL_FILES[name]
    recorded = make(file.content)
    assert file.form in recorded.read.form
    assert keep_recorded_pool(store, recorded) == 1
    check_pool(store.pools.latest("shop").pool)
    (task,) = list_own_tasks("shop")
    episode, grade = asyncio.run(run_oracle(recorded, task))
    assert grade.correct, (episode.answer, task.expected)
    assert all(run.observation and run.observation.ok for run in episode.steps.values())
    steps = [(step.worker, dict(step.arguments), list(step.access)) for step in task.oracle_turn.steps]
    assert steps == list(file.steps)
    expected = list(task.expected) if isinstance(task.expected, tuple) else task.expected
    assert expected == file.answer


def test_a_second_answer_file_is_joined_by_id(tmp_path):
    (tmp_path / "questions.json").write_bytes(write_lines(BFCL_QUESTION))
    (tmp_path / "answers.json").write_bytes(write_lines(BFCL_ANSWER))
    data = open_tool_data(str(tmp_path / "questions.json"), OPTIONS, [str(tmp_path / "answers.json")])
    assert data is not None and len(data.conversations) == 1 and not data.problems
    (tmp_path / "plain.csv").write_text("question,answer\na,1\n", encoding="utf-8")
    with pytest.raises(UnusableTasks, match="--answers says nothing"):
        open_tool_data(str(tmp_path / "plain.csv"), OPTIONS, [str(tmp_path / "answers.json")])


def test_every_way_that_a_suite_accepts_is_right():
    recorded = make(write_lines(BFCL_QUESTION, BFCL_ANSWER))
    (line,) = recorded.read.lines
    worker = recorded.pool.workers[0].name
    plan = {
        "steps": [{"worker": worker, "arguments": {"item": item}, "access": []} for item in ("Green  tea", "oil")],
        "answer": "$1 and $2",
    }
    other = make_task_with(line.raw, plan)
    assert asyncio.run(run_oracle(recorded, other))[1].correct
    plan["steps"][0]["arguments"]["item"] = "coffee"
    assert not asyncio.run(run_oracle(recorded, make_task_with(line.raw, plan)))[1].correct


def make_task_with(raw: str, plan: dict) -> Task:
    from trainer.tasks.sources.jsonl import TaskLine, make_task

    return make_task(TaskLine.model_validate({**json.loads(raw), "plan": plan}), "shop", 0)


def test_a_record_for_every_step_is_read_as_the_whole_conversation():
    """ToolBench repeats a conversation up to each of its steps; the whole one has the outputs."""
    turns = TOOLBENCH["conversations"]
    steps = [{"id": f"Step {count}", "conversations": turns[:count]} for count in (3, 5)]
    recorded = make(write_lines(*steps, SHAREGPT))
    begun, whole, other = recorded.read.lines
    assert begun.problems == ("it is the beginning of line 2, which is read",)
    assert whole.task is not None and whole.task.expected == 12
    assert "the query is the same" in other.problems[0], "another conversation about the same is no beginning of it"


def test_a_beginning_that_teaches_a_turn_of_its_own_stays():
    """Some data sets have a record for each turn to be learnt, with weight 0 for those before."""
    end = {"role": "assistant", "content": "12 packets."}
    whole = {"messages": [*CHAT, {**end, "weight": 0}, {"role": "user", "content": "And oil?"}, end], "tools": [STOCK]}
    data = read_tool_bytes(write_lines({"messages": [*CHAT, end], "tools": [STOCK]}, whole), "the file", OPTIONS)
    assert data is not None and len(data.conversations) == 2 and not data.problems


def test_problems_are_said_by_line_in_plain_sentences():
    no_json = {"conversations": [{"from": "human", "value": "a"}, {"from": "function_call", "value": "get_stock(tea)"}]}
    stray = {"conversations": [{"from": "human", "value": "b"}, {"from": "observation", "value": "12"}]}
    odd = {"messages": [{"role": "narrator", "content": "c"}]}
    picture = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}
    talk = {"messages": [{"role": "user", "content": "d"}, {"role": "assistant", "content": "e"}], "tools": [STOCK]}
    misfit = {**XLAM, "query": "f", "answers": [{"name": "get_stock", "arguments": {}}]}
    later = {**BFCL_QUESTION, "question": [[{"role": "user", "content": "g"}]] * 2, "ground_truth": [["cd('x')"]]}
    assert list_problems(SHAREGPT, no_json, stray, odd, picture, talk, misfit, later, {"a": 1}, SHAREGPT) == {
        2: "message 2: the call 'get_stock(tea)' is no JSON",
        3: "message 2: an output of a tool stands here, and no call before it waits for one",
        4: "message 1: the role 'narrator' is not known here; use system, user, assistant or tool",
        5: "message 1: a part of it is no text (image_url)",
        6: "no tool is called in it, so it makes no task",
        7: "the call of get_stock does not fit its tool: item: this is missing",
        8: "question: there must be as many turns as in ground_truth",
        9: "this is of none of the formats BFCL, When2Call, xLAM, preferences, Glaive, Gemini, ReAct, Hermes, "
        "ShareGPT, OpenAI messages, Alpaca: its fields are a",
        10: "the query is the same as on line 1; remove one of them",
    }


def test_later_requests_of_a_conversation_are_tasks_with_what_was_said_before():
    more = [
        {"from": "human", "value": "And oil?"},
        {"from": "function_call", "value": '{"name": "get_stock", "arguments": {"item": "oil"}}'},
        {"from": "observation", "value": "7"},
        {"from": "gpt", "value": "7 packets."},
        {"from": "human", "value": "Thanks."},
        {"from": "gpt", "value": "You are welcome."},
    ]
    recorded = make(write_lines({**SHAREGPT, "conversations": [*SHAREGPT["conversations"], *more]}))
    first, second = [line.task for line in recorded.read.lines]
    assert first is not None and first.query == "How much tea?"
    assert second is not None
    assert second.query == "Conversation so far:\n[user] How much tea?\n[assistant] 12 packets.\n\nNow:\nAnd oil?"
    for task, item, answer in ((first, "tea", 12), (second, "oil", 7)):
        episode, grade = asyncio.run(run_oracle(recorded, task))
        assert grade.correct and episode.answer == answer
        assert [step.arguments for step in task.oracle_turn.steps] == [{"item": item}]


def test_a_later_request_that_makes_no_task_loses_no_other():
    odd = [{"from": "human", "value": "And oil?"}, {"from": "function_call", "value": '{"name": "get_stock"}'}]
    lines = make(write_lines({**SHAREGPT, "conversations": [*SHAREGPT["conversations"], *odd]})).read.lines
    assert [bool(line.task) for line in lines] == [True, False] and "item: this is missing" in lines[1].problems[0]


def test_a_suite_without_its_answers_says_which_file_is_missing():
    assert "--answers FILE" in list_problems(BFCL_QUESTION)[1]
    assert "give the file of questions" in list_problems(BFCL_ANSWER)[1]
    turns = {"id": "multi_0", "question": [[{"role": "user", "content": "a"}]], "involved_classes": ["Files"]}
    assert "--answers FILE" in list_problems(turns)[1]


def test_a_tool_without_recorded_answers_returns_the_call_with_a_label():
    recorded = make(write_lines(XLAM))
    assert recorded.notes == (
        '1 call without a recorded answer: the tool returns the call itself, labelled "recorded call"',
    )
    assert recorded.pool.workers[0].config["echoes"] is True
    assert make(write_lines(SHAREGPT)).pool.workers[0].config["echoes"] is False


def test_what_was_changed_in_a_schema_stands_on_the_card():
    odd = {**STOCK, "parameters": {"type": "object", "properties": {"item": {"type": "string", "pattern": "(?<"}}}}
    (worker,) = make(write_lines({**SHAREGPT, "tools": json.dumps([odd])})).pool.workers
    assert any("pattern" in note for note in worker.config["mended"])
    assert "mended" not in make(write_lines(SHAREGPT)).pool.workers[0].config


def test_tools_of_one_name_with_other_arguments_are_two_workers():
    other = {**SHAREGPT, "tools": json.dumps([{**STOCK, "parameters": {"type": "object", "properties": {"item": {}}}}])}
    other["conversations"] = [{"from": "human", "value": "How much?"}, *SHAREGPT["conversations"][2:]]
    recorded = make(write_lines(SHAREGPT, other, SHAREGPT))
    assert [worker.name for worker in recorded.pool.workers] == ["get_stock", "get_stock_2"]
    assert recorded.read.lines[1].task.workers == ("get_stock_2",)


def test_of_two_answers_to_one_call_the_first_is_replayed_and_that_is_said():
    second = {**SHAREGPT, "conversations": [{"from": "human", "value": "Tea?"}, *SHAREGPT["conversations"][2:]]}
    second["conversations"][2] = {"from": "observation", "value": "9"}
    recorded = make(write_lines(SHAREGPT, second))
    assert [line.task.expected for line in recorded.read.lines] == [12, 12]
    assert recorded.notes == ("1 call with another answer than before: the first answer is replayed",)


def test_an_undeclared_tool_is_made_of_its_calls():
    bare = {key: value for key, value in SHAREGPT.items() if key != "tools"}
    (worker,) = make(write_lines(bare)).pool.workers
    assert worker.config["parameters"]["properties"] == {"item": {}} and "does not describe" in worker.description


def test_a_call_that_follows_another_without_its_output_comes_after_it():
    chat = json.loads(json.dumps(OPENAI))
    chat["messages"][4]["tool_calls"] = [openai_call(2, "get_price", sku="X-1")]
    (_, second) = take(write_lines(chat)).oracle_turn.steps
    assert (second.arguments, second.access) == ({"sku": "X-1"}, (1,))


def test_dollars_of_a_data_set_quote_no_step():
    chat = json.loads(json.dumps(SHAREGPT))
    chat["conversations"][2]["value"] = '{"name": "get_stock", "arguments": {"item": "$1 tea"}}'
    recorded = make(write_lines(chat))
    (line,) = recorded.read.lines
    episode, grade = asyncio.run(run_oracle(recorded, line.task))
    assert grade.correct and episode.steps[1].arguments == {"item": "$1 tea"}


def test_what_looks_like_a_key_is_not_taken_into_a_pool():
    chat = json.loads(json.dumps(SHAREGPT))
    chat["conversations"][3]["value"] = "sk-" + "a1B2" * 12
    assert "what looks like a key" in list_problems(chat)[1]


def test_questions_and_plain_chats_are_no_data_sets_of_tool_use():
    plain = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    for record in (
        {"query": "a", "answer": 1},
        {"question": "a", "answer": "b"},
        plain,
        {"instruction": "a", "output": "b"},
        {"contents": [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [{"text": "b"}]}]},
    ):
        assert read_tool_bytes(write_lines(record), "this", OPTIONS) is None


def test_a_recipe_that_names_the_file_itself_is_told_to_make_a_pool(tmp_path):
    (tmp_path / "calls.jsonl").write_bytes(write_lines(XLAM))
    with pytest.raises(UnusableTasks, match=r"holds calls of tools \(xLAM\): make it a pool"):
        open_source(f"file:{tmp_path / 'calls.jsonl'}")


def test_a_pool_of_this_name_is_never_overwritten(store: Store):
    recorded = make(write_lines(HERMES))
    keep_recorded_pool(store, recorded)
    with pytest.raises(InvalidPool, match="already"):
        keep_recorded_pool(store, recorded)
    with pytest.raises(InvalidPool):
        make(write_lines(HERMES), "No name!")
