"""What grammars and votes do: turns that can be read, right answers, and the time per token.

    python bench/grammar.py [--orchestrators starter-grpo smollm2-sft] [--tasks 3] [--condition renamed]
                            [--options "" +unconstrained +samples=4] [--out FILE]

Greedy first turns on test tasks of the train families, levels 1 to 3 (`--tasks` of each), on one pool; the binding of
workers by description is off, so that a renamed pool shows what the grammar alone does. Seconds per token are those of
one query after the other, the pool's calls included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from orchestrator.binding.bind_workers import BindingSettings
from orchestrator.policies.registry import orchestrator_factory
from podium_lessons.sources import TRAIN_FAMILIES
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.starter import starter_pool
from trainer.evaluation.trials import LocalTrials, plan_trials, run_trials
from trainer.results.rows import ResultRow
from trainer.tasks import SUITES
from trainer.tasks.task import Task
from trainer.tasks.task_conditions import apply_condition_to_tasks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orchestrators", nargs="+", default=("starter-grpo", "smollm2-sft"))
    parser.add_argument("--options", nargs="+", default=("+unconstrained", "+constrained"))
    parser.add_argument("--tasks", type=int, default=3)
    parser.add_argument("--condition", default="renamed")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = asyncio.run(measure(options))
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


async def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """One row per orchestrator and option."""
    cells = [(name, level) for name in TRAIN_FAMILIES for level in (1, 2, 3)]
    tasks = [SUITES[name].task(level, "test", i) for name, level in cells for i in range(options.tasks)]
    pool = starter_pool()
    pool = pool.model_copy(update={"limits": pool.limits.model_copy(update={"max_rounds": 1})})
    changed, remapped, _ = apply_condition_to_tasks(options.condition, pool, tasks)
    rows = []
    async with live_pool(changed) as live:
        for name in options.orchestrators:
            for option in options.options:
                row = await measure_one(f"{name}{option}", remapped, CachingPool(live))
                rows.append({"condition": options.condition, **row})
                print(json.dumps(rows[-1]), flush=True)
    return rows


async def measure_one(name: str, tasks: list[Task], pool: LivePool) -> dict[str, Any]:
    """The figures of one orchestrator; a first task warms it up."""
    make = orchestrator_factory(name, pool, binding=BindingSettings(enabled=False))
    rows: list[ResultRow] = []
    runner = LocalTrials(pool, lambda trial: make(None, trial.draw))
    await run_trials(plan_trials(name, tasks[:1]), runner, lambda _: None)
    started = time.perf_counter()
    await run_trials(plan_trials(name, tasks), runner, rows.append, concurrency=1)
    wall = time.perf_counter() - started
    tokens = sum(row.tokens_out for row in rows)
    return {
        "orchestrator": name,
        "tasks": len(rows),
        "right": sum(bool(row.correct) for row in rows),
        "unreadable": sum(row.turn_errors for row in rows),
        "steps": dict(sum((Counter(row.statuses) for row in rows), Counter())),
        "tokens": tokens,
        "ms_per_token": round(1000 * wall / tokens, 2) if tokens else None,
    }


if __name__ == "__main__":
    main()
