"""The whole way of *Train on this pool* on a pool of simulated experts: questions without plans, the preset
`own-agents`, and what its job measures on further questions of the same topics."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.agents.cases import draw_tasks, make_task
from bench.agents.experts import serve_experts
from bench.agents.ground import draw_ground, judge_best, judge_single
from bench.agents.rows import Row
from orchestrator.traces.store import open_store
from podium_lessons.agents.cases import Book
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from trainer.job_process import run_job
from trainer.jobs.outcome import describe_outcome, group_by_orchestrator
from trainer.jobs.queue import JobStore
from trainer.pool_recipe import AGENTS, build_pool_recipe
from trainer.recipe import Recipe
from trainer.results.rows import read_results
from trainer.results.statistics import mean

TESTED = 40


def measure_button(options: argparse.Namespace) -> Iterator[Row]:
    """A row for each orchestrator of the job of each seed: `--tasks` questions to learn from, 40 to measure on."""
    for seed in range(options.seeds):
        with TemporaryDirectory() as home:
            os.environ["PODIUM_HOME"] = home
            yield from train_on_ground(seed, options.tasks, options.steps, Path(home))


def train_on_ground(seed: int, questions: int, steps: int, home: Path) -> Iterator[Row]:
    """Train on the pool of a seed and yield what was measured."""
    ground, book = draw_ground(seed, seen=False), Book(seed)
    tasks = [make_task(book, task) for task in draw_tasks(ground, book, "route", questions + TESTED)]
    lines = [
        {"query": task.query, "answer": task.expected, "split": "train" if place < questions else "test"}
        for place, task in enumerate(tasks)
    ]
    file = home / "tasks" / "proving-ground.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    started = time.perf_counter()
    with serve_experts(ground, book) as pool:
        rows = list(run_recipe(home, pool, shorten(build_pool_recipe(pool.name, questions, AGENTS), steps)))
    minutes = round((time.perf_counter() - started) / 60, 1)
    known = {"seed": seed, "questions": questions, "steps": steps, "minutes": minutes, "topics": "unseen"}
    bounds = {"single": round(judge_single(ground).right, 3), "best": round(judge_best(ground).right, 3)}
    for row in rows:
        yield {"part": "button", "pools": "fixed", **row, **known, **bounds}


def shorten(recipe: Recipe, steps: int) -> Recipe:
    """The button's recipe with so many steps of GRPO, all test questions measured."""
    (stage,) = recipe.training_stages
    evaluate = recipe.evaluate
    assert evaluate is not None, "the preset measures what it trains"
    recipe = stage.method.edit(recipe, steps=steps)
    return recipe.model_copy(update={"evaluate": evaluate.model_copy(update={"count": TESTED})})


def run_recipe(home: Path, pool: Pool, recipe: Recipe) -> Iterator[Row]:
    """Run the job in this process; yields the right answers of each orchestrator, in the order of the recipe."""
    store = open_store(find_home(str(home)))
    store.pools.save(pool)
    jobs = JobStore(store.engine, store.home)
    job = jobs.submit(recipe, here=True).id
    if not run_job(job, store, jobs):
        raise SystemExit(jobs.get(job).message)
    folder = jobs.folder(job)
    outcome = describe_outcome(job, recipe, folder)
    print(outcome.sentence if outcome else "nothing was measured", file=sys.stderr, flush=True)
    for name, rows in group_by_orchestrator(read_results(folder.results)).items():
        policy = name.replace(job, "trained")
        cost = 100 * mean([row.cost for row in rows])
        yield {"policy": policy, "tasks": len(rows), "right": sum(row.correct for row in rows), "cost": round(cost, 4)}
