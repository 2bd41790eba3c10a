"""What teaches a reader: two designs after equal lessons, and three ways to learn a pool, or new worlds, in equal time.

    python bench/reader_training.py needs copying needs-tiny [--lessons 1000] [--seeds 0] [--tasks 48]
                                    [--cells worlds everyday]
    python bench/reader_training.py plans expert-iteration grpo --minutes 8 --seeds 0 1 2
                                    [--home FOLDER] [--out FILE]
    python bench/reader_training.py plans-worlds expert-iteration-worlds grpo-worlds --minutes 8 --seeds 0 1 2
                                    --cells worlds

Names are recipes in bench/data/training. `needs` and `copying` begin at the base model and see the same tasks and drawn
pools, `needs-tiny` does with a model of 2.4 million parameters; each checkpoint is measured on cells of
bench/generalization.py, so that the rows are a curve over lessons.

The others begin at smollm2-reader and learn the pool of a harbour (SQLite, documents, a calculator; as in
bench/foreign_pools.py) on practice tasks made for it. `plans` has their reference plans, `expert-iteration` and
`grpo` have queries and answers alone. Those that end in `-worlds` learn tasks of worlds that the reader has not seen,
in domains that it knows; they are measured in cells, `worlds` with domains that it does not know. With `--minutes`
each is stopped so long after its process has started, sampling included; its newest checkpoint is measured on the
held-out tasks, as is the reader.

Everything is measured greedily on tasks that no training draws. What is in the file of results is not made again, so
that a run which was cut off goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foreign_pools import estimate, podium, register_database, score

from orchestrator.checkpoints import complete_steps
from pool_registry.storage.data_folder import choose_home
from trainer.jobs.job_folder import read_lines
from trainer.recipe import Recipe, dump_recipe, load_recipe
from trainer.tasks.practice.stored import find_practice_file

BENCH = Path(__file__).parent
RECIPES = BENCH / "data" / "training"
POOL = "database"
START = "smollm2-reader"
MOST_TASKS = 100
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+", choices=sorted(file.stem for file in RECIPES.glob("*.yaml")))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the order of the lessons, and of draws")
    parser.add_argument("--minutes", type=float, help="stop each training so long after its start")
    parser.add_argument("--lessons", type=int, help="how many demonstrations are learnt from; else as the recipe says")
    parser.add_argument("--cells", nargs="+", default=["worlds", "everyday"])
    parser.add_argument("--tasks", type=int, default=48, help="of each cell")
    parser.add_argument("--home", type=Path, default=Path("reader-training"), help="the data folder")
    parser.add_argument("--out", type=Path, default=BENCH / "results" / "reader_training.json")
    options = parser.parse_args()
    options.home.mkdir(parents=True, exist_ok=True)
    choose_home(str(options.home))
    if any(load_training(name).pool == POOL for name in options.recipes):
        make_pool(options.home.resolve(), options.out)
    if any(load_training(name).model.start == START and load_training(name).pool != POOL for name in options.recipes):
        measure_start(options)
    for seed in options.seeds:
        for name in options.recipes:
            measure_recipe(name, seed, options)


def load_training(name: str) -> Recipe:
    return load_recipe(str(RECIPES / f"{name}.yaml"))


def make_pool(home: Path, out: Path) -> None:
    """Register the harbour's pool, make its tasks and measure the reader on those that are held out."""
    with register_database(home):
        if not find_practice_file(POOL).is_file():
            podium(home, "tasks", "make", "--pool", POOL, "--count", "200")
    key = {"recipe": START, "seed": 0}
    if not is_measured(key, out):
        add_rows([{**key, "step": 0, **measure_on_pool(START, home)}], out)


def measure_start(options: argparse.Namespace) -> None:
    """Measure the reader in the cells, as it is before any of the trainings."""
    key = {"recipe": START, "seed": 0, "step": 0}
    cells = [cell for cell in options.cells if not is_measured({**key, "cell": cell}, options.out)]
    add_rows([{**key, **row} for row in measure_cells(START, cells, options)], options.out)


