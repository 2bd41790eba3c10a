"""A data set of the Hub as a source of files, fetched by the official client from a stand-in on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.studio.support.hub_stand_in import Repo, client_environment, hub_stand_in
from tests.trainer.support.tool_use_files import OPENAI, SHAREGPT, write_lines

QUESTIONS = b"question,answer\nWhat is 6 x 7?,42\nWho wrote Faust?,Goethe\n"


def run(home: Path, files: dict[str, bytes], *words: str) -> str:
    """What `podium` prints where the Hub has a data set alice/own of these files."""
    with hub_stand_in() as (address, hub):
        hub.repos["dataset", "alice/own"] = repo = Repo(False, None, files)
        repo.at[repo.head] = files
        environment = {**os.environ, **client_environment(address, str(home / "hub")), "PODIUM_HOME": str(home)}
        command = [sys.executable, "-m", "studio", *words]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
    assert done.returncode == 0, (done.stdout, done.stderr, hub.requests)
    return done.stdout


@pytest.mark.medium
@pytest.mark.parametrize(("record", "workers"), [(OPENAI, 2), (SHAREGPT, 1)])
def test_a_data_set_of_tool_use_becomes_a_pool(tmp_path, record, workers):
    files = {"train.jsonl": write_lines(record)}
    run(tmp_path, files, "tasks", "add", "--pool", "own", "--file", "hub:alice/own")
    pool = json.loads(run(tmp_path, files, "pool", "show", "own", "--json"))
    assert [worker["kind"] for worker in pool["workers"]] == ["recorded"] * workers


@pytest.mark.medium
def test_a_data_set_of_questions_becomes_tasks_of_a_pool(tmp_path):
    files = {"test.csv": QUESTIONS}
    assert "2 added" in run(tmp_path, files, "tasks", "add", "--pool", "starter", "--file", "hub:alice/own")
