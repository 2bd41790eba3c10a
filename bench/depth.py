"""How well checkpoints say that a query is out of their depth, without asking the model anything.

    python bench/depth.py [CHECKPOINT ...] [--count 200] [--learnt-alone] [--json]

For each checkpoint: AUROC of the score on test tasks of its own sources (names and numbers that no training task has)
against the 60 queries of assets/tasks/far_out.yaml that no calibration saw, against the held-out families, and against
plain questions that people ask; how often it warns on each; and the Brier score of held-in against far-out queries.

A reader is also measured where it should not warn, on worlds whose domains are kept from training and on pools of
people; for it far-out queries are asked of pools of each kind in turn. `--learnt-alone` judges it by the queries that
it learnt from, without the workers of the pool.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import cycle
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.generalization import find_pool, leave_out_refusals, load_pools
from orchestrator.checkpoints import STARTERS, find_checkpoint, is_complete, starter_checkpoint
from orchestrator.out_of_depth.gauge import THRESHOLD, measure_depth
from orchestrator.out_of_depth.learnt_queries import FILE, load_learnt_queries
from orchestrator.policies.fallback import BEYOND
from orchestrator.reader.bind_needs import measure_likeness
from podium_lessons.sources import HELD_OUT_FAMILIES
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.pool import Pool
from trainer.learner.fit_depth import load_far_out, measure_auroc
from trainer.recipe_sections import TaskSettings
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task
from trainer.tasks.verifier import RefusalVerifier

EVERYDAY = "everyday:held_out"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="*")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--learnt-alone", action="store_true", help="leave the workers of the pool out")
    options = parser.parse_args()
    names = options.checkpoints or [name for name in STARTERS if _has_file(starter_checkpoint(name))]
    results = {name: measure_checkpoint(name, options.count, options.learnt_alone) for name in names}
    print(json.dumps(results, indent=1) if options.json else format_table(results))


def measure_checkpoint(name: str, count: int, learnt_alone: bool = False) -> dict[str, Any]:
    """The figures of one checkpoint."""
    folder, checkpoint = find_checkpoint(name)
    learnt = load_learnt_queries(folder)
    if learnt is None:
        raise SystemExit(f"{name} has no {FILE}; write it with scripts/add_learnt_queries.py")
    settings = TaskSettings.model_validate(checkpoint.recipe["tasks"])
    groups = {
        "held in": draw(settings.source, count, settings.seed, settings.levels),
        "held-out families": draw(",".join(HELD_OUT_FAMILIES), count),
        "everyday": draw(EVERYDAY, count),
    }
    if is_reader := checkpoint.is_reader:
        groups["other worlds"] = leave_out_refusals("worlds:held_out")(count)
        people = [*load_pools("own")(count), *load_pools("fresh")(count)]
        groups["pools of people"] = [task for task in people if not isinstance(task.verifier, RefusalVerifier)]
    queries = {group: [(task.query, find_pool(task)) for task in tasks] for group, tasks in groups.items()}
    pools = [pool for group in queries.values() for _, pool in group[:8]]
    queries["far out"] = list(zip(load_far_out().test[:count], cycle(pools), strict=False))

    def score(query: str, pool: Pool) -> float:
        workers = list(open_live_pool(pool).workers.values())
        likeness = measure_likeness(query, workers) if is_reader and not learnt_alone else None
        depth = measure_depth(folder, query, likeness=likeness)
        assert depth is not None, "the file is there"
        return depth.probability

    scores = {group: [score(*row) for row in rows] for group, rows in queries.items()}
    inside, outside = scores["held in"], scores["far out"]
    brier = sum(p * p for p in inside) / len(inside) / 2 + sum((1 - p) ** 2 for p in outside) / len(outside) / 2
    return {
        "queries": len(learnt.vectors),
        "kilobytes": round((folder / FILE).stat().st_size / 1000),
        "auroc": {group: round(measure_auroc(inside, rows), 4) for group, rows in scores.items() if group != "held in"},
        "warned": {group: round(sum(p >= THRESHOLD for p in rows) / len(rows), 3) for group, rows in scores.items()},
        "not asked": {group: round(sum(p >= BEYOND for p in rows) / len(rows), 3) for group, rows in scores.items()},
        "brier": round(brier, 4),
    }


def draw(source: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
    return open_source(source).tasks("test", count, seed, levels)


def format_table(results: dict[str, dict[str, Any]]) -> str:
    """The results as lines for a terminal."""
    lines = []
    for name, row in results.items():
        auroc = ", ".join(f"{group} {value:.3f}" for group, value in row["auroc"].items())
        warned = ", ".join(f"{group} {100 * value:.0f} %" for group, value in row["warned"].items())
        lines += [f"{name} ({row['queries']} queries, {row['kilobytes']} kB, Brier {row['brier']:.3f})"]
        unasked = ", ".join(f"{group} {100 * value:.0f} %" for group, value in row["not asked"].items())
        lines += [f"  AUROC against held-in test tasks: {auroc}", f"  warned: {warned}", f"  not asked: {unasked}"]
    return "\n".join(lines)


def _has_file(folder: Path) -> bool:
    return is_complete(folder) and (folder / FILE).is_file()


if __name__ == "__main__":
    main()
