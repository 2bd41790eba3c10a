"""Gives a job one GPU. TRL's trainers refuse a process that sees several, and nothing here trains on more than one."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess

log = logging.getLogger(__name__)
QUERY = ("--query-gpu=index,memory.free", "--format=csv,noheader,nounits")
TIMEOUT_S = 20.0


def use_one_gpu() -> None:
    """Let this process see one GPU: of those that it may use, the one with most free memory.

    Call it before anything asks torch for a GPU. Processes that a launcher has started are left alone, and so is a
    choice of one.
    """
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if "WORLD_SIZE" in os.environ or (chosen is not None and "," not in chosen):
        return
    free = read_free_memory()
    allowed = chosen.split(",") if chosen else list(free)
    if len(allowed) < 2:
        return
    best = max(allowed, key=lambda index: free.get(index.strip(), 0)).strip()
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # the order in which nvidia-smi counts
    os.environ["CUDA_VISIBLE_DEVICES"] = best
    log.info("this job uses GPU %s of %s: the one with most free memory; a job uses one GPU", best, ",".join(allowed))


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