def measure_recipe(name: str, seed: int, options: argparse.Namespace) -> None:
    """Train a recipe with a seed and measure what came of it, but for what the file of results has."""
    key = {"recipe": name, "seed": seed, "minutes": options.minutes}
    if options.lessons:
        key["lessons"] = options.lessons
    if is_measured(key, options.out):
        return
    job, seconds = train(write_recipe(name, seed, options), options.home, options.minutes)
    folder = options.home / "jobs" / job
    steps = sorted(step for step, _ in complete_steps(folder / "checkpoints"))
    if not steps:
        print(f"{job} has no checkpoint: it was stopped before its first step", flush=True)
    for step in steps[-1:] if options.minutes else steps:
        row = {**key, "step": step, "loss": read_loss(folder, step), "train_s": round(seconds)}
        add_rows([{**row, **score} for score in measure_checkpoint(name, f"{job}@{step}", options)], options.out)


def read_rows(file: Path) -> list[Row]:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []


def is_measured(key: Row, file: Path) -> bool:
    return any(row.items() >= key.items() for row in read_rows(file))


def add_rows(rows: Sequence[Row], file: Path) -> None:
    """Print rows and add them to the file of results."""
    print("\n".join(map(json.dumps, rows)), flush=True)
    file.write_text(json.dumps([*read_rows(file), *rows], indent=1) + "\n", encoding="utf-8")


def write_recipe(name: str, seed: int, options: argparse.Namespace) -> Path:
    """Write the recipe with a seed for its stage into the data folder; with so many lessons, where they are given."""
    recipe = load_training(name)
    (stage,) = recipe.stages
    settings = getattr(recipe, stage)
    changes = {"optimizer": settings.optimizer.model_copy(update={"seed": seed})}
    if options.lessons:
        changes["steps"] = max(1, options.lessons // (settings.batch * settings.accumulation))
        recipe = recipe.model_copy(update={"tasks": recipe.tasks.model_copy(update={"count": options.lessons})})
    file = options.home / f"{name}-{seed}.yaml"
    file.write_text(
        dump_recipe(recipe.model_copy(update={stage: settings.model_copy(update=changes)})), encoding="utf-8"
    )
    return file


def train(recipe: Path, home: Path, minutes: float | None) -> tuple[str, float]:
    """Run a job to its end, or for so many minutes. Returns its id, and the seconds that its process took."""
    command = [sys.executable, "-m", "trainer", "train", str(recipe), "--home", str(home)]
    log = recipe.with_suffix(".log")
    started = time.monotonic()
    with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT) as process:
        try:
            process.wait(minutes and 60 * minutes)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # as Ctrl-C: it saves a checkpoint and ends
    seconds = time.monotonic() - started
    printed = log.read_text(encoding="utf-8")
    ended = re.search(r"^(\S+): (done|stopped)$", printed, re.MULTILINE)
    if ended is None:
        raise SystemExit(f"the job of {recipe.name} did not end well:\n{printed}")
    return ended[1], seconds


def read_loss(folder: Path, step: int) -> float | None:
    """The mean loss of the last twenty steps before a checkpoint."""
    losses = [row["loss"] for row in read_lines(folder / "metrics.jsonl") if "loss" in row and row["step"] <= step]
    return round(sum(losses[-20:]) / len(losses[-20:]), 4) if losses else None


def measure_checkpoint(recipe: str, name: str, options: argparse.Namespace) -> list[Row]:
    """What a checkpoint gets right: on the held-out tasks of its pool, or in cells of bench/generalization.py."""
    if load_training(recipe).pool == POOL:
        return [measure_on_pool(name, options.home.resolve())]
    return measure_cells(name, options.cells, options)


def measure_cells(name: str, cells: Sequence[str], options: argparse.Namespace) -> list[Row]:
    """A checkpoint in cells of bench/generalization.py."""
    if not cells:
        return []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        command = [sys.executable, BENCH / "generalization.py", name, "--tasks", str(options.tasks), "--out", out]
        environment = {**os.environ, "PODIUM_HOME": str(options.home.resolve())}
        subprocess.run([*map(str, command), "--cells", *cells], env=environment, check=True)
        rows: Sequence[Row] = json.loads(out.read_text(encoding="utf-8"))["rows"]
    return [{key: row[key] for key in ("cell", "tasks", "correct", "interval", "readable")} for row in rows]


def measure_on_pool(name: str, home: Path) -> Row:
    figures = estimate(score(home, POOL, name, "test", MOST_TASKS))
    interval = [round(figures["low"], 3), round(figures["high"], 3)]
    return {"cell": POOL, "tasks": figures["tasks"], "correct": round(figures["right"], 3), "interval": interval}


if __name__ == "__main__":
    main()
