"""What a job takes of this machine, and what is left: RAM of the process and of the machine, and GPUs."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time

import psutil

from orchestrator.engine.process_identity import find_pid
from studio.pages.train.schema import GpuLoad, MachineLoad

QUERY = "--query-gpu=name,memory.used,memory.total,utilization.gpu"
KEEP_S = 3.0
_gpus: tuple[float, list[GpuLoad]] = (0.0, [])
_lock = threading.Lock()


def read_machine_load(owner: str) -> MachineLoad | None:
    """The RAM that the process `owner` and its children hold, and what the machine has. None when the
    process is gone."""
    try:
        process = psutil.Process(find_pid(owner) or -1)
        held = sum(member.memory_info().rss for member in [process, *process.children(recursive=True)])
    except (psutil.Error, ValueError):
        return None
    machine = psutil.virtual_memory()
    return MachineLoad(held=held, available=machine.available, total=machine.total, gpus=list_gpus())


def list_gpus() -> list[GpuLoad]:
    """The NVIDIA GPUs, read at most every few seconds.

    They are read with the driver's own command: torch would take some hundred MiB of each GPU.
    """
    global _gpus
    with _lock:
        if time.monotonic() - _gpus[0] > KEEP_S or not _gpus[0]:
            _gpus = (time.monotonic(), _read_gpus())
        return _gpus[1]


def _read_gpus() -> list[GpuLoad]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, QUERY, "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=3, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return []
    return [_gpu(line) for line in answer.stdout.splitlines() if line.count(",") == 3]


def _gpu(line: str) -> GpuLoad:
    name, used, total, busy = (part.strip() for part in line.split(","))
    mebibytes = [int(part) * 2**20 if part.isdigit() else None for part in (used, total)]
    load = int(busy) if busy.isdigit() else None
    return GpuLoad(name=name, used=mebibytes[0], total=mebibytes[1], busy=load)
