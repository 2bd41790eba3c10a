"""Run the reference plans of generated worlds and show those that do not give the answer of the tables.

python -m podium_lessons.scripts.check_worlds --count 2000 [--source worlds:held_out] [--split test] [--show 10]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from itertools import groupby

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.baselines.oracle import OraclePolicy
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import live_pool
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task
from trainer.tasks.verifier import JudgeCheck, PythonCheck


async def list_failures(tasks: list[Task]) -> list[tuple[Task, JsonValue]]:
    """The tasks whose reference plan gives another answer, with that answer."""
    failures: list[tuple[Task, JsonValue]] = []
    for pool, group in groupby(tasks, key=lambda task: task.pool):
        assert pool is not None, "every task of a world has a pool"
        async with live_pool(pool) as live:
            for task in group:
                assert not isinstance(task.verifier, PythonCheck | JudgeCheck), "worlds need no sandbox to grade"
                assert task.oracle_turn is not None, "every task of a world has a reference plan"
                episode = await run_episode(EpisodeSpec(task.query), OraclePolicy(task.oracle_turn), live)
                statuses = {record.observation.status.value for record in episode.steps.values() if record.observation}
                if not task.verifier.accepts(episode.answer) or statuses - {"OK"}:
                    failures.append((task, episode.answer))
    return failures


def describe_task(task: Task) -> str:
    """A task with its plan, on several lines."""
    turn = task.oracle_turn
    assert turn is not None, "every task of a world has a reference plan"
    steps = [f"   {step.id}. {step.need} -> {step.worker} {dict(step.arguments)} {step.access}" for step in turn.steps]
    return "\n".join([f"[{task.ref.level}] {task.query}", *steps, f"   = {turn.answer}  ({task.expected})"])


def main() -> None:
    """Generate, run and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--source", default="worlds")
    parser.add_argument("--split", default="train")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=10, help="how many tasks to print")
    options = parser.parse_args()
    start = time.perf_counter()
    tasks = open_source(options.source).tasks(options.split, options.count, options.seed)
    seconds = time.perf_counter() - start
    print("\n".join(describe_task(task) for task in tasks[: options.show]))
    steps = Counter(len(task.oracle_turn.steps) for task in tasks if task.oracle_turn)
    sizes = [len(task.pool.workers) for task in tasks if task.pool]
    print(f"{len(tasks):,} tasks in {seconds:.1f} s; steps {dict(sorted(steps.items()))}; ")
    print(f"workers a pool: {min(sizes)} to {max(sizes)}, {sum(sizes) / len(sizes):.1f} on average")
    failures = asyncio.run(list_failures(tasks))
    for task, answer in failures[:10]:
        print(f"FAILS with {answer!r}\n{describe_task(task)}")
    print(f"{1 - len(failures) / len(tasks):.4f} of the reference plans are right")


if __name__ == "__main__":
    main()
