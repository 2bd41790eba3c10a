"""How long it takes to grade stored episodes again, by tasks whose answers have changed.

    python bench/speed/regrade.py [--json] [--episodes N ...]

The episodes are made here and stored as an evaluation stores them: 200 tasks, half of them with another answer than
before. The bound in the same run is reading the job's results alone, which every comparison does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

SIZES = (1_000, 10_000)
TASKS = 200
GOAL_S = 10.0  # for the last size


@dataclass(frozen=True, slots=True)
class RegradeTimes:
    """Seconds for so many episodes: reading the results, grading them again with the ranking, and storing that."""

    episodes: int
    changed: int
    read_s: float
    grade_s: float
    keep_s: float


def measure(episodes: int) -> RegradeTimes:
    """Grade the episodes of a made-up job in a data folder of its own."""
    from orchestrator.traces.store import open_store
    from pool_registry.pool import Pool
    from pool_registry.storage.data_folder import choose_home
    from trainer.jobs.job_folder import JobFolder

    with tempfile.TemporaryDirectory() as home:
        store = open_store(choose_home(home))
        folder = JobFolder(Path(home) / "jobs" / "made-up")
        folder.path.mkdir(parents=True)
        _store_episodes(store, folder, episodes)
        times = asyncio.run(_grade(store, folder, Pool(name="sums"), episodes))
        store.close()
    return times


def _store_episodes(store: Any, folder: Any, count: int) -> None:
    from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, Graded
    from trainer.results.rows import ResultRow

    zeros = dict.fromkeys(("turn_errors", "failed_calls", "tokens_in", "tokens_out", "serial_s", "cost"), 0)
    ones = dict.fromkeys(("level", "turns", "steps", "depth", "width", "wall_s"), 1)
    lines = []
    for number in range(count):
        task, key = number % TASKS, f"episode-{number}"
        query = f"What is {task} plus 1?"
        start = EpisodeStarted(query, "sums", "0" * 64, "oracle", {}, "2026-01-01T00:00:00Z", source="evaluation")
        for event in (start, EpisodeEnded("answered", 1.0, task + 1), Graded(True, str(task + 1), 1.0)):
            store.traces.append(key, event)
        place = {"orchestrator": "oracle", "source": "file:sums", "family": "sums", "split": "test", "index": task}
        verdict = {"correct": True, "outcome": "answered", "statuses": {"OK": 1}, "workers": {"calculator": 1}}
        fields = place | verdict | zeros | ones | {"sample": number // TASKS, "query": query, "episode": key}
        lines.append(ResultRow.model_validate(fields).model_dump_json())
    store.traces.flush()
    folder.results.write_text("".join(f"{line}\n" for line in lines))


async def _grade(store: Any, folder: Any, pool: Any, episodes: int) -> RegradeTimes:
    from pool_registry.calls.live_pool import live_pool
    from trainer.evaluation.regrading import keep_regrading, read_finished_results, regrade
    from trainer.tasks.sources.jsonl import load_tasks
    from trainer.tasks.task import normalize_query

    file = folder.path / "sums.jsonl"
    answers = [task + 1 if task % 2 else 1000 for task in range(TASKS)]
    lines = ({"query": f"What is {task} plus 1?", "answer": answer} for task, answer in enumerate(answers))
    file.write_text("\n".join(map(json.dumps, lines)))
    tasks = {normalize_query(task.query): task for task in load_tasks(file).tasks}
    began = time.perf_counter()
    rows = read_finished_results(folder, "made-up", is_running=False)
    read_at = time.perf_counter()
    async with live_pool(pool) as live:
        regrading = await regrade(rows, tasks, store, live)
    regrading.rank()
    graded_at = time.perf_counter()
    keep_regrading(regrading, folder, store)
    kept_at = time.perf_counter()
    times = (read_at - began, graded_at - read_at, kept_at - graded_at)
    return RegradeTimes(episodes, len(regrading.changed_rows), *(round(seconds, 2) for seconds in times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--episodes", nargs="+", type=int, default=SIZES, metavar="N")
    arguments = parser.parse_args()
    times = [measure(count) for count in arguments.episodes]
    if arguments.json:
        print(json.dumps([asdict(row) for row in times], indent=1))
        return
    for row in times:
        print(f"{row.episodes:>6,} episodes: read {row.read_s} s, graded {row.grade_s} s, stored {row.keep_s} s")
    print(f"goal for {SIZES[-1]:,}: graded in {GOAL_S:g} s")


if __name__ == "__main__":
    main()
