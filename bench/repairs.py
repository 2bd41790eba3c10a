"""What each repair of a reader's turns brings, and what the model does alone.

    python bench/repairs.py [CHECKPOINT] [--cells fresh blind projects plain everyday worlds] [--tasks 100]
                            [--minutes 60] [--share 1/1] [--kept build/repairs.jsonl]
                            [--out bench/results/repairs.json]

Every task of a cell (bench/generalization.py; `everyday`: at odd places) runs once as shipped, once without any repair,
and once without each repair that acted in it (`Turn.repairs`). Where a repair did not act the episode without it is the
same one: models are greedy, and other plans are drawn by the query. So differences are paired, task by task.
`gain`: the share that is right as shipped less the share that is right without, with a 95 % interval, bootstrapped over
tasks. `acted`: the tasks whose episode it changed. Episodes are kept as they are done: a run that was cut off goes on
where it stopped, and there is a row only where all tasks of a cell are done. Several processes share the work as
`--share 1/4`, `2/4` ...: each runs every fourth task, and all keep their episodes in one file. The cell `pools` is
fresh, blind and projects together: what people asked of pools that no training had.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.generalization import CELLS, Outcome, run_cell
from orchestrator.orchestrator_name import TurnOptions, add_options
from orchestrator.repairs.table import ALL, REPAIRS
from trainer.results.statistics import bootstrap_difference, bootstrap_mean
from trainer.tasks.task import Task

POOLS = ("fresh", "blind", "projects")
CELLS_IN_ORDER = (*POOLS, "plain", "everyday", "worlds")
AS_SHIPPED = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One episode: its task, the repair that was off (AS_SHIPPED for none), whether it was right, and what acted."""

    cell: str
    index: int
    without: str
    correct: bool
    repairs: tuple[str, ...]


class Results:
    """The episodes so far, in a file of one line each."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._results: dict[tuple[str, int, str], Result] = {}
        for line in file.read_text().splitlines() if file.exists() else ():
            self._keep(Result(**json.loads(line)))

    def add(self, results: Iterable[Result]) -> None:
        """Keep these results on disk, too."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as lines:
            for result in results:
                self._keep(result)
                row = {name: getattr(result, name) for name in Result.__slots__}
                lines.write(json.dumps(row) + "\n")
                lines.flush()  # a line at a time: other processes write here, too

    def get(self, cell: str, index: int, without: str) -> Result | None:
        """The episode of a task without a repair: that as shipped where the repair did not act in it."""
        shipped = self._results.get((cell, index, AS_SHIPPED))
        if shipped is not None and (not shipped.repairs or without not in (*shipped.repairs, ALL)):
            return shipped
        return self._results.get((cell, index, without))

    def _keep(self, result: Result) -> None:
        self._results[result.cell, result.index, result.without] = result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", nargs="?", default="smollm2-reader")
    parser.add_argument("--cells", nargs="+", choices=CELLS_IN_ORDER, default=CELLS_IN_ORDER)
    parser.add_argument("--tasks", type=int, default=100, help="of each cell")
    parser.add_argument("--minutes", type=float, default=60, help="no batch of episodes starts after so many")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument(
        "--share", type=read_share, default=(1, 1), metavar="I/N", help="run every N-th task, from the I-th on"
    )
    parser.add_argument("--kept", type=Path, default=Path("build/repairs.jsonl"))
    parser.add_argument("--out", type=Path)
    parser.set_defaults(show=0, unbound=False)  # of bench/generalization.py
    options = parser.parse_args()
    results = Results(options.kept)
    tasks = {cell: draw_tasks(cell, options.tasks) for cell in options.cells}
    ends_at = time.monotonic() + 60 * options.minutes
    for cell in options.cells:
        measure_cell(cell, tasks[cell], results, options, ends_at)
    rows = list(build_rows({cell: len(tasks[cell]) for cell in options.cells}, results))
    print_rows(rows)
    if options.out:
        options.out.write_text(json.dumps({"checkpoint": options.checkpoint, "rows": rows}, indent=1) + "\n")


def read_share(text: str) -> tuple[int, int]:
    place, count = map(int, text.split("/"))
    if not 1 <= place <= count:
        raise argparse.ArgumentTypeError("write 1/4, 2/4, 3/4 or 4/4 for four processes")
    return place, count


def draw_tasks(cell: str, count: int) -> list[Task]:
    return CELLS[cell](2 * count)[1::2][:count] if cell == "everyday" else CELLS[cell](count)


def measure_cell(
    cell: str, tasks: Sequence[Task], results: Results, options: argparse.Namespace, ends_at: float
) -> None:
    """Run what is missing of a cell: as shipped first, then the model alone, then without each repair."""
    place, count = options.share
    for without in (AS_SHIPPED, ALL, *REPAIRS):
        missing = [index for index in range(place - 1, len(tasks), count) if results.get(cell, index, without) is None]
        while missing and time.monotonic() < ends_at:
            batch, missing = missing[: 2 * options.concurrency], missing[2 * options.concurrency :]
            names = (without,) if without else ()
            name = add_options(options.checkpoint, TurnOptions(without=names))
            outcomes = asyncio.run(run_cell(name, [tasks[index] for index in batch], options))
            results.add(read_results(cell, batch, without, outcomes))
            print(f"{cell}, {without or 'as shipped'}: {len(missing)} to go", file=sys.stderr, flush=True)


def read_results(cell: str, indices: Sequence[int], without: str, outcomes: Sequence[Outcome]) -> list[Result]:
    return [
        Result(cell, index, without, outcome.correct, tuple(sorted(outcome.repairs)))
        for index, outcome in zip(indices, outcomes, strict=True)
    ]


def build_rows(counts: dict[str, int], results: Results) -> Iterable[dict[str, Any]]:
    """A row for each cell and repair, and for the pools of people together. None where a task is missing: those that
    are there first are the ones in which the repair did not act."""
    groups = {cell: [cell] for cell in counts}
    if counts.keys() >= set(POOLS):
        groups["pools"] = list(POOLS)
    for group, cells in groups.items():
        for without in (ALL, *REPAIRS):
            pairs = [
                (shipped, other)
                for cell in cells
                for index in range(counts[cell])
                if (shipped := results.get(cell, index, AS_SHIPPED)) and (other := results.get(cell, index, without))
            ]
            if pairs and len(pairs) == sum(counts[cell] for cell in cells):
                yield build_row(group, without, pairs)


def build_row(cell: str, without: str, pairs: Sequence[tuple[Result, Result]]) -> dict[str, Any]:
    gain = bootstrap_difference([float(shipped.correct) - float(other.correct) for shipped, other in pairs])
    return {
        "cell": cell,
        "without": without,
        "tasks": len(pairs),
        "acted": sum(shipped is not other for shipped, other in pairs),
        "shipped": round(bootstrap_mean([float(shipped.correct) for shipped, _ in pairs]).mean, 3),
        "right": round(bootstrap_mean([float(other.correct) for _, other in pairs]).mean, 3),
        "gain": round(gain.mean, 3),
        "interval": [round(gain.low, 3), round(gain.high, 3)],
    }


def print_rows(rows: Iterable[dict[str, Any]]) -> None:
    for row in rows:
        low, high = row["interval"]
        print(
            f"{row['cell']:9} without {row['without']:17} {row['right']:.3f} of {row['tasks']:3}, "
            f"gain {row['gain']:+.3f} [{low:+.3f}, {high:+.3f}], acted in {row['acted']}"
        )


if __name__ == "__main__":
    main()
