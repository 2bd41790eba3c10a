"""Environments for other trainers: the folder that is written, and the episode that it starts. That verifiers itself
reads and runs it: tests/neighbours."""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.errors import UnknownOrchestrator
from pool_registry.pool import Pool, export_pool, import_pool
from pool_registry.worker import WorkerSpec
from studio.__main__ import app
from studio.export.environments.folder import NoEnvironment, export_environment
from studio.export.environments.forms import OPENENV, VERIFIERS
from studio.export.environments.rollout import POLICY_KEY
from tests.orchestrator.support.endpoint import Endpoint, endpoint
from trainer.tasks.sources.jsonl import load_tasks

__all__ = ["endpoint"]
PLAN = {"steps": [{"id": 1, "worker": "calc", "arguments": {"expression": "6 * 7"}, "access": []}], "answer": "$1"}


@pytest.fixture
def pool() -> Pool:
    calc = WorkerSpec(name="calc", kind="calculator", description="Computes.")
    config = {"base_url": "http://127.0.0.1:9", "model": "m", "api_key": "env:BOSS_KEY"}
    boss = WorkerSpec(name="boss", kind="chat", description="Thinks.", config=config)
    return Pool(name="my-sums", workers=(calc, boss))


def write_tasks(folder: Path, *rows: dict) -> str:
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"file:{folder / 'tasks.jsonl'}"


def test_the_folder_is_a_package_with_the_pool_the_tasks_and_the_names_of_keys(pool, tmp_path):
    tasks = write_tasks(tmp_path, {"query": "6*7?", "answer": 42, "split": "train"}, {"query": "a?", "answer": "b"})
    assert export_environment(VERIFIERS, pool, tasks, tmp_path / "env") == 2
    package = tmp_path / "env" / "podium_my_sums"
    assert import_pool((package / "pool.json").read_text()) == pool
    assert {task.query for task in load_tasks(package / "tasks.jsonl").tasks} == {"6*7?", "a?"}
    assert json.loads((package / "settings.json").read_text()) == {"dialect": "plan", "variables": ["BOSS_KEY"]}
    assert tomllib.loads((tmp_path / "env" / "pyproject.toml").read_text())["project"]["name"] == "podium-my-sums"
    ast.parse((package / "__init__.py").read_text())
    assert "BOSS_KEY" in (tmp_path / "env" / "README.md").read_text()


def test_what_makes_no_environment_is_refused_with_what_to_do(pool, tmp_path):
    tasks = write_tasks(tmp_path, {"query": "6*7?", "answer": 42})
    with pytest.raises(NoEnvironment, match="--out"):
        export_environment(VERIFIERS, pool, tasks, tmp_path)
    with pytest.raises(UnknownOrchestrator, match="dialect"):
        export_environment(VERIFIERS, pool, tasks, tmp_path / "env", dialect="tune")
    assert not (tmp_path / "env").exists()


def run(folder: Path, pool: Pool, task: dict, address: str, *options: str) -> tuple[int, dict, str]:
    (folder / "pool.json").write_text(export_pool(pool))
    (folder / "task.json").write_text(json.dumps(task))
    files = ["--pool", str(folder / "pool.json"), "--task", str(folder / "task.json"), "--home", str(folder)]
    result = CliRunner().invoke(app, ["rollout", *files, "--base-url", address, "--model", "m", *options])
    lines = result.stdout.splitlines()
    return result.exit_code, json.loads(lines[-1]) if lines else {}, result.output + str(result.exception or "")


