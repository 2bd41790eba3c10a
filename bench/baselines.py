"""Scores the fixed orchestrators and the untrained small model on the same tasks.

    python bench/baselines.py [--json] [--out bench/results/baselines.json]

Everything runs through the real workers of the starter pool; nothing is tuned. The oracle is the ceiling.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Limits
from pool_registry.starter import starter_pool
from pool_registry.storage.data_folder import find_home
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.results.summary import Evaluation
from trainer.tasks import SUITES

ORCHESTRATORS = (
    "oracle", "direct:solver", "fan_out", "pipeline", "model:solver:plan",
    "cascade", "router", "group_chat", "react", "random_plan",
)  # fmt: skip


async def run(options: argparse.Namespace, keep: Callable[[dict], None]) -> None:
    """One row per orchestrator, all on the same tasks, taken from the families in turn."""
    tasks = [suite.task(options.level, "test", index) for index in range(options.tasks) for suite in SUITES.values()]
    tasks = tasks[: options.tasks]
    limits = Limits(max_rounds=options.rounds, deadline_s=3600)
    store = open_store(find_home(tempfile.mkdtemp(prefix="podium-bench-")))
    async with live_pool(starter_pool().model_copy(update={"limits": limits})) as pool:
        for name in options.orchestrators:
            result = await evaluate_orchestrator(name, tasks, pool, sink=store.traces, concurrency=options.concurrency)
            keep(row_of(result))
            sys.stderr.write(f"{name} {result.mean:.2f} in {result.wall_s:.0f} s {result.outcomes}\n")
    store.close()


def row_of(result: Evaluation) -> dict:
    """An evaluation's figures, with (right, tasks) by family."""
    cells = {cell.family: [round(cell.mean * cell.tasks), cell.tasks] for cell in result.cells}
    return {**result.model_dump(exclude={"episodes", "cells"}), "by_family": cells}


def markdown(rows: list[dict]) -> str:
    """The rows as a table."""
    families = [name for name in SUITES if any(name in row["by_family"] for row in rows)]
    lines = [
        f"| orchestrator | mean, 95 % | {' | '.join(families)} | steps that went well | turns that were none |",
        "|---" * (len(families) + 4) + "|",
    ]
    for row in rows:
        low, high = row["interval"]
        cells = [
            f"{right} of {count}" for right, count in (row["by_family"].get(family, (0, 0)) for family in families)
        ]
        ok, steps = row["statuses"].get("OK", 0), sum(row["statuses"].values())
        lines.append(
            f"| {row['orchestrator']} | {row['mean']:.2f} [{low:.2f}, {high:.2f}] | {' | '.join(cells)} "
            f"| {ok} of {steps} | {row['turn_errors']} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2, help="turns that an orchestrator may take")
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--orchestrators", nargs="+", default=ORCHESTRATORS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path, help="written after each row; rows that are there already are kept")
    options = parser.parse_args()
    about = {"tasks": options.tasks, "level": options.level}
    rows: dict[str, dict] = {}
    if options.out and options.out.exists():
        before = json.loads(options.out.read_text())
        if {name: before[name] for name in about} == about:
            rows = {row["orchestrator"]: row for row in before["rows"]}

    def keep(row: dict) -> None:
        rows[row["orchestrator"]] = row
        if options.out:
            options.out.write_text(json.dumps({**about, "rows": list(rows.values())}, indent=1) + "\n")

    asyncio.run(run(options, keep))
    listed = list(rows.values())
    print(json.dumps({**about, "rows": listed}, indent=1) if options.json else markdown(listed))


if __name__ == "__main__":
    main()
