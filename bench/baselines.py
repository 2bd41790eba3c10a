"""Scores the fixed orchestrators and the untrained small model on the same tasks.

    python bench/baselines.py --tasks 20 --level 1 [--json] [--out bench/results/baselines.json]

Everything runs through the real workers of the starter pool; nothing is tuned. The oracle is the ceiling.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from orchestrator.trace import open_store
from pool_registry.home import find_home
from pool_registry.live import live_pool
from pool_registry.starter import starter_pool
from trainer.evaluate import evaluate
from trainer.tasks import SUITES

ORCHESTRATORS = ("oracle", "direct:solver", "fan_out", "pipeline", "model:solver:plan")


async def run(tasks: int, level: int, concurrency: int, names: Sequence[str]) -> list[dict]:
    """One row per orchestrator, all on the same tasks, taken from the families in turn."""
    chosen = [suite.task(level, "test", index) for index in range(tasks) for suite in SUITES.values()][:tasks]
    rows = []
    store = open_store(find_home(tempfile.mkdtemp(prefix="podium-bench-")))
    async with live_pool(starter_pool()) as pool:
        for name in names:
            result = await evaluate(name, chosen, pool, sink=store.traces, concurrency=concurrency)
            cells = {cell.family: [round(cell.mean * cell.tasks), cell.tasks] for cell in result.cells}
            rows.append({**result.model_dump(exclude={"episodes", "cells"}), "by_family": cells})
            sys.stderr.write(f"{name} {result.mean:.2f} in {result.wall_s:.0f} s {result.outcomes}\n")
    store.close()
    return rows


def markdown(rows: list[dict]) -> str:
    """The rows as a table."""
    families = list(SUITES)
    lines = [
        f"| orchestrator | mean, 95 % | {' | '.join(families)} | steps that went well | turns that were none |",
        "|---" * (len(families) + 4) + "|",
    ]
    for row in rows:
        low, high = row["interval"]
        cells = [f"{right} of {count}" for right, count in (row["by_family"][family] for family in families)]
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
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--orchestrators", nargs="+", default=ORCHESTRATORS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = asyncio.run(run(options.tasks, options.level, options.concurrency, options.orchestrators))
    document = json.dumps({"tasks": options.tasks, "level": options.level, "rows": rows}, indent=1)
    if options.out:
        options.out.write_text(document + "\n")
    print(document if options.json else markdown(rows))


if __name__ == "__main__":
    main()
