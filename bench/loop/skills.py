"""What skills bring: composed questions asked of a reader with the skills of solved ones in the pool, and without.

    python bench/loop/skills.py [--reader smollm2-reader] [--out bench/results/skills.json]

On three pools of functions (bench/data/object_pools) skills are found in two solved wordings of each kind of composed
question (bench/data/skill_questions.yaml), with the finder of `podium skills find`. Asked are two other wordings of
each kind, which must gain, and all plain questions of these pools (bench/data/object_questions.yaml), which must not
lose. Both are asked of the same checkpoint, greedily, on the pool as it is and on the pool with every skill that passed
its test. Differences are paired by question, with 95 % intervals bootstrapped over questions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.generalization import DATA, load_pools
from bench.support.device import describe_machine
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import NoSink
from orchestrator.policies.registry import orchestrator_factory
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.language_models.completion import Draw
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.evaluation.trials import run_task
from trainer.results.statistics import bootstrap_difference, bootstrap_mean
from trainer.skills.examples import Example
from trainer.skills.find import KIND, find_in_examples
from trainer.tasks.sources.jsonl import NumberRule, TaskLine, make_task
from trainer.tasks.task import Task

SOLVED = 2  # rows of each kind; the others are asked
DEADLINE_S = 1800.0  # the pool's own would cut off what waits for the one model
PLAIN = 14  # questions of each pool
TOLERANCE = 0.01
CELLS = ("composed", "plain")


@dataclass(frozen=True, slots=True)
class Ground:
    """A pool, the skills that were found for it, and the questions of each cell."""

    pool: Pool
    skills: tuple[WorkerSpec, ...]
    tasks: Mapping[str, Sequence[Task]]

    @property
    def extended(self) -> Pool:
        return self.pool.with_workers(self.skills)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", default="smollm2-reader")
    parser.add_argument("--pools", nargs="+", help="default: all three")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    plain = group_by_pool(load_pools("object")(5 * PLAIN))  # before the loop: it runs one of its own
    asyncio.run(measure(options, plain))


async def measure(options: argparse.Namespace, plain: Mapping[str, Sequence[Task]]) -> None:
    """Ask the composed questions of all pools, then the plain ones. Pools stay open: their functions are processes."""
    suite = yaml.safe_load((DATA / "skill_questions.yaml").read_text(encoding="utf-8"))
    names = options.pools or list(suite)
    grounds = [await prepare_pool(suite[name], plain[name]) for name in names]
    rows: list[dict[str, Any]] = []
    async with AsyncExitStack() as stack:
        opened = [
            [await stack.enter_async_context(live_pool(pool)) for pool in (ground.pool, ground.extended)]
            for ground in grounds
        ]
        for cell in CELLS:
            for ground, sides in zip(grounds, opened, strict=True):
                for task in ground.tasks[cell]:
                    rows.append(await ask_twice(options.reader, ground, cell, task, sides))
                    write_report(rows, grounds, options)


def write_report(rows: Sequence[Mapping[str, Any]], grounds: Sequence[Ground], options: argparse.Namespace) -> None:
    """Print and keep what there is by now: the questions take long on a busy machine."""
    skills = {ground.pool.name: [spec.name for spec in ground.skills] for ground in grounds}
    report = {
        "reader": options.reader,
        "machine": describe_machine(),
        "skills": skills,
        "cells": summarize(rows, grounds),
    }
    print(json.dumps(report["cells"]), flush=True)
    if options.out:
        whole = {**report, "questions": list(rows)}
        options.out.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def group_by_pool(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.ref.family, []).append(task)
    return groups


async def prepare_pool(kinds: Sequence[Mapping[str, Any]], plain: Sequence[Task]) -> Ground:
    """The pool of some plain questions, with the skills of the solved questions that passed their test."""
    pool = plain[0].pool
    assert pool is not None, "load_pools gives every question its pool"
    pool = pool.model_copy(update={"limits": pool.limits.model_copy(update={"deadline_s": DEADLINE_S})})
    solved, composed = await write_tasks(kinds, pool)
    candidates = await find_in_examples(pool, [Example(task) for task in solved])
    skills = tuple(row.spec for row in candidates if not row.problem)
    for spec in skills:
        print(f"{pool.name}: {spec.name}: {spec.description}", file=sys.stderr, flush=True)
    return Ground(pool, skills, {"composed": composed, "plain": list(plain)})


async def write_tasks(kinds: Sequence[Mapping[str, Any]], pool: Pool) -> tuple[list[Task], list[Task]]:
    """The solved and the asked questions, with the answers that their reference plans come to."""
    solved, composed = [], []
    async with live_pool(pool) as live:
        for kind in kinds:
            for place, (query, things) in enumerate(kind["rows"]):
                task = await write_task(query, fill(kind["plan"], things), live)
                (solved if place < SOLVED else composed).append(task)
    return solved, composed


async def write_task(query: str, plan: Mapping[str, Any], pool: LivePool) -> Task:
    """The task whose right answer is that of its reference plan. Raises ValueError where that does not run."""
    draft = make_task(TaskLine(query=query, answer="?", plan=dict(plan), split="train"), "skills", 0)
    episode = await run_task(draft, orchestrator_factory("oracle", pool)(draft.oracle_turn, Draw()), pool, NoSink())
    if episode.answer is None:
        raise ValueError(f"the reference plan of {query!r} has no answer: {episode.ended}")
    number = isinstance(episode.answer, int | float) and not isinstance(episode.answer, bool)
    rule = NumberRule(kind="number", tolerance=TOLERANCE) if number else None
    line = TaskLine(query=query, answer=episode.answer, plan=dict(plan), split="train", verifier=rule)
    return make_task(line, "skills", 0)


def fill(value: Any, things: Mapping[str, Any]) -> Any:
    """A plan with the things of a question in the place of their names in braces."""
    if isinstance(value, str):
        whole = value[1:-1] if value.startswith("{") and value.endswith("}") else None
        return things.get(whole, value)
    if isinstance(value, Mapping):
        return {key: fill(item, things) for key, item in value.items()}
    return [fill(item, things) for item in value] if isinstance(value, list) else value


async def ask_twice(reader: str, ground: Ground, cell: str, task: Task, sides: Sequence[LivePool]) -> dict[str, Any]:
    """A row for a question: whether it was right without and with the skills, and which of them it called."""
    began = time.monotonic()
    before, after = [
        await run_task(task, orchestrator_factory(reader, live)(None, Draw()), live, NoSink()) for live in sides
    ]
    row = {
        "pool": ground.pool.name,
        "cell": cell,
        "query": task.query,
        "without": is_right(before),
        "with": is_right(after),
        "skills": list_called_skills(after, ground.extended),
        "answers": [str(episode.answer)[:60] for episode in (before, after)],
    }
    print(f"{time.monotonic() - began:.0f} s {json.dumps(row, ensure_ascii=False)}", file=sys.stderr, flush=True)
    return row


def is_right(episode: Episode) -> bool:
    return episode.graded is not None and episode.graded.correct


def list_called_skills(episode: Episode, pool: Pool) -> list[str]:
    skills = {spec.name for spec in pool.workers if spec.kind == KIND}
    return [run.step.worker for run in episode.steps.values() if run.step.worker in skills]


def summarize(rows: Sequence[Mapping[str, Any]], grounds: Sequence[Ground]) -> dict[str, Any]:
    """For each cell the share that is right without and with skills, the paired difference, and how many questions
    called one; `of` is how many questions the cell has, of which `questions` were asked by now."""
    cells = {}
    for cell in CELLS:
        own = [row for row in rows if row["cell"] == cell]
        marks = {side: [float(row[side]) for row in own] for side in ("without", "with")}
        difference = bootstrap_difference([after - before for before, after in zip(*marks.values(), strict=True)])
        cells[cell] = {
            "questions": len(own),
            "of": sum(len(ground.tasks[cell]) for ground in grounds),
            **{side: write_estimate(bootstrap_mean(values)) for side, values in marks.items()},
            "difference": write_estimate(difference),
            "called_a_skill": sum(bool(row["skills"]) for row in own),
            "right_of_those": sum(row["with"] for row in own if row["skills"]),
        }
    return cells


def write_estimate(estimate: Any) -> list[float]:
    """Mean, low, high."""
    return [round(value, 3) for value in (estimate.mean, estimate.low, estimate.high)]


if __name__ == "__main__":
    main()
