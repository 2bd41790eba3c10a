"""How well checkpoints say that a query is out of their depth, without asking the model anything.

    python bench/depth.py [CHECKPOINT ...] [--count 200] [--json]

For each checkpoint: AUROC of the score on test tasks of its own sources (names and numbers that no training task has)
against the 60 queries of assets/tasks/far_out.yaml that no calibration saw, against the held-out families, and against
plain questions that people ask; how often it warns on each; and the Brier score of held-in against far-out queries.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from orchestrator.checkpoints import STARTERS, find_checkpoint, is_complete, starter_checkpoint
from orchestrator.out_of_depth.gauge import THRESHOLD
from orchestrator.out_of_depth.learnt_queries import FILE, load_learnt_queries
from orchestrator.retrieval import sentence_vectors
from trainer.learner.fit_depth import list_queries, load_far_out, measure_auroc
from trainer.recipe_sections import TaskSettings
from trainer.tasks import list_held_out_families

EVERYDAY = "everyday:held_out"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="*")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = options.checkpoints or [name for name in STARTERS if _has_file(starter_checkpoint(name))]
    results = {name: measure_checkpoint(name, options.count) for name in names}
    print(json.dumps(results, indent=1) if options.json else format_table(results))


def measure_checkpoint(name: str, count: int) -> dict[str, Any]:
    """The figures of one checkpoint."""
    folder, checkpoint = find_checkpoint(name)
    learnt = load_learnt_queries(folder)
    if learnt is None:
        raise SystemExit(f"{name} has no {FILE}; write it with scripts/add_learnt_queries.py")
    tasks = TaskSettings.model_validate(checkpoint.recipe["tasks"])
    groups = {
        "held in": list_queries(tasks, "test", count),
        "far out": list(load_far_out().test)[:count],
        "held-out families": _list_others(",".join(list_held_out_families()), count),
        "everyday": _list_others(EVERYDAY, count),
    }
    scores = {
        group: [learnt.judge(float(nearest)) for nearest in learnt.compare(sentence_vectors.embed(queries))]
        for group, queries in groups.items()
    }
    inside, outside = scores["held in"], scores["far out"]
    brier = sum(p * p for p in inside) / len(inside) / 2 + sum((1 - p) ** 2 for p in outside) / len(outside) / 2
    return {
        "queries": len(learnt.vectors),
        "kilobytes": round((folder / FILE).stat().st_size / 1000),
        "auroc": {group: round(measure_auroc(inside, rows), 4) for group, rows in scores.items() if group != "held in"},
        "warned": {group: round(sum(p >= THRESHOLD for p in rows) / len(rows), 3) for group, rows in scores.items()},
        "brier": round(brier, 4),
    }


def format_table(results: dict[str, dict[str, Any]]) -> str:
    """The results as lines for a terminal."""
    lines = []
    for name, row in results.items():
        auroc = ", ".join(f"{group} {value:.3f}" for group, value in row["auroc"].items())
        warned = ", ".join(f"{group} {100 * value:.0f} %" for group, value in row["warned"].items())
        lines += [f"{name} ({row['queries']} queries, {row['kilobytes']} kB, Brier {row['brier']:.3f})"]
        lines += [f"  AUROC against held-in test tasks: {auroc}", f"  warned: {warned}"]
    return "\n".join(lines)


def _list_others(source: str, count: int) -> list[str]:
    return list_queries(TaskSettings(source=source), "test", count)


def _has_file(folder: Path) -> bool:
    return is_complete(folder) and (folder / FILE).is_file()


if __name__ == "__main__":
    main()
