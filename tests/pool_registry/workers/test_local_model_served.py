"""The small model behind `transformers serve`: a real OpenAI-compatible endpoint, on the CPU (vLLM: tests/trainer)."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from pool_registry.actions import Action
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import WorkerFault
from pool_registry.language_models import endpoints
from pool_registry.language_models.model_files import model_path
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from tests.machine import needs

SERVE = needs(find_spec("openai") is not None, "transformers[serving]")
START_S = 180.0  # of patience: it imports torch


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple[str, str]]:
    """Base URL and model name of a running server."""
    folder, port = str(model_path("starter:smollm2")), free_port()
    cache = tmp_path_factory.mktemp("hub")  # it lists the models of this folder, and fails without one
    server = subprocess.Popen(
        [Path(sys.executable).with_name("transformers"), "serve", folder,
         "--device", "cpu", "--host", "127.0.0.1", "--port", str(port)],
        env={**os.environ, "HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"},
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}/v1"
    try:
        wait_for(url, server)
        yield url, folder
    finally:
        server.terminate()
        server.wait(60)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        assert server.poll() is None, "transformers serve has ended"
        try:
            asyncio.run(endpoints.models(url))
            return
        except WorkerFault as fault:
            assert fault.code == "connection", fault
            time.sleep(0.5)
    pytest.fail(f"transformers serve did not answer within {START_S:g} s")


@SERVE
@pytest.mark.slow
def test_a_chat_worker_asks_the_served_model(served):
    url, name = served
    config = {"base_url": url, "model": name, "max_tokens": 12, "temperature": 0.0, "role": "Answer in one short line."}
    spec = WorkerSpec(name="served", kind="chat", description="a model", config=config, timeout_s=180)

    async def ask():
        async with live_pool(Pool(name="p", workers=(spec,))) as pool:
            seen = await pool.call(Action("served", {"instruction": "What is the capital of France?"}))
            return await pool.workers["served"].worker.check(), seen

    check, seen = asyncio.run(ask())
    assert "answers" in check
    assert seen.ok, seen.error
    assert "Paris" in seen.value and 0 < seen.usage.tokens_out <= 12 < seen.usage.tokens_in
