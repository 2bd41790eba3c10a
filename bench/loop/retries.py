"""What a lesson adds to a second try: failed runs that are right the second time, with their lesson and without.

    python bench/loop/retries.py [--seeds 6] [--questions 40] [--out bench/results/retries.json]

Everything is simulated. Pools of experts with hidden skills (bench/agents) are asked by a simulated planner, which
calls one expert, drawn at random. A question whose answer is wrong is tried twice more, once as it is and once with the
lesson that is written by rule before it: one turn and one call each. `heed` is the share of lessons that the planner
heeds; then it calls none of the experts that the lesson names. Chances are not assumed but come from the experts. So
this is what a rule's lesson is worth to a planner that reads it, and no figure of a real model. Differences are paired
by failed run, with 95 % intervals bootstrapped over them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.agents.cases import draw_tasks, make_task
from bench.agents.experts import serve_experts
from bench.agents.ground import draw_ground
from bench.support.device import describe_machine
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import NoSink
from orchestrator.failure_memory.write_lesson import has_failed, write_by_rule
from orchestrator.policies.registry import make_orchestrator
from podium_lessons.agents.cases import Book
from pool_registry.calls.live_pool import LivePool, live_pool
from trainer.evaluation.trials import run_task
from trainer.results.statistics import Estimate, bootstrap_difference, bootstrap_mean
from trainer.tasks.task import Task

HEEDS = (0.0, 0.5, 1.0)
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6, help="pools of experts")
    parser.add_argument("--questions", type=int, default=40, help="of each pool")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = [row for seed in range(options.seeds) for row in asyncio.run(try_pool(seed, options.questions))]
    report = {
        "simulated": True,
        "machine": describe_machine(),
        "pools": options.seeds,
        "questions": options.seeds * options.questions,
        "heed": [summarize(rows, heed) for heed in HEEDS],
    }
    print(json.dumps(report["heed"], indent=1))
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


async def try_pool(seed: int, questions: int) -> list[Row]:
    """A row for each failed run of a pool and each share of lessons that are heeded."""
    ground, book = draw_ground(seed, True), Book(seed)
    tasks = [make_task(book, task) for task in draw_tasks(ground, book, "route", questions)]
    names = [expert.name for expert in ground.experts]
    random = Random(f"{seed}/planner")
    rows = []
    with serve_experts(ground, book, pace=0.0) as pool:
        async with live_pool(pool) as live:
            for task in tasks:
                failed = await ask(task, random.choice(names), live)
                lesson = write_by_rule(failed) if has_failed(failed) else None
                if lesson is None:
                    continue
                without = await ask(task, random.choice(names), live)
                others = [name for name in names if name not in lesson]
                for heed in HEEDS:
                    heeds = bool(others) and random.random() < heed
                    again = await ask(task, random.choice(others if heeds else names), live)
                    rows.append({"heed": heed, "with": describe(again), "without": describe(without)})
    return rows


async def ask(task: Task, expert: str, live: LivePool) -> Episode:
    """One run in which the planner calls this expert."""
    return await run_task(task, make_orchestrator(f"direct:{expert}", live), live, NoSink())


def describe(episode: Episode) -> Row:
    graded = episode.graded
    return {"right": graded is not None and graded.correct, "cost": episode.usage.cost}


def summarize(rows: Sequence[Row], heed: float) -> Row:
    """The shares that a second try turns right, and their difference, each with its interval."""
    chosen = [row for row in rows if row["heed"] == heed]
    shares = {
        side: estimate(bootstrap_mean([float(row[side]["right"]) for row in chosen])) for side in ("with", "without")
    }
    difference = bootstrap_difference([float(row["with"]["right"]) - row["without"]["right"] for row in chosen])
    costs = {
        f"cost_{side}": round(sum(row[side]["cost"] for row in chosen) / len(chosen), 5) for side in ("with", "without")
    }
    return {"heed": heed, "failed": len(chosen), **shares, "difference": estimate(difference), **costs}


def estimate(value: Estimate) -> list[float]:
    return [round(value.mean, 3), round(value.low, 3), round(value.high, 3)]


if __name__ == "__main__":
    main()
