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
from pathlib import Path

from orchestrator.trace import open_store
from pool_registry.home import find_home
from pool_registry.live import live_pool
from pool_registry.starter import starter_pool
from trainer.evaluate import evaluate
from trainer.tasks import SUITES

ORCHESTRATORS = ("oracle", "direct:solver", "fan_out", "pipeline", "model:solver:plan")


async def run(tasks: int, level: int, concurrency: int) -> list[dict]:
    """One row per orchestrator and family."""
    rows = []
    store = open_store(find_home(tempfile.mkdtemp(prefix="podium-bench-")))
    async with live_pool(starter_pool()) as pool:
        for name in ORCHESTRATORS:
            for family, suite in SUITES.items():
                chosen = [suite.task(level, "test", index) for index in range(tasks)]
                result = await evaluate(name, chosen, pool, sink=store.traces, concurrency=concurrency)
                rows.append(result.model_dump(exclude={"episodes"}))
                sys.stderr.write(f"{name} {family} {result.mean:.2f} in {result.wall_s:.0f} s\n")
    store.close()
    return rows


def markdown(rows: list[dict]) -> str:
    """The rows as a table: mean score and 95 % interval by family."""
    families = list(SUITES)
    lines = ["| orchestrator | " + " | ".join(families) + " | steps that went well | turns that were none |"]
    lines.append("|---" * (len(families) + 3) + "|")
    for name in dict.fromkeys(row["orchestrator"] for row in rows):
        mine = {row["family"]: row for row in rows if row["orchestrator"] == name}
        cells = [
            f"{mine[family]['mean']:.2f} [{mine[family]['interval'][0]:.2f}, {mine[family]['interval'][1]:.2f}]"
            for family in families
        ]
        ok = sum(row["statuses"].get("OK", 0) for row in mine.values())
        steps = sum(sum(row["statuses"].values()) for row in mine.values())
        broken = sum(row["turn_errors"] for row in mine.values())
        lines.append(f"| {name} | {' | '.join(cells)} | {ok} of {steps} | {broken} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = asyncio.run(run(options.tasks, options.level, options.concurrency))
    document = json.dumps({"tasks": options.tasks, "level": options.level, "rows": rows}, indent=1)
    if options.out:
        options.out.write_text(document + "\n")
    print(document if options.json else markdown(rows))


if __name__ == "__main__":
    main()
