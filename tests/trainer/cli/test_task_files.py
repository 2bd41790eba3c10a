"""`tasks make --out` writes anew what holds tasks, and nothing else."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from studio.__main__ import app
from studio.prepare import prepare_store
from trainer.errors import UnusableTasks

TASK = json.dumps({"query": "What is 2 + 3?", "answer": 5})


@pytest.fixture
def make(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    prepare_store(str(tmp_path / "home")).close()

    def run(out: str):
        command = ["tasks", "make", "--pool", "starter", "--count", "10", "--dry-run", "--json", "--out", out]
        return CliRunner().invoke(app, command, catch_exceptions=False)

    return run


def test_a_file_of_tasks_and_a_new_one_are_written(make, tmp_path):
    (tmp_path / "own.jsonl").write_text(f"{TASK}\n")
    for name in ("own.jsonl", "new.jsonl"):
        assert "estimate" in json.loads(make(str(tmp_path / name)).stdout)


@pytest.mark.parametrize("content", ["name,price\nrye,4.2\n", "PAR1\x15\x04binary", "[[package]]\n"])
def test_a_file_that_holds_no_task_stays_as_it_is(make, tmp_path, content):
    file = tmp_path / "prices.csv"
    file.write_text(content)
    with pytest.raises(UnusableTasks, match="holds no tasks"):
        make(str(file))
    assert file.read_text() == content


@pytest.mark.parametrize("place", [".", "folder"])
def test_a_folder_is_refused_before_anything_is_asked(make, tmp_path, place, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UnusableTasks, match="is a folder"):
        make(place)
