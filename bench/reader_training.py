"""What teaches a reader: two designs after equal lessons, and three ways to go on in equal time.

    python bench/reader_training.py needs copying [--seeds 0]
    python bench/reader_training.py more-sft expert-iteration grpo --minutes 10 --seeds 0 1 2
                                    [--tasks 48] [--cells worlds everyday] [--home FOLDER] [--out FILE]

Names are recipes in bench/data/reader_training. `needs` and `copying` begin at the base model and see the same tasks
and pools; each checkpoint is measured, so that the rows are a curve over lessons. The others begin at smollm2-reader
and learn on the same new tasks; with `--minutes` each is stopped so long after its process has started, sampling
included, and its newest checkpoint is measured. Measured are cells of bench/generalization.py, greedily, whose tasks no
training draws. What is in the file of results is not made again, so that a run which was cut off goes on.
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

from orchestrator.checkpoints import complete_steps
from trainer.jobs.job_folder import read_lines
from trainer.recipe import dump_recipe, load_recipe

BENCH = Path(__file__).parent
RECIPES = BENCH / "data" / "reader_training"
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+", choices=sorted(file.stem for file in RECIPES.glob("*.yaml")))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the order of the lessons, and of draws")
    parser.add_argument("--minutes", type=float, help="stop each training so long after its start")
    parser.add_argument("--cells", nargs="+", default=["worlds", "everyday"])
    parser.add_argument("--tasks", type=int, default=48, help="of each cell")
    parser.add_argument("--home", type=Path, default=Path("reader-training"), help="the data folder")
    parser.add_argument("--out", type=Path, default=BENCH / "results" / "reader_training.json")
    options = parser.parse_args()
    options.home.mkdir(parents=True, exist_ok=True)
    for seed in options.seeds:
        for name in options.recipes:
            measure_recipe(name, seed, options)


def measure_recipe(name: str, seed: int, options: argparse.Namespace) -> None:
    """Train a recipe with a seed and measure what came of it, but for what the file of results has."""
    key = {"recipe": name, "seed": seed, "minutes": options.minutes}
    if any(row.items() >= key.items() for row in read_rows(options.out)):
        return
    job, seconds = train(write_recipe(name, seed, options.home), options.home, options.minutes)
    folder = options.home / "jobs" / job
    steps = sorted(step for step, _ in complete_steps(folder / "checkpoints"))
    rows = [
        {**key, "step": step, **read_loss(folder, step), "train_s": round(seconds), **score}
        for step in (steps[-1:] if options.minutes else steps)
        for score in measure_checkpoint(f"{job}@{step}", options)
    ]
    options.out.write_text(json.dumps([*read_rows(options.out), *rows], indent=1) + "\n", encoding="utf-8")


def read_rows(file: Path) -> list[Row]:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []


def write_recipe(name: str, seed: int, home: Path) -> Path:
    """Write the recipe with a seed for its stage into the data folder."""
    recipe = load_recipe(str(RECIPES / f"{name}.yaml"))
    (stage,) = recipe.stages
    settings = getattr(recipe, stage)
    seeded = settings.model_copy(update={"optimizer": settings.optimizer.model_copy(update={"seed": seed})})
    file = home / f"{name}-{seed}.yaml"
    file.write_text(dump_recipe(recipe.model_copy(update={stage: seeded})), encoding="utf-8")
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
    printed = log.read_text(encoding="utf-8")
    seconds = time.monotonic() - started
    ended = re.search(r"^(\S+): (done|stopped)$", printed, re.MULTILINE)
    if ended is None:
        raise SystemExit(f"the job of {recipe.name} did not end well:\n{printed}")
    return ended[1], seconds


def read_loss(folder: Path, step: int) -> Row:
    """The mean loss of a checkpoint's last twenty steps."""
    figures = [row for row in read_lines(folder / "metrics.jsonl") if row.get("step", 0) <= step]
    losses = [row["loss"] for row in figures if "loss" in row][-20:]
    return {"loss": round(sum(losses) / len(losses), 4)} if losses else {}


def measure_checkpoint(name: str, options: argparse.Namespace) -> list[Row]:
    """The rows of bench/generalization.py for a checkpoint of the data folder."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        command = [sys.executable, BENCH / "generalization.py", name, "--tasks", str(options.tasks), "--out", out]
        environment = {**os.environ, "PODIUM_HOME": str(options.home.resolve())}
        subprocess.run([*map(str, command), "--cells", *options.cells], env=environment, check=True)
        rows: Sequence[Row] = json.loads(out.read_text(encoding="utf-8"))["rows"]
    return [{key: row[key] for key in ("cell", "tasks", "correct", "interval", "readable")} for row in rows]


if __name__ == "__main__":
    main()
