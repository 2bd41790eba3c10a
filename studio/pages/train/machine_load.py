"""What a job takes of this machine, and what is left: memory of the process, of the machine, of GPUs."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from typing import Any

import psutil

QUERY = "--query-gpu=name,memory.used,memory.total,utilization.gpu"
KEEP_S = 3.0
_gpus: tuple[float, list[dict[str, Any]]] = (0.0, [])
_lock = threading.Lock()


def memory_of(owner: str) -> dict[str, Any] | None:
    """Bytes that the process `owner` (pid:start) and its children hold, and what the machine has."""
    try:
        process = psutil.Process(int(owner.partition(":")[0]))
        held = sum(each.memory_info().rss for each in [process, *process.children(recursive=True)])
    except (psutil.Error, ValueError):
        return None
    machine = psutil.virtual_memory()
    return {"held": held, "available": machine.available, "total": machine.total, "gpus": gpus()}


def gpus() -> list[dict[str, Any]]:
    """The NVIDIA GPUs with their memory in bytes, asked at most every few seconds.

    The driver's own command is asked: torch would take some hundred MiB of each GPU to say it.
    """
    global _gpus
    with _lock:
        if time.monotonic() - _gpus[0] > KEEP_S or not _gpus[0]:
            _gpus = (time.monotonic(), _asked())
        return _gpus[1]


def _asked() -> list[dict[str, Any]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, QUERY, "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=3, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return []
    return [_gpu(line) for line in answer.stdout.splitlines() if line.count(",") == 3]


def _gpu(line: str) -> dict[str, Any]:
    name, used, total, busy = (part.strip() for part in line.split(","))
    mebibytes = [int(part) * 2**20 if part.isdigit() else None for part in (used, total)]
    return {"name": name, "used": mebibytes[0], "total": mebibytes[1], "busy": int(busy) if busy.isdigit() else None}
