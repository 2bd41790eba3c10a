"""Gives each job GPUs of its own, by CUDA_VISIBLE_DEVICES: one for each of its processes."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

log = logging.getLogger(__name__)
QUERY = ("--query-gpu=index,memory.free", "--format=csv,noheader,nounits")
TIMEOUT_S = 20.0
VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
HIDDEN = ("", "-1")  # what hides every GPU


def list_gpus() -> list[str]:
    """The GPUs that this process may use, those with most free memory first; empty where there is none."""
    free = read_free_memory()
    allowed = os.environ.get(VISIBLE)
    numbers = list(free) if allowed is None else [number.strip() for number in allowed.split(",")]
    return sorted((number for number in numbers if number not in HIDDEN), key=lambda number: -free.get(number, 0))


def choose_gpus(count: int, gpus: Sequence[str], taken: Collection[Sequence[str]]) -> tuple[str, ...] | None:
    """Choose `count` of a machine's GPUs for a job. `taken` are those of each job that runs. None: it has to wait.

    A job that has no GPUs runs alone, as every job does on a machine without any. One that needs more than there are
    gets all of them, so that its process can say so.
    """
    if not taken:
        return tuple(gpus[:count])
    free = [gpu for gpu in gpus if not any(gpu in other for other in taken)]
    return tuple(free[:count]) if free and len(free) >= count and all(taken) else None


@contextmanager
def see_only(gpus: Sequence[str]) -> Iterator[None]:
    """Let this process, and those that it starts in the block, see these GPUs alone; without any, nothing changes.

    Enter it before anything asks torch for a GPU.
    """
    before = {name: os.environ.get(name) for name in (ORDER, VISIBLE)}
    if gpus:
        os.environ[ORDER] = "PCI_BUS_ID"  # the order in which nvidia-smi counts
        os.environ[VISIBLE] = ",".join(gpus)
        log.info("uses GPU %s", ", ".join(gpus))
    try:
        yield
    finally:  # the next job is started with every GPU in sight
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def read_free_memory() -> dict[str, int]:
    """The free memory of each GPU in MiB, by its number; empty where no NVIDIA driver answers."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    try:
        listed = subprocess.run([program, *QUERY], capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout  # noqa: S603  the driver's own program
        rows = [line.split(",") for line in listed.splitlines() if line.strip()]
        return {index.strip(): int(free) for index, free in rows}
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        log.warning("nvidia-smi did not list the GPUs: %s", error)
        return {}
