"""A served pool whose only model still has to be loaded: what its orchestrator cannot take is answered in seconds."""

from __future__ import annotations

import json
import time
import urllib.request

import pytest

from orchestrator.policies.fallback import LOAD_S
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from studio.prepare import prepare_store
from tests.studio.support.served import serving

pytestmark = pytest.mark.slow

GREETING = {"model": "podium-near", "messages": [{"role": "user", "content": "Hello!"}]}
BUSY_S = 10.0  # for the tiny orchestrator, its refusal and a busy machine


def test_a_greeting_is_answered_while_the_model_of_the_pool_is_being_loaded(tmp_path):
    near = WorkerSpec(
        name="near", kind="local_model", description="Answers.", config={"model": "smollm2"}, timeout_s=120
    )
    store = prepare_store(str(tmp_path / "home"))
    store.pools.save(Pool(name="near", workers=(near,)))
    store.close()
    with serving(tmp_path / "home", "--pool", "near", "--orchestrator", "starter-grpo") as url:
        request = urllib.request.Request(
            f"{url}/v1/chat/completions", json.dumps(GREETING).encode(), {"content-type": "application/json"}
        )
        started = time.monotonic()
        with urllib.request.urlopen(request, timeout=120) as answer:
            reply = json.load(answer)
        took_s = time.monotonic() - started
    assert reply["choices"][0]["message"]["content"]
    assert "no task" in reply["podium"]["fallback"], reply["podium"]
    assert took_s < LOAD_S + BUSY_S, f"{took_s:.1f} s: {reply['podium']['fallback']}"
