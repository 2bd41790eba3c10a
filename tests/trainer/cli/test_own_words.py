"""Questions in a person's own words are added by a command with the split that they are measured in."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from studio.__main__ import app
from tests.trainer.support.shop import build_shop
from trainer.tasks.practice.stored import list_own_tasks


@pytest.fixture
def add(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    store = open_store(find_home(str(tmp_path)))
    store.pools.save(build_shop(tmp_path))
    store.close()

    def run(*arguments: str):
        return CliRunner().invoke(app, ["tasks", "add", "--pool", "shop", *arguments])

    return run


def test_a_question_with_the_split_test_is_measured_and_not_learnt(add):
    result = add("--query", "where does Firm A sit?", "--answer", "Lisbon", "--split", "test")
    assert result.exit_code == 0, result.output
    (task,) = list_own_tasks("shop")
    assert (task.ref.split, task.origin) == ("test", "own")


def test_a_split_that_there_is_not_and_one_without_a_query_are_refused(add, tmp_path):
    wrong = add("--query", "a", "--answer", "b", "--split", "tset")
    assert wrong.exit_code and isinstance(wrong.exception, BaseException)
    alone = add("--file", str(tmp_path / "mine.csv"), "--split", "test")
    assert alone.exit_code and "--split goes with --query" in f"{alone.output}{alone.exception}"
    assert not list_own_tasks("shop")