@pytest.mark.parametrize(("answer", "correct"), [(42, True), (43, False)])
def test_an_episode_is_played_and_graded(pool, tmp_path, endpoint, monkeypatch, answer, correct):
    monkeypatch.setenv(POLICY_KEY, "the-key")
    Endpoint.reply = staticmethod(lambda messages: json.dumps(PLAN) if len(messages) > 2 else "hm")
    code, rollout, _ = run(tmp_path, pool, {"query": "6*7?", "answer": answer}, endpoint)
    assert code == 0 and rollout["correct"] is correct and rollout["answer"] == 42
    assert rollout["rounds"] == 2 and rollout["unreadable_turns"] == 1 and rollout["calls"] == {"OK": 1}
    assert rollout["worker_tokens"] == 0, "the orchestrator's tokens are the trainer's"
    assert [message["role"] for message in Endpoint.bodies[-1]["messages"]] == ["system", "user", "assistant", "user"]


def test_a_worker_that_wants_something_stays_off_until_the_pool_is_trusted(pool, tmp_path, endpoint, monkeypatch):
    monkeypatch.setenv(POLICY_KEY, "the-key")
    monkeypatch.setenv("BOSS_KEY", "the-boss-key")
    config = {**pool.worker("boss").config, "base_url": endpoint, "model": "boss"}
    pool = pool.with_worker(pool.worker("boss").model_copy(update={"config": config}), "boss")
    step = {"id": 1, "worker": "boss", "arguments": {"instruction": "say it"}, "access": []}
    plan = json.dumps({"steps": [step], "answer": "$1"})
    Endpoint.reply = staticmethod(lambda messages: "42" if Endpoint.bodies[-1]["model"] == "boss" else plan)
    task = {"query": "6*7?", "answer": 42}
    _, rollout, words = run(tmp_path, pool, task, endpoint)
    assert not rollout["correct"] and "boss stays off: it " in words and "BOSS_KEY" in words
    code, rollout, words = run(tmp_path, pool, task, endpoint, "--trust")
    assert code == 0 and rollout["correct"] and "stays off" not in words


def test_a_pool_whose_workers_all_want_something_is_refused(pool, tmp_path, endpoint):
    code, _, words = run(tmp_path, pool.without_worker("calc"), {"query": "6*7?", "answer": 42}, endpoint)
    assert code and "--trust" in words


def test_turns_may_come_by_standard_input(pool, tmp_path):
    (tmp_path / "pool.json").write_text(export_pool(pool))
    (tmp_path / "task.json").write_text(json.dumps({"query": "6*7?", "answer": 42}))
    files = ["--pool", str(tmp_path / "pool.json"), "--task", str(tmp_path / "task.json"), "--home", str(tmp_path)]
    turns = [{"text": "hm"}, {"text": json.dumps(PLAN)}]
    result = CliRunner().invoke(app, ["rollout", *files], input="".join(f"{json.dumps(turn)}\n" for turn in turns))
    first, second, end = map(json.loads, result.stdout.splitlines())
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert second["messages"][: len(first["messages"])] == first["messages"], "a conversation only grows"
    assert end["correct"] and end["unreadable_turns"] == 1
    cut = CliRunner().invoke(app, ["rollout", *files], input="no turn\n")
    assert cut.exit_code and 'a line such as {"text"' in str(cut.exception)


def test_the_folder_of_openenv_names_its_app(pool, tmp_path):
    tasks = write_tasks(tmp_path, {"query": "6*7?", "answer": 42})
    assert export_environment(OPENENV, pool, tasks, tmp_path / "env") == 1
    assert "app: podium_my_sums.app:app" in (tmp_path / "env" / "openenv.yaml").read_text()
    ast.parse((tmp_path / "env" / "podium_my_sums" / "app.py").read_text())


def test_without_a_result_it_says_so_and_exits(pool, tmp_path, endpoint, monkeypatch):
    monkeypatch.setenv(POLICY_KEY, "the-key")
    code, _, words = run(tmp_path, pool, {"query": "6*7?"}, endpoint)
    assert code and "holds no task (answer: this is missing)" in words
    code, _, words = run(tmp_path, pool, {"query": "6*7?", "answer": 1}, "http://127.0.0.1:9")
    assert code and "the model that orchestrates cannot be asked" in words
