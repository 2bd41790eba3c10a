"""A pool and tasks as a server of OpenEnv, asked through its own client."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from pool_registry.starter import starter_pool
from studio.export.environments.folder import export_environment
from studio.export.environments.forms import OPENENV
from tests.neighbours.conftest import require

require("openenv")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
STEP = {"id": 1, "worker": "calculator", "arguments": {"expression": "6 * 7"}, "access": []}
PLAN = json.dumps({"steps": [STEP], "answer": "$1"})


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    tasks = tmp_path / "sums.jsonl"
    tasks.write_text(json.dumps({"query": "What is 6 * 7?", "answer": 42, "split": "train"}))
    export_environment(OPENENV, starter_pool(), f"file:{tasks}", tmp_path / "env")
    assert "podium_starter.app:app" in (tmp_path / "env" / "openenv.yaml").read_text()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, (tmp_path / "env", ROOT, ROOT / "lessons"))),
        "PODIUM": f"{sys.executable} -m studio",
    }
    command = [sys.executable, "-m", "uvicorn", "podium_starter.app:app", "--port", str(port)]
    server = subprocess.Popen(command, env={**os.environ, **variables})
    url = f"http://127.0.0.1:{port}"
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            httpx.get(f"{url}/health")
            break
        except httpx.ConnectError:
            assert server.poll() is None
            time.sleep(0.2)
    yield url
    server.terminate()
    server.wait()


@pytest.fixture
def seat(tmp_path, monkeypatch) -> Iterator[ModuleType]:
    """The server's module, in this process; its files of an episode come into `tmp_path`."""
    tasks = tmp_path / "sums.jsonl"
    tasks.write_text(json.dumps({"query": "What is 6 * 7?", "answer": 42, "split": "train"}))
    export_environment(OPENENV, starter_pool(), f"file:{tasks}", tmp_path / "env")
    spec = spec_from_file_location("openenv_seat_under_test", tmp_path / "env" / "podium_starter" / "app.py")
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    (tmp_path / "files").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "files"))
    yield module
    assert not list((tmp_path / "files").iterdir()), "nothing is left behind"


def write_podium(folder: Path, monkeypatch, body: str) -> None:
    program = folder / "podium.py"
    program.write_text(f"import json, sys, time\nprint(json.dumps({{'messages': []}}), flush=True)\n{body}")
    monkeypatch.setenv("PODIUM", f"{sys.executable} {program}")


def test_a_rollout_that_ends_between_turns_says_why(seat, tmp_path, monkeypatch):
    write_podium(tmp_path, monkeypatch, "sys.exit('the disk is full')")
    environment = seat.PodiumEnvironment()
    environment.reset(seed=0)
    environment._process.wait()
    with pytest.raises(RuntimeError, match="the disk is full"):
        environment.step(seat.TurnAction(text="x" * 1_000_000))


def test_a_turn_that_takes_too_long_ends_the_episode(seat, tmp_path, monkeypatch):
    write_podium(tmp_path, monkeypatch, "time.sleep(60)")
    environment = seat.PodiumEnvironment()
    environment.reset(seed=0)
    with pytest.raises(RuntimeError, match=r"more than 0\.5 s"):
        environment.step(seat.TurnAction(text="x"), timeout_s=0.5)
    with pytest.raises(RuntimeError, match="reset begins an episode"):
        environment.step(seat.TurnAction(text="x"))


def test_without_podium_it_says_what_to_set(seat, monkeypatch):
    monkeypatch.setenv("PODIUM", "/no/such/podium")
    with pytest.raises(RuntimeError, match="PODIUM=/path/to/podium"):
        seat.PodiumEnvironment().reset(seed=0)


def test_a_client_orchestrates_turn_by_turn_and_is_rewarded(address):
    from openenv.core.generic_client import GenericEnvClient

    with GenericEnvClient(base_url=address, message_timeout_s=120).sync() as client:
        first = client.reset(seed=0)
        assert [message["role"] for message in first.observation["messages"]] == ["system", "user"]
        assert "6 * 7" in first.observation["messages"][1]["content"] and not first.done
        second = client.step({"text": "I think"})
        assert not second.done and "PARSE_ERR" in second.observation["messages"][-1]["content"]
        last = client.step({"text": PLAN})
        assert last.done and last.reward == 1.0
        assert last.observation["rollout"]["answer"] == 42 and last.observation["rollout"]["unreadable_turns"] == 1
        again = client.reset(seed=0)
        assert len(again.observation["messages"]) == 2, "another episode begins anew"
