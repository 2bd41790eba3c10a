"""The machine that a figure is from, and how busy its GPU is while something runs."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

SMI = ("--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits", "-lms", "200")


def has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def describe_device() -> dict[str, Any]:
    import torch

    if not has_gpu():
        return {"name": "cpu", "memory_gb": None, "peak_tflops": None}
    properties = torch.cuda.get_device_properties(0)
    peak = find_peak()
    return {
        "name": properties.name,
        "memory_gb": round(properties.total_memory / 1e9, 1),
        "peak_tflops": peak and peak / 1e12,
        "capability": f"{properties.major}.{properties.minor}",
    }


def find_peak() -> float | None:
    """Operations a second of the GPU in bfloat16, by TRL's table; None where it does not know the device."""
    if not has_gpu():
        return None
    import torch
    from trl.trainer import utils

    peak: float | None = utils.get_peak_flops(torch.cuda.get_device_name(0), "bfloat16")
    return peak


def describe_machine() -> dict[str, Any]:
    packages = {}
    for name in ("torch", "transformers", "trl", "peft", "vllm"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {"cpus": os.cpu_count(), "python": platform.python_version(), "packages": packages}


def make_slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


@contextmanager
def watch_device() -> Iterator[list[float]]:
    """A list that fills with the device's load in percent while the block runs."""
    samples: list[float] = []
    program = shutil.which("nvidia-smi") if has_gpu() else None
    if program is None:
        with watch_processors(samples):
            yield samples
        return
    process = subprocess.Popen([program, *SMI], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def read() -> None:
        for line in process.stdout or ():
            load = line.split(",")[0].strip()
            samples.extend([float(load)] if load.isdigit() else [])

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield samples
    finally:
        process.terminate()
        process.wait()
        reader.join(timeout=5)


@contextmanager
def watch_processors(samples: list[float]) -> Iterator[None]:
    import psutil

    over = threading.Event()
    psutil.cpu_percent()

    def read() -> None:
        while not over.wait(0.2):
            samples.append(psutil.cpu_percent())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield
    finally:
        over.set()
        reader.join(timeout=5)
