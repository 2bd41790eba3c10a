"""Demonstrations: recovery is provoked, mistakes are context and never targets, the best of each task is kept."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from itertools import count
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.engine.episode import replay
from orchestrator.engine.events import TaskRef
from orchestrator.plan import Step, Turn
from orchestrator.policies.registry import POLICIES, Policy
from orchestrator.traces.store import open_store
from pool_registry.actions import Action, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.starter import starter_pool
from pool_registry.storage.data_folder import find_home
from tests.orchestrator.support.engine import (  # noqa: F401
    STAGE,
    Events,
    Scripted,
    a_pool,
    engine_kinds,
    step,
    worker,
)
from trainer.demonstrations.collect import DemonstrationCollector, has_recovered
from trainer.demonstrations.fault_injection import Fault, FaultyPool, RecoveringTeacher
from trainer.demonstrations.transcripts import (
    Demonstration,
    DemonstrationMessage,
    load_demonstrations,
    load_starred_demonstrations,
    make_demonstration,
    save_demonstrations,
)
from trainer.errors import TrainingFailed
from trainer.evaluation.trials import run_task
from trainer.learner.token_transcript import ChatTokens
from trainer.recipe_sections import DemonstrationSettings, ModelSettings
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task
from trainer.tasks.verifier import ExactText, MatchesPattern

TASKS = open_source("ledger,forge").tasks("train", 12, levels=(1, 2, 3))
FAULTS = {
    "timeout": {"status": Status.TIMEOUT},
    "failure": {"status": Status.EXEC_ERR},
    "bad_arguments": {"slip": "bad_arguments"},
    "wrong_worker": {"slip": "wrong_worker"},
}


def with_fault(tasks, **fault):
    """Every task once, with this fault at the first worker of its plan: (episodes, demonstrations)."""

    async def all_of_them():
        async with live_pool(starter_pool()) as pool:
            episodes = []
            for task in tasks:
                each = Fault(task.workers[0], **fault)
                teacher = RecoveringTeacher(task.oracle_turn, each, task.workers)
                episodes.append(await run_task(task, teacher, FaultyPool(pool, each), Events()))
            return episodes, [make_demonstration(each, pool, "plan", "query", 6, "teacher") for each in episodes]

    return asyncio.run(all_of_them())


def collected(tasks, pool=None, **wanted):
    """What a collector keeps, the collector, and every episode that it ran."""
    events = Events()

    async def collect(pool):
        collector = DemonstrationCollector(
            DemonstrationSettings(**wanted), ModelSettings(prompt="query"), pool, events, seed=1
        )
        return await collector.collect(tasks), collector

    async def on_starter():
        async with live_pool(starter_pool()) as opened:
            return await collect(opened)

    rows, collector = asyncio.run(collect(pool) if pool is not None else on_starter())
    return rows, collector, [replay(key, each) for key, each in events.of.items()]


def turns_of(row: Demonstration) -> list[DemonstrationMessage]:
    return [said for said in row.messages if said.role == "assistant"]


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_leads_to_a_turn_that_repairs_it(kind):
    episodes, rows = with_fault(TASKS, **FAULTS[kind])
    recovered = [each for each in episodes if has_recovered(each)]
    assert len(recovered) > len(TASKS) / 2
    if kind != "wrong_worker":  # another worker may return something, and its answer is wrong and is not kept
        assert len(recovered) == len(TASKS)
    for episode, row in zip(episodes, rows, strict=True):
        if has_recovered(episode):
            assert episode.graded.correct and len(episode.rounds) == 2 == len(turns_of(row))
            assert turns_of(row)[1].learn


def test_only_what_failed_is_done_again():
    episodes, _ = with_fault(TASKS, status=Status.EXEC_ERR)
    for episode in episodes:
        first, second = (done.steps for done in episode.rounds)
        fine = {run.step.worker for run in first if run.observation.ok}
        failed = [run for run in first if not run.observation.ok]
        assert len(second) == len(failed) and all(run.observation.ok for run in second)
        assert fine or len(failed) == len(first)


@pytest.mark.parametrize("kind", ["bad_arguments", "wrong_worker"])
def test_a_turn_with_a_mistake_of_its_own_is_no_target(kind):
    episodes, rows = with_fault(TASKS, **FAULTS[kind])
    seen = 0
    for episode, row in zip(episodes, rows, strict=True):
        if has_recovered(episode):
            seen += 1
            assert [said.learn for said in turns_of(row)] == [False, True]
    assert seen
    assert not any(said.learn for row in rows for said in row.messages if said.role != "assistant")


@pytest.mark.parametrize("kind", ["timeout", "failure"])
def test_a_turn_whose_worker_failed_is_still_worth_imitating(kind):
    _, rows = with_fault(TASKS, **FAULTS[kind])
    assert all([said.learn for said in turns_of(row)] == [True, True] for row in rows)


def test_only_the_first_call_of_one_worker_is_made_to_fail():
    async def calls():
        pool = FaultyPool(a_pool(), Fault("actor", Status.TIMEOUT))
        names = ("agent", "actor", "actor", "agent")
        arguments = {"agent": {"instruction": "#1"}, "actor": {"text": "#1"}}
        return [(await pool.call(Action(name, arguments[name]))).status for name in names]

    assert asyncio.run(calls()) == [Status.OK, Status.TIMEOUT, Status.OK, Status.OK]


def test_a_repair_quotes_the_new_steps_and_leaves_dollars_alone():
    reference = Turn((step(1), Step(2, "actor", {"text": "#2 costs $$1 and $1"}, (1,))), "$$ $2")
    fault = Fault("actor", Status.EXEC_ERR)

    async def once():
        task = Task(TaskRef("own", 1, "train", 0), "q", ExactText("$ canary<2>"), reference)
        pool = FaultyPool(a_pool(), fault)
        return await run_task(task, RecoveringTeacher(reference, fault, ["actor"]), pool, Events())

    episode = asyncio.run(once())
    repaired = episode.rounds[1].steps
    assert [run.step.id for run in repaired] == [3, 4] and repaired[1].step.access == (3,)
    assert repaired[1].arguments == {"text": "#2 costs $1 and canary<1>"}
    assert episode.answer == "$ canary<2>" and episode.graded.correct


def test_one_trajectory_is_kept_per_solved_task_and_a_recovered_one_is_preferred():
    rows, collector, episodes = collected(TASKS[:6], samples=4, faults=0.5)
    assert (collector.tried, len(episodes), len(rows), collector.correct) == (24, 24, 6, 6)
    assert [row.query for row in rows] == [task.query for task in TASKS[:6]]
    by_id = {episode.id: episode for episode in episodes}
    recoveries = 0
    for row in rows:
        same = [each for each in episodes if each.query == row.query and each.graded.correct]
        assert has_recovered(by_id[row.episode]) == any(map(has_recovered, same))
        recoveries += has_recovered(by_id[row.episode])
    assert recoveries == collector.recovered > 0


def test_without_faults_the_oracle_needs_one_turn():
    rows, collector, _ = collected(TASKS, faults=0)
    assert collector.recovered == 0 and all(len(turns_of(row)) == 1 for row in rows)
    assert all(turns_of(row)[0].learn for row in rows)


def test_a_task_whose_answer_is_a_refusal_is_demonstrated_although_no_worker_of_it_can_fail():
    drawn = open_source("everyday").tasks("train", 60)
    refusals = [task for task in drawn if task.oracle_turn is not None and not task.workers]
    rows, collector, _ = collected(refusals, samples=2, faults=1)
    assert len(rows) == len(refusals) > 0 and collector.recovered == 0


def own_task(index: int) -> Task:
    return Task(TaskRef("own", 1, "train", index), f"query {index}", ExactText("canary<0>"))


@pytest.fixture
def taking_turns(monkeypatch):
    """A teacher whose samples of a task use the workers left, right, left and right (two steps)."""
    plans = [
        ((Step(1, "left", {"text": "#0"}),), "$1"),
        ((Step(1, "right", {"text": "#0"}),), "$1"),
        ((Step(1, "left", {"text": "#0"}), Step(2, "left", {"text": "#0"})), "$2"),
        ((), "no idea"),
    ]
    numbers = count()
    make = lambda wanted: Scripted(Turn(*plans[next(numbers) % len(plans)]))  # noqa: E731
    monkeypatch.setitem(POLICIES.built_in, "taking_turns", Policy("taking_turns", "", "", make))
    STAGE.clear()
    return a_pool((worker("left", "actor"), worker("right", "actor")))


def test_workers_that_were_used_seldom_are_preferred_and_then_short_plans(taking_turns):
    tasks = [own_task(index) for index in range(10)]
    rows, collector, episodes = collected(
        tasks, taking_turns, teacher="taking_turns", samples=4, faults=0, concurrency=1
    )
    by_id = {episode.id: episode for episode in episodes}
    used = Counter(run.step.worker for row in rows for run in by_id[row.episode].steps.values())
    assert used == {"left": 5, "right": 5} and (collector.tried, collector.correct) == (40, 10)


def test_a_task_that_was_never_solved_leaves_nothing(taking_turns):
    task = Task(TaskRef("own", 1, "train", 0), "q", ExactText("something else"))
    rows, collector, _ = collected([task], taking_turns, teacher="taking_turns", samples=4, faults=0)
    assert rows == [] and (collector.tried, collector.correct) == (4, 0)


def test_starred_traces_of_this_pool_that_have_an_answer_are_demonstrations(tmp_path):
    store = open_store(find_home(str(tmp_path)))
    scripts = {
        "starred": [Turn((step(1),)), Turn((), "$1")],
        "mistaken": [Turn((Step(1, "nobody", {}),)), Turn((step(2),), "$2")],
        "plain": [Turn((step(1),), "$1")],
        "silent": [Turn((step(1),))],
        "wrong": [Turn((step(1),), "$1")],
    }

    async def run():
        STAGE.clear()
        pool = a_pool(max_rounds=3)
        found = {}
        for name, turns in scripts.items():
            verifier = ExactText("x") if name == "wrong" else MatchesPattern(".*")
            task = Task(TaskRef("own", 1, "train", 0), name, verifier)
            found[name] = (await run_task(task, Scripted(*turns), pool, store.traces)).id
        store.traces.flush()
        for name in ("starred", "mistaken", "silent", "wrong"):
            store.traces.star(found[name], True)
        return list(load_starred_demonstrations(store.traces, pool, ModelSettings(prompt="query"), 3)), found

    rows, ids = asyncio.run(run())
    store.close()
    assert [row.episode for row in rows] == [ids["starred"], ids["mistaken"]]
    assert {row.source for row in rows} == {"starred"}
    assert [said.role for said in rows[0].messages] == ["user", "assistant", "user", "assistant"]
    assert [said.learn for said in turns_of(rows[0])] == [True, True]
    assert [said.learn for said in turns_of(rows[1])] == [False, True]


WORDS = st.text(max_size=40) | st.sampled_from(["\u2028", "a\x85b\x0bc", "\r\n", "\x00", "<|end|>", '"}\\'])
SPOKEN = st.builds(
    DemonstrationMessage, role=st.sampled_from(["system", "user", "assistant"]), content=WORDS, learn=st.booleans()
)
ROWS = st.lists(
    st.builds(
        Demonstration, messages=st.lists(SPOKEN, min_size=1, max_size=4), query=WORDS, episode=WORDS, source=WORDS
    ),
    min_size=1,
    max_size=4,
)


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_jsonl_gives_back_what_was_written(rows):
    file = find_home().root / "rows.jsonl"
    save_demonstrations(file, rows)
    assert load_demonstrations(file) == rows


def test_a_write_that_fails_leaves_the_file_that_was_there(tmp_path, monkeypatch):
    rows = [conversation(("user", "q"), ("assistant", "a"))]
    save_demonstrations(tmp_path / "rows.jsonl", rows)
    monkeypatch.setattr("pathlib.Path.replace", Mock(side_effect=OSError("no space left on device")))
    with pytest.raises(OSError, match="no space"):
        save_demonstrations(tmp_path / "rows.jsonl", rows * 50)
    assert load_demonstrations(tmp_path / "rows.jsonl") == rows


def test_a_data_set_gives_back_what_was_written(tmp_path):
    odd = Demonstration(
        messages=[DemonstrationMessage(role="user", content="\u2028\x85\r\n\x00é")], query='"', source="elsewhere"
    )
    rows = [odd, conversation(("user", "q"), ("assistant", "a")), conversation(("assistant", ""))]
    save_demonstrations(tmp_path / "rows", rows)
    assert load_demonstrations(tmp_path / "rows") == rows


def foreign(*messages: tuple[str, str], **more) -> str:
    return json.dumps({"messages": [{"role": role, "content": content} for role, content in messages], **more})


def test_every_turn_of_a_foreign_file_is_a_target(tmp_path):
    file = tmp_path / "foreign.jsonl"
    lines = [
        foreign(("system", "s"), ("user", "q"), ("assistant", "a"), ("user", "o"), ("assistant", "b"), score=3),
        "",
        foreign(("user", "q"), ("assistant", "a")),
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    rows = load_demonstrations(file)
    assert [[said.learn for said in row.messages] for row in rows] == [[False, False, True, False, True], [False, True]]


@pytest.mark.parametrize("line", ["nonsense", "[]", "{}", '{"messages": 3}', '{"messages": [{"role": "user"}]}'])
def test_a_line_that_is_no_demonstration_is_named(tmp_path, line):
    file = tmp_path / "mine.jsonl"
    file.write_text(foreign(("user", "q"), ("assistant", "a")) + f"\n{line}\n", encoding="utf-8")
    with pytest.raises(TrainingFailed, match=r"mine\.jsonl, line 2"):
        load_demonstrations(file)


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    for name in ("missing.jsonl", "bytes.jsonl"):
        (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe")
        with pytest.raises(TrainingFailed, match=f"{name} cannot be read"):
            load_demonstrations(tmp_path / name)


@pytest.fixture(scope="module")
def chat(tiny_base):
    from transformers import AutoTokenizer

    return ChatTokens(AutoTokenizer.from_pretrained(tiny_base))


def conversation(*messages: tuple[str, str]) -> Demonstration:
    return Demonstration(
        messages=[
            DemonstrationMessage(role=role, content=content, learn=role == "assistant") for role, content in messages
        ]
    )


def test_the_targets_of_a_demonstration_are_its_own_turns_and_their_end(chat):
    _, rows = with_fault(TASKS[:4], slip="bad_arguments")
    for row in rows:
        written = row.transcript(chat)
        labels = [token for token in written.labels() if token != -100]
        learnt = "".join(said.content + "<|end|>" for said in turns_of(row) if said.learn)
        assert chat.tokenizer.decode(labels) == learnt
        whole = [{"role": said.role, "content": said.content} for said in row.messages]
        assert written.ids == chat.tokenizer.apply_chat_template(whole, return_dict=False)


@pytest.mark.parametrize(
    "messages",
    [
        [("user", "q")],
        [("user", "q"), ("assistant", "a"), ("user", "o"), ("user", "again"), ("assistant", "b")],
        [("user", "q"), ("assistant", "a"), ("assistant", "b")],
    ],
)
def test_a_conversation_that_is_no_row_of_turns_is_refused(chat, messages):
    with pytest.raises(TrainingFailed) as caught:
        conversation(*messages).transcript(chat)
    assert caught.value.code == "demonstrations"
