"""A pool and tasks as an environment, and a task set as a source, both asked through verifiers itself."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pool_registry.starter import starter_pool
from studio.export.environments.folder import NoEnvironment, export_environment
from studio.export.environments.forms import VERIFIERS
from tests.neighbours.conftest import require
from tests.orchestrator.support.endpoint import Endpoint, endpoint
from trainer.errors import UnusableTasks
from trainer.tasks.registry import open_source

require("verifiers")
pytestmark = pytest.mark.slow
__all__ = ["endpoint"]

ROOT = Path(__file__).resolve().parents[2]
TASKSETS = Path(__file__).parent / "tasksets"
TASKS = [
    {"query": "What is 6 * 7?", "answer": 42, "split": "train"},
    {"query": "What is 5 * 9?", "answer": 46, "split": "train"},
    {"query": "What is 2 + 2?", "answer": 4, "split": "test"},
]


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    tasks = tmp_path / "sums.jsonl"
    tasks.write_text("".join(json.dumps(task) + "\n" for task in TASKS))
    assert export_environment(VERIFIERS, starter_pool(), f"file:{tasks}", tmp_path / "env") == 3
    return tmp_path / "env"


def evaluate(environment: Path, address: str, *options: str) -> list[dict]:
    """What vf-eval records of each rollout, in the order of the tasks."""
    out = environment.parent / "runs"
    command = [
        str(Path(sys.executable).with_name("vf-eval")), "podium-starter", "-m", "policy", "--no-push", "--no-rich",
        "--client.base-url", address, "--client.api-key-var", "POLICY", "--env.agent.runtime.type", "subprocess",
        "--output-dir", str(out), *options,
    ]  # fmt: skip
    paths = os.pathsep.join(map(str, (environment, ROOT, ROOT / "lessons")))
    variables = {"PYTHONPATH": paths, "POLICY": "the-key", "PODIUM": f"{sys.executable} -m studio"}
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = out.glob("*/traces.jsonl")
    traces = [trace for line in record.read_text().splitlines() for trace in json.loads(line)["traces"]]
    assert not [error["message"] for trace in traces for error in trace["errors"]]
    return sorted(traces, key=lambda trace: trace["task"]["data"]["idx"])


def write_plan(messages: list[dict]) -> str:
    expression = re.search(r"is (.*)\?", messages[1]["content"])[1]
    step = {"id": 1, "worker": "calculator", "arguments": {"expression": expression}, "access": []}
    return json.dumps({"steps": [step], "answer": "$1"})


def test_the_model_of_vf_eval_orchestrates_the_pool_and_is_rewarded(environment, endpoint):
    Endpoint.reply = staticmethod(write_plan)
    traces = evaluate(environment, endpoint)
    rewards = {trace["task"]["data"]["prompt"]: trace["rewards"]["correct"]["score"] for trace in traces}
    assert rewards == {"What is 6 * 7?": 1.0, "What is 5 * 9?": 0.0}
    for trace in traces:
        assert trace["ok"] and trace["metrics"]["rounds"] == 1 and trace["metrics"]["worker_calls"] == 1
        turns = [node["message"] for node in trace["nodes"] if node.get("sampled")]
        assert len(turns) == 1 and "calculator" in turns[0]["content"], "the orchestrator's turns are what is trained"
    assert len(Endpoint.bodies) == 2


def test_an_unreadable_turn_is_answered_and_counted(environment, endpoint):
    Endpoint.reply = staticmethod(lambda messages: "I think" if len(messages) == 2 else write_plan(messages))
    (trace,) = evaluate(environment, endpoint, "-n", "1", "--env.taskset.split", "test")
    assert trace["rewards"]["correct"]["score"] == 1.0
    assert trace["metrics"]["unreadable_turns"] == 1 and trace["metrics"]["rounds"] == 2
    assert sum(bool(node.get("sampled")) for node in trace["nodes"]) == 2, "one conversation that only grows"


def test_an_environment_is_refused_where_no_task_can_go_along(tmp_path):
    (tmp_path / "t.jsonl").write_text(json.dumps(TASKS[0]))
    with pytest.raises(NoEnvironment, match="--out"):
        export_environment(VERIFIERS, starter_pool(), f"file:{tmp_path / 't.jsonl'}", tmp_path)


@pytest.fixture
def tasksets(monkeypatch) -> Iterator[None]:
    monkeypatch.setenv("PYTHONPATH", str(TASKSETS))
    return


def test_a_task_set_is_a_source_whose_own_rewards_grade(tasksets):
    source = open_source("verifiers:podium_sums?count=30")
    tasks = source.tasks("train", 100)
    assert 10 < len(tasks) < 30 and all(task.query.startswith("What is ") for task in tasks)
    held_back = {task.query for split in ("validation", "test") for task in source.tasks(split, 100)}
    assert held_back.isdisjoint(task.query for task in tasks)
    verifier = tasks[0].verifier
    assert verifier.accepts(verifier.expected) and verifier.accepts(f"<answer>{verifier.expected}</answer>")
    assert not verifier.accepts("-1") and not verifier.accepts(None)
    assert not verifier.accepts("die"), "its program ended"
    assert verifier.accepts(verifier.expected), "and was started anew"
    assert pickle.loads(pickle.dumps(verifier)).accepts(verifier.expected)


def test_a_smaller_reward_can_be_enough(tasksets):
    (task,) = open_source("verifiers:podium_sums?count=30&min_reward=0.2").tasks("train", 1)
    assert task.verifier.accepts("-1") and not task.verifier.accepts("a long answer")


def test_an_answer_that_takes_too_long_is_wrong_and_the_next_is_graded(tasksets, monkeypatch):
    monkeypatch.setattr("trainer.tasks.sources.verifiers.process.REWARD_S", 1.0)
    (task,) = open_source("verifiers:podium_sums?count=30").tasks("train", 1)
    assert not task.verifier.accepts("hang")
    monkeypatch.undo()
    os.environ["PYTHONPATH"] = str(TASKSETS)
    assert task.verifier.accepts(task.verifier.expected)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("no_such_set", "Install it: .*PODIUM_VERIFIERS_PYTHON"),
        ("podium_sums?coun=3", "coun: "),
        ("podium_sums?min_reward=much", "min_reward is a number"),
        ("", "name the task set"),
    ],
)
def test_what_cannot_be_opened_is_refused_with_what_to_do(tasksets, argument, words):
    with pytest.raises(UnusableTasks, match=words):
        open_source(f"verifiers:{argument}")
