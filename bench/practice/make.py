"""Makes 100 practice tasks for each of five pools that are not ours (bench/data/practice_pools), to be read by eye.

    python bench/practice/make.py [POOL ...] [--tasks 100] [--seed 0] [--read 40]

Prints so many tasks of each pool, drawn with the seed: the query, the plan's workers and the answer. What a reader
accepted, and by which criteria, stands in bench/results/practice.json.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from pool_registry.actions import as_text
from pool_registry.calls.live_pool import live_pool
from pool_registry.imports.functions import list_functions
from pool_registry.pool import Pool
from trainer.tasks.practice.make_tasks import PracticeOptions, PracticeTasks, make_practice_tasks
from trainer.tasks.sources.jsonl import TaskLine

POOLS = Path(__file__).parent.parent / "data" / "practice_pools"
NAMES = sorted(file.stem for file in POOLS.glob("*.py"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pools", nargs="*", metavar="POOL", help=f"{', '.join(NAMES)}; default: all")
    parser.add_argument("--tasks", type=int, default=100, help="of each pool, all splits together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--read", type=int, default=40, help="how many of each pool are printed")
    options = parser.parse_args()
    for name in options.pools or NAMES:
        tasks = asyncio.run(make_tasks(name, options.tasks, options.seed))
        print_sample(name, tasks, options.read, options.seed)


async def load_practice_pool(name: str) -> Pool:
    """The functions of a file as a pool. They only look things up, and the pool says so."""
    offers = await list_functions(str(POOLS / f"{name}.py"))
    return Pool(name=name, workers=tuple(offer.spec.model_copy(update={"effects": "none"}) for offer in offers))


async def make_tasks(name: str, count: int, seed: int) -> PracticeTasks:
    async with live_pool(await load_practice_pool(name)) as pool:
        return await make_practice_tasks(pool, PracticeOptions(count=count, seed=seed))


def print_sample(name: str, tasks: PracticeTasks, count: int, seed: int) -> None:
    steps = Counter(len(list_workers(line)) for line in tasks.lines)
    print(f"## {name}: {len(tasks.lines)} tasks, by steps {dict(sorted(steps.items()))}, calls {dict(tasks.calls)}")
    for worker, reason in tasks.reasons.items():
        print(f"left out: {worker}: {reason}")
    lines = list(tasks.lines)
    for line in Random(seed).sample(lines, min(count, len(lines))):
        print(f"{line.query}  [{' > '.join(list_workers(line))} = {as_text(line.answer)}]")


def list_workers(line: TaskLine) -> list[str]:
    """The workers of a task's plan, in order."""
    steps = line.plan["steps"] if line.plan else []
    return [str(step["worker"]) for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


if __name__ == "__main__":
    main()
