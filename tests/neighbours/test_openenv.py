"""A pool and tasks as a server of OpenEnv, asked through its own client."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

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
