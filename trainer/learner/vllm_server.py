"""Runs a vLLM server as a child process that serves one model on this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from pool_registry.errors import WorkerFault
from pool_registry.language_models.model_files import pick_device, pick_dtype
from pool_registry.network import http_client
from trainer.errors import TrainerError

INSTALL_VLLM = "make vllm"
MODULE = "vllm.entrypoints.openai.api_server"  # the `vllm` command does not work in the CPU package
START_S = 600.0  # measured: 36 to 170 s on two shared cores
STOP_S = 10.0
LOG_LINES = 30
MAX_LORA_RANK = 64

ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "2",  # GiB; by default vLLM takes a share of all RAM
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}


@dataclass(frozen=True, slots=True)
class VllmServer:
    """A running server. `url` is the base_url of a `chat` worker."""

    url: str
    name: str
    pid: int


@contextmanager
def serve_model(
    model_dir: Path,
    name: str,
    *,
    lora: bool = False,
    port: int = 0,
    max_model_len: int = 2048,
    eager: bool = False,
    start_s: float = START_S,
    extra: tuple[str, ...] = (),
) -> Iterator[VllmServer]:
    """Serve the model in `model_dir` as `name` while the block runs; port 0 takes a free one.

    With `lora`, adapters can be loaded and replaced while it runs; `eager` does without CUDA graphs. `extra` are
    further options of vLLM. Call it where no event loop runs. Raises TrainerError with the end of the server's log when
    it does not start.
    """
    if not is_installed():
        raise TrainerError(f"vLLM is not installed; run: {INSTALL_VLLM}")
    port = port or _find_free_port()
    command = _build_command(model_dir.absolute(), name, port, max_model_len, lora, eager)
    environment = {**os.environ, **ENVIRONMENT, "VLLM_ALLOW_RUNTIME_LORA_UPDATING": str(lora)}
    with tempfile.TemporaryDirectory(prefix="podium-vllm-") as folder, (Path(folder) / "log").open("w+b") as log:
        process = subprocess.Popen(  # noqa: S603  our own interpreter, no shell
            [*command, *extra],
            cwd=folder,  # vLLM may leave files where it stands
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # the engine is a child of the server: they end as one process group
        )
        try:
            url = f"http://127.0.0.1:{port}/v1"
            asyncio.run(_wait_until_ready(process, url, start_s, log))
            yield VllmServer(url, name, process.pid)
        finally:
            _end_process(process)


def _build_command(model_dir: Path, name: str, port: int, max_model_len: int, lora: bool, eager: bool) -> list[str]:
    options = {
        "model": model_dir,
        "served-model-name": name,
        "host": "127.0.0.1",
        "port": port,
        "max-model-len": max_model_len,
        "dtype": choose_dtype(),
        # A trainer needs the probabilities after temperature and top-p, with which the tokens were sampled.
        "logprobs-mode": "processed_logprobs",
        # The sampling settings that a model ships with must not change how a trainer samples.
        "generation-config": "vllm",
    }
    flags = ["--disable-uvicorn-access-log"]
    flags += ["--enforce-eager"] if eager or pick_device("auto") == "cpu" else []
    flags += ["--enable-lora", "--max-lora-rank", str(MAX_LORA_RANK)] if lora else []
    return [sys.executable, "-m", MODULE, *(f"--{key}={value}" for key, value in options.items()), *flags]


def is_installed() -> bool:
    """Whether vLLM, or its build for CPUs, is in this environment."""
    return find_spec("vllm") is not None


def choose_dtype() -> str:
    """Choose bfloat16, except on CPUs that only emulate it, where float32 is several times as fast."""
    return "bfloat16" if pick_dtype(pick_device("auto")) == "auto" else "float32"


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _wait_until_ready(process: subprocess.Popen[bytes], url: str, start_s: float, log: IO[bytes]) -> None:
    """Wait until the server lists its model. Raises TrainerError when it ends or takes too long."""
    started = time.monotonic()
    while time.monotonic() - started < start_s:
        if process.poll() is not None:
            raise TrainerError(f"vLLM ended with status {process.returncode}; its last lines:\n{_read_log_tail(log)}")
        with suppress(WorkerFault, TimeoutError):
            await http_client.ask_json("GET", f"{url}/models", {}, timeout_s=5)
            return
        await asyncio.sleep(0.5)
    raise TrainerError(f"vLLM did not answer within {start_s:.0f} s; its last lines:\n{_read_log_tail(log)}")


def _read_log_tail(log: IO[bytes]) -> str:
    log.seek(0)
    return "\n".join(log.read().decode("utf-8", "replace").splitlines()[-LOG_LINES:])


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """End the process group: SIGTERM first, SIGKILL after STOP_S seconds."""
    for number, wait_s in ((signal.SIGTERM, STOP_S), (signal.SIGKILL, STOP_S)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
