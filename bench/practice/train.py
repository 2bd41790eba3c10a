"""What *Train on this pool* does to a person's own questions: five pools, twelve each, before and after.

    python bench/practice/train.py [POOL ...] [--tasks 100] [--seed 0] [--home FOLDER] [--out FILE]

Each pool of bench/data/practice_pools is registered, its practice tasks are made, and the questions of
bench/data/practice_questions.yaml that have an answer are added with the split `test`, so that they are measured and
never trained on. The job is that of the button. A pool and seed that stand in the file are not measured again: the same
command goes on. About 25 minutes a pool on two quiet cores.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from bench.foreign_pools import Row, has_pool, podium, train, write_row
from bench.practice.make import NAMES, POOLS
from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import choose_home
from trainer.jobs.outcome import Score, describe_outcome
from trainer.jobs.queue import JobStore
from trainer.tasks.practice.stored import list_own_tasks, open_task_book
from trainer.tasks.sources.jsonl import TaskLine

QUESTIONS = POOLS.with_name("practice_questions.yaml")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pools", nargs="*", metavar="POOL", help=f"{', '.join(NAMES)}; default: all")
    parser.add_argument("--tasks", type=int, default=100, help="of each pool, all splits together")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the lessons, and of the adapter")
    parser.add_argument("--home", type=Path, default=Path("practice-pools"), help="the data folder")
    parser.add_argument("--out", type=Path, default=Path("bench/results/practice_training.json"))
    options = parser.parse_args()
    options.home.mkdir(parents=True, exist_ok=True)
    choose_home(str(options.home))
    rows = json.loads(options.out.read_text(encoding="utf-8")) if options.out.is_file() else []
    measured = {(row["pool"], row["seed"]) for row in rows}
    for name in options.pools or NAMES:
        if (name, options.seed) not in measured:
            row = measure_pool(name, options.tasks, options.seed, options.home.resolve())
            write_row(options.out, row)
            print(json.dumps(row, ensure_ascii=False), flush=True)


def measure_pool(name: str, tasks: int, seed: int, home: Path) -> Row:
    """Register a pool with its questions, train on it, and say what came of both kinds of questions."""
    if not has_pool(home, name):
        podium(home, "pool", "add", name, "--from", f"function:{POOLS / name}.py", "--reads-only")
    if not list_own_tasks(name):
        podium(home, "tasks", "make", "--pool", name, "--count", str(tasks))
        open_task_book(name).add(load_questions(name))
    learnt = sum(task.ref.split == "train" for task in list_own_tasks(name))
    job = train(home, name, learnt, seed)
    with closing(open_store(choose_home(str(home)))) as store:
        jobs = JobStore(store.engine, store.home)
        outcome = describe_outcome(job, jobs.recipe(job), jobs.folder(job))
    assert outcome is not None, "the job measured its checkpoint"
    scores = {"own words": describe_score(outcome.own), "made": describe_score(outcome.made)}
    return {"pool": name, "seed": seed, "learnt": learnt, "verdict": outcome.verdict, **scores}


def load_questions(name: str) -> list[TaskLine]:
    """The questions of a pool in a person's words that a worker can answer, to be measured and never learnt."""
    rows = yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))[name]
    lines = []
    for query, answer, tolerance in rows:
        verifier = {"kind": "number", "tolerance": tolerance} if isinstance(answer, int | float) and tolerance else None
        if answer is not None:
            fields = {"query": query, "answer": answer, "verifier": verifier, "split": "test"}
            lines.append(TaskLine.model_validate(fields))
    return lines


def describe_score(score: Score | None) -> Row:
    return {} if score is None else {"total": score.total, "before": score.before, "after": score.solved}


if __name__ == "__main__":
    main()
