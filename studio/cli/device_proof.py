"""What `podium doctor` tries on this machine: one generated token, one training step, one token of vLLM."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestrator.errors import OrchestratorError
from pool_registry.errors import PoolError, WorkerFault
from pool_registry.language_models.model_files import STARTER, model_path, pick_device
from trainer.errors import TrainerError
from trainer.learner.generator import is_out_of_memory
from trainer.learner.vllm_server import INSTALL_VLLM, is_installed, serve_model
from trainer.memory_fit.gpu_state import describe_other_programs
from trainer.methods.table import METHODS

MODEL = "SmolLM2-135M"
QUESTION = "The capital of France is"
VLLM_CONTEXT = 256
VLLM_SHARE = "0.2"  # of the GPU's memory: the model is small
# What one step of the first method needs at least; the model is the smallest that can be trained here.
RECIPE = {
    "name": "doctor",
    "model": {"base": STARTER, "prompt": "query", "lora": {"rank": 4}},
    "tasks": {"source": "examples", "count": 1},
    next(iter(METHODS.built_in)): {"steps": 1, "batch": 1, "saving": {"every": 1, "check_tasks": 0}},
}


@dataclass(frozen=True, slots=True)
class Proof:
    """One thing that was tried: `result` says what came out and in which time, `advice` what to do if it failed."""

    subject: str
    result: str
    advice: str = ""
    mark: str = "ok"  # ok, missing (not tried) or problem


def prove_device(with_vllm: bool | None = None) -> Iterator[Proof]:
    """Try the device that jobs use; yield each proof as soon as it is there.

    vLLM is tried on a GPU; on a CPU it takes a minute to start, so there only `with_vllm`.
    """
    device = pick_device("auto")
    yield _try("one token", device, _generate_token)
    yield _try("one training step", device, _take_training_step)
    if not is_installed():
        yield Proof(
            "one vLLM token", "not tried: vLLM is not installed", f"for fast rollouts: {INSTALL_VLLM}", "missing"
        )
    elif with_vllm or (with_vllm is None and device == "cuda"):
        yield _try("one vLLM token", device, _generate_vllm_token)
    else:
        yield Proof(
            "one vLLM token", "not tried: vLLM starts slowly on a CPU", "podium doctor --vllm tries it", "missing"
        )


def _try(subject: str, device: str, action: Callable[[], str]) -> Proof:
    started = time.monotonic()
    try:
        with _no_output():
            result = action()
    except (RuntimeError, OSError, ValueError, MemoryError, ImportError, TimeoutError) as error:
        return _explain_failure(subject, error)
    except (TrainerError, PoolError, OrchestratorError, WorkerFault) as error:
        return _explain_failure(subject, error)
    return Proof(subject, f"{result} on {device} ({time.monotonic() - started:.1f} s)")


def _explain_failure(subject: str, error: BaseException) -> Proof:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    advice = "jobs on this machine fail in the same way; the log of one has the details"
    if is_out_of_memory(error):
        others = describe_other_programs()
        lines = ["not enough memory"]
        advice = f"it is also used by {others}: end that, or choose another GPU with CUDA_VISIBLE_DEVICES"
        advice = advice if others else f"{MODEL} needs about 3 GiB: close other programs"
    elif isinstance(error, TrainerError | PoolError | OrchestratorError | WorkerFault):
        advice = "\n      ".join(lines[1:][-8:])  # the message itself says what to do, then the end of a server's log
    return Proof(subject, lines[0], advice, "problem")


def _generate_token() -> str:
    from trainer.learner.generator import SamplingParams
    from trainer.learner.load_and_save import load_learner
    from trainer.learner.transformers_generator import TransformersGenerator
    from trainer.recipe_sections import ModelSettings

    learner = load_learner(ModelSettings(base=STARTER), seed=0)
    generator = TransformersGenerator(learner.model, learner.tokenizer, SamplingParams(temperature=0), 1)
    prompt: list[int] = learner.tokenizer(QUESTION)["input_ids"]

    async def generate() -> list[int]:
        try:
            return list((await generator.generate(prompt, 1)).ids)
        finally:
            generator.close()

    ids = asyncio.run(generate())
    return f"{MODEL} continued {QUESTION!r} with {learner.tokenizer.decode(ids)!r}"


def _take_training_step() -> str:
    """Run a recipe of one step with the trainer itself, in a folder of its own."""
    from orchestrator.traces.store import open_store
    from pool_registry.starter import starter_pool
    from pool_registry.storage.data_folder import find_home
    from trainer.jobs.job_folder import JobFolder, read_lines
    from trainer.recipe import Recipe
    from trainer.run_recipe import run_recipe

    with TemporaryDirectory(prefix="podium-doctor-") as folder:
        store = open_store(find_home(folder))
        job_folder = JobFolder(Path(folder) / "job").create()
        try:
            run_recipe(Recipe.model_validate(RECIPE), store, starter_pool(), job_folder, lambda *_: None)
        finally:
            store.close()
        loss = next(float(str(row["loss"])) for row in read_lines(job_folder.metrics) if "loss" in row)
    return f"an adapter of {MODEL} learnt, loss {loss:.2f},"


def _generate_vllm_token() -> str:
    from pool_registry.network import http_client

    extra = ("--gpu-memory-utilization", VLLM_SHARE) if pick_device("auto") == "cuda" else ()
    with serve_model(model_path(STARTER), "doctor", max_model_len=VLLM_CONTEXT, eager=True, extra=extra) as server:
        started = time.monotonic()
        body = {"model": "doctor", "prompt": QUESTION, "max_tokens": 1, "temperature": 0}
        reply = asyncio.run(http_client.ask_json("POST", f"{server.url}/completions", {}, 300, body))
        took = time.monotonic() - started
    text = reply["choices"][0]["text"]  # type: ignore[index]
    return f"it continued {QUESTION!r} with {text!r} in {took:.2f} s, its start included"


@contextmanager
def _no_output() -> Iterator[None]:
    """Keep the libraries' lines out of the report."""
    level = logging.root.level
    logging.disable(logging.ERROR)
    try:
        with open(os.devnull, "w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):  # noqa: PTH123
            yield
    finally:
        logging.disable(logging.NOTSET)
        logging.root.setLevel(level)
