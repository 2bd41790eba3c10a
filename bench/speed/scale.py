"""How far it scales: what several machines, nodes or processes do in the time of one.

    python bench/speed/scale.py [--json] [--sections cluster,processes] [--episodes N] [--save bench/results/scale.json]

cluster     1,000 episodes with slow workers (a chain of 2 to 4 calls of 0.2 to 1.2 s each, traced to SQLite), 32 at a
            time: in one process, and on each of two Ray nodes of this machine. The ideal is the time that the workers
            take, shared out among all places at a time: max(sum of the chains / places, longest chain). A ratio is
            seconds from the first to the last episode over the ideal; `start_s` is the time before, in which nodes are
            connected to and checked. The goal is 1.15.

processes   The same SFT steps of starter:tiny in one process and in two (gloo), each with one thread: losses and norms
            of the gradient beside each other, and the median seconds of a step. Both train with TRL's own trainer; one
            process alone on a CPU would take ours, which is faster.

Each section is a function. `--save` replaces the figures of the sections that were run, and keeps the others.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from orchestrator.traces.store import open_store
from pool_registry.pool import Limits, Pool
from pool_registry.storage.data_folder import choose_home
from pool_registry.worker import WorkerSpec
from scripts.local_cluster import start_cluster
from trainer.job_process import run_job
from trainer.jobs.job_folder import JobFolder, read_lines
from trainer.jobs.queue import JobStore
from trainer.recipe import Recipe, parse_recipe
from trainer.results.rows import read_results
from trainer.run_recipe import run_recipe

LATENCIES_MS = (200, 400, 600, 800, 1000, 1200)
PER_NODE = 32  # episodes at a time
NODES = 2
SEED = 7
PROCESSES = 2
SFT = """
name: ranks
model: {prompt: query}
tasks: {source: "ledger,atlas", levels: [1, 2], count: 64}
threads: 1
sft: {steps: 12, batch: 16, demonstrations: {faults: 0, starred: false}, saving: {every: 12, check_tasks: 0}}
"""


def measure_cluster(episodes: int) -> dict[str, Any]:
    """One process against two Ray nodes."""
    with tempfile.TemporaryDirectory() as folder:
        tasks, chains_s = write_slow_tasks(Path(folder) / "slow.jsonl", episodes)
        one = measure_evaluation(tasks, chains_s, "here", PER_NODE)
        with start_cluster(NODES) as cluster:
            several = measure_evaluation(tasks, chains_s, cluster.place, PER_NODE * NODES)
    faster = round(one["wall_s"] / several["wall_s"], 2)
    return {"episodes": episodes, "per_node": PER_NODE, "one_process": one, "two_nodes": several, "faster": faster}


def write_slow_tasks(path: Path, count: int) -> tuple[Path, list[float]]:
    """Write tasks whose plans are chains of slow calls; return the file, and the seconds that each chain takes."""
    random = Random(SEED)
    lines, chains_s = [], []
    for number in range(count):
        latencies = [random.choice(LATENCIES_MS) for _ in range(random.randint(2, 4))]
        first = {"worker": f"wait_{latencies[0]}", "instruction": f"{number} + 1"}
        later = [
            {"worker": f"wait_{latency}", "instruction": f"${k} + 1", "access": [k]}
            for k, latency in enumerate(latencies[1:], start=1)
        ]
        plan = {"steps": [first, *later], "answer": f"${len(latencies)}"}
        answer = number + len(latencies)
        lines.append({"query": f"Count on from {number}, {len(latencies)} times.", "answer": answer, "plan": plan})
        chains_s.append(sum(latencies) / 1000)
    path.write_text("".join(f"{json.dumps({**line, 'split': 'test'})}\n" for line in lines))
    return path, chains_s


def measure_evaluation(tasks: Path, chains_s: list[float], where: str, places: int) -> dict[str, float]:
    """Run an evaluation job and compare its time with the ideal for so many places."""
    with tempfile.TemporaryDirectory() as home:
        store = open_store(choose_home(home))
        job_folder = JobFolder(Path(home) / "jobs" / "measured").create()
        began = time.time()
        first: list[float] = []
        try:
            run_recipe(make_recipe(tasks, where), store, make_pool(), job_folder, lambda *_: first.append(time.time()))
        finally:
            store.close()
        rows = read_results(job_folder.results)
    assert len(rows) == len(chains_s) and all(row.correct for row in rows), "every episode answers"
    wall_s = max(row.at for row in rows) - first[0]
    ideal_s = max(sum(chains_s) / places, max(chains_s))
    return {
        "wall_s": round(wall_s, 2),
        "ideal_s": round(ideal_s, 2),
        "ratio": round(wall_s / ideal_s, 3),
        "start_s": round(first[0] - began, 2),
    }


def make_pool() -> Pool:
    """A calculator behind each latency."""
    inner = {"name": "calculator", "kind": "calculator", "description": "arithmetic"}
    workers = [
        WorkerSpec(
            name=f"wait_{latency}",
            kind="delayed",
            description=f"arithmetic in {latency} ms",
            max_concurrency=PER_NODE,
            config={"latency_ms": latency, "inner": inner},
        )
        for latency in LATENCIES_MS
    ]
    return Pool(name="slow", workers=tuple(workers), limits=Limits())


def make_recipe(tasks: Path, where: str) -> Recipe:
    section = {"orchestrators": ["oracle"], "source": f"file:{tasks}", "count": 100_000, "concurrency": PER_NODE}
    return parse_recipe(json.dumps({"name": "scale", "pool": "slow", "where": where, "evaluate": section}))


def measure_processes(_episodes: int) -> dict[str, Any]:
    """One process against two."""
    recipe = parse_recipe(SFT)
    one = measure_training(recipe)
    several = measure_training(recipe.model_copy(update={"processes": PROCESSES}))
    pairs = [pair for name in ("losses", "grad_norms") for pair in zip(one[name], several[name], strict=True)]
    return {
        "largest_relative_difference": max(abs(first - second) / abs(first) for first, second in pairs),
        "faster": round(one["step_s"] / several["step_s"], 2),
        "one_process": one,
        "two_processes": several,
    }


def measure_training(recipe: Recipe) -> dict[str, Any]:
    """Losses, norms of the gradient, and seconds of a step; with the trainer that several processes use."""
    from trainer.learner import cpu_trainers

    cpu_trainers.SMALL_VOCABULARY = 0  # as if the vocabulary were too large for our trainer
    with tempfile.TemporaryDirectory() as home:
        store = open_store(choose_home(home))
        jobs = JobStore(store.engine, store.home)
        job = jobs.submit(recipe, here=True).id
        try:
            run_job(job, store, jobs)
            assert jobs.get(job).state == "done", jobs.get(job).message
            steps = [row for row in read_lines(jobs.folder(job).metrics) if "loss" in row]
        finally:
            store.close()
    times = [float(str(row["at"])) for row in steps]
    return {
        "losses": [float(str(row["loss"])) for row in steps],
        "grad_norms": [float(str(row["grad_norm"])) for row in steps],
        "step_s": round(median(later - earlier for earlier, later in pairwise(times)), 3),
    }


SECTIONS: Mapping[str, Callable[[int], dict[str, Any]]] = {"cluster": measure_cluster, "processes": measure_processes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", default=",".join(SECTIONS), help="which, with commas between them")
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for name in options.sections.split(","):
        figures[name] = {**SECTIONS[name](options.episodes), "machine": describe_machine()}
        print(name, json.dumps(figures[name], indent=1 if options.json else None))
    if options.save:
        saved = json.loads(options.save.read_text()) if options.save.exists() else {}
        options.save.write_text(json.dumps({**saved, **figures}, indent=1) + "\n")


def describe_machine() -> dict[str, str | int | None]:
    """Where and when it was measured."""
    day = datetime.now(UTC).date().isoformat()
    return {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.platform(), "day": day}


if __name__ == "__main__":
    main()
