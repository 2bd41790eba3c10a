"""What training changes: base, SFT and SFT+GRPO on tasks that no training has seen.

    python bench/learning.py matrix [--tasks 300] [--out bench/results/learning.json]
    python bench/learning.py seeds JOB... [--tasks 160] [--out bench/results/seeds.json]

`matrix` scores the shipped checkpoints (or --orchestrators) greedily on every family of the test split, levels 1
to 3 in turn: the four families of the recipe on the seen and on the renamed pool, and the two held-out families,
with at most two turns an episode, as in the recipe. The group `missing` has one tool replaced by another that does the
same; `--unbound` measures every row also without binding learnt workers by description (orchestrator/binding).
Intervals are 95 %, bootstrapped over tasks. `words`: a third of the tasks are worded as no training task is.

`seeds` takes jobs with a GRPO stage and different seeds and compares, for each, the mean reward of sampled episodes
(temperature 1, the recipe's own terms) where the stage began (the job's SFT, or the recipe's model.start) and where
it ended, on the same validation tasks, with the paired difference and its interval. bench/results/seeds.json says
of each run what its recipe was; bench/data/grpo-seeds.yaml is that of the first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from orchestrator.binding.bind_workers import BindingSettings
from orchestrator.checkpoints import find_checkpoint, read_checkpoint
from orchestrator.engine.episode_loop import NoSink
from podium_lessons.sources import HELD_OUT_FAMILIES, TRAIN_FAMILIES
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.storage.data_folder import choose_home
from trainer.evaluation.trials import LocalTrials, Trial, plan_trials, run_trials
from trainer.results.rows import ResultRow
from trainer.results.statistics import bootstrap_mean
from trainer.results.summary import summarize
from trainer.tasks import SUITES
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task
from trainer.tasks.task_conditions import apply_condition_to_tasks

ORCHESTRATORS = ("base", "starter-sft", "starter-grpo")
LEVELS = (1, 2, 3)
GROUPS = {
    "seen": ("seen", TRAIN_FAMILIES),
    "renamed": ("renamed", TRAIN_FAMILIES),
    "missing": ("missing", TRAIN_FAMILIES),
    "held-out": ("seen", HELD_OUT_FAMILIES),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    matrix_of = commands.add_parser("matrix")
    matrix_of.add_argument("--tasks", type=int, default=300, help="of each family")
    matrix_of.add_argument("--orchestrators", nargs="+", default=ORCHESTRATORS)
    matrix_of.add_argument("--groups", nargs="+", choices=GROUPS, default=("seen", "renamed", "held-out"))
    matrix_of.add_argument("--levels", nargs="+", type=int, default=LEVELS)
    matrix_of.add_argument("--unbound", action="store_true", help="measure each row without binding, too")
    matrix_of.add_argument("--seed", type=int, default=0, help="of the condition")
    matrix_of.add_argument("--concurrency", type=int, default=64)
    seeds_of = commands.add_parser("seeds")
    seeds_of.add_argument("jobs", nargs="+")
    seeds_of.add_argument("--tasks", type=int, default=160)
    for item in (matrix_of, seeds_of):
        item.add_argument("--out", type=Path)
        item.add_argument("--home", help="the data folder with the jobs; traces are thrown away")
    options = parser.parse_args()
    if options.home:
        choose_home(options.home)
    report = asyncio.run(matrix(options)) if options.command == "matrix" else seeds(options)
    text = json.dumps({"machine": machine(), **report}, indent=1)
    if options.out:
        options.out.write_text(text + "\n")
    print(text)


async def matrix(options: argparse.Namespace) -> dict[str, Any]:
    """One row per orchestrator and group of tasks."""
    rows = []
    share = options.tasks // len(options.levels)
    for group in options.groups:
        condition, families = GROUPS[group]
        tasks = [
            SUITES[name].task(level, "test", i) for name in families for level in options.levels for i in range(share)
        ]
        pool, remapped, _ = apply_condition_to_tasks(condition, two_turns(starter_pool()), tasks, options.seed)
        for name in options.orchestrators:
            async with live_pool(pool) as live:
                for bound in (True, False) if options.unbound else (True,):
                    started = time.perf_counter()
                    done = await greedy(name, remapped, CachingPool(live), options.concurrency, bound)
                    wall_s = round(time.perf_counter() - started, 1)
                    row = {"group": group, "binding": bound, **row_of(name, done), "wall_s": wall_s}
                    rows.append(row)
                    print(json.dumps(row), flush=True)
    return {"tasks_per_family": share * len(options.levels), "levels": options.levels, "rows": rows}


async def greedy(name: str, tasks: list[Task], pool: LivePool, concurrency: int, bound: bool = True) -> list[ResultRow]:
    """`evaluate` on the trainer's generator, which lets a new episode in as soon as another has ended. `bound`: the
    workers that a checkpoint learnt are bound to those of the pool by description."""
    from orchestrator.dialects import find_dialect
    from orchestrator.policies.model import plan_binding
    from trainer.learner.generator import SamplingParams
    from trainer.learner.load_and_save import load_learner
    from trainer.learner.token_transcript import ChatTokens
    from trainer.learner.transformers_generator import TransformersGenerator
    from trainer.methods.grpo.rollouts import EpisodeFormat, LearningPolicy
    from trainer.methods.grpo.token_writer import TokenWriter
    from trainer.recipe_sections import ModelSettings

    folder, manifest = find_checkpoint(name)
    learner = load_learner(ModelSettings(base=manifest.base), 0, folder)
    chat = ChatTokens(learner.tokenizer)
    generator = TransformersGenerator(learner.model, learner.tokenizer, SamplingParams(0.0), concurrency)
    episode_format = EpisodeFormat(
        find_dialect(manifest.dialect), manifest.prompt, manifest.turn_tokens, 2048, pool.pool.limits.max_rounds
    )
    binding = plan_binding(pool, name, BindingSettings(bound))
    rows: list[ResultRow] = []

    def make(_: Trial) -> LearningPolicy:
        writer = TokenWriter(generator, chat, episode_format.turn_tokens, episode_format.max_length)
        return LearningPolicy(name, pool, writer, chat, episode_format, binding)

    try:
        await run_trials(plan_trials(name, tasks), LocalTrials(pool, make), rows.append, concurrency=concurrency)
    finally:
        generator.close()
    return rows


def two_turns(pool: Pool) -> Pool:
    """The pool with two turns an episode and no deadline: on a slow machine a large batch takes longer than that."""
    limits = pool.limits.model_copy(update={"max_rounds": 2, "deadline_s": 86_400.0})
    return pool.model_copy(update={"limits": limits})


def row_of(name: str, rows: Sequence[ResultRow]) -> dict[str, Any]:
    """The figures of an orchestrator's episodes; also by family, by level, and by whether training knows the words."""
    whole = summarize(name, rows)
    steps = sum(whole.statuses.values())
    return {
        "orchestrator": name,
        **figures_of(rows),
        "valid_turns": share_of(whole.turns - whole.turn_errors, whole.turns),
        "statuses": {status: share_of(count, steps) for status, count in sorted(whole.statuses.items())},
        "steps": round(whole.steps, 2),
        "width": round(whole.width, 2),
        "cost": whole.cost,
        "families": by(lambda row: row.family, rows),
        "levels": by(lambda row: str(row.level), rows),
        "words": by(words_of, rows),
    }


def by(key: Callable[[ResultRow], str], rows: Sequence[ResultRow]) -> dict[str, Any]:
    """The figures of every group of rows."""
    return {name: figures_of([row for row in rows if key(row) == name]) for name in sorted(set(map(key, rows)))}


def words_of(row: ResultRow) -> str:
    suite = SUITES[row.family]
    return "new" if suite.uses_new_words(suite.read(row.query)) else "known"


def figures_of(rows: Sequence[ResultRow]) -> dict[str, Any]:
    """Tasks, the share that is right, and its interval."""
    estimate = bootstrap_mean([float(row.correct) for row in rows])
    return {
        "tasks": len(rows),
        "mean": round(estimate.mean, 4),
        "interval": [round(estimate.low, 4), round(estimate.high, 4)],
    }


def share_of(count: int, whole: int) -> float | None:
    return round(count / whole, 4) if whole else None


def seeds(options: argparse.Namespace) -> dict[str, Any]:
    """One row per job: the mean reward at both ends of GRPO on the same validation tasks."""
    rows = []
    for job in options.jobs:
        folder = find_checkpoint(job)[0].parent
        manifests = {int(item.name): read_checkpoint(item) for item in folder.iterdir() if item.name.isdigit()}
        last = {manifest.stage: folder / str(step) for step, manifest in sorted(manifests.items())}
        recipe: Any = read_checkpoint(last["grpo"]).recipe
        ends = {"start": last.get("sft") or find_checkpoint(recipe["model"]["start"])[0], "grpo": last["grpo"]}
        rewards = {stage: sample_rewards(place, last["grpo"], options.tasks) for stage, place in ends.items()}
        gain = bootstrap_mean([after - before for before, after in zip(rewards["start"], rewards["grpo"], strict=True)])
        row = {
            "job": job,
            "seed": recipe["grpo"]["optimizer"]["seed"],
            **{stage: round(sum(values) / len(values), 4) for stage, values in rewards.items()},
            "gain": round(gain.mean, 4),
            "interval": [round(gain.low, 4), round(gain.high, 4)],
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    return {"tasks": options.tasks, "rows": rows}


def sample_rewards(folder: Path, trained: Path, count: int) -> list[float]:
    """The reward of one sampled episode for each of `count` validation tasks, in the way of `trained`'s recipe."""
    import torch

    from trainer.learner.generator import SamplingParams
    from trainer.learner.load_and_save import load_learner
    from trainer.learner.token_transcript import ChatTokens
    from trainer.learner.transformers_generator import TransformersGenerator
    from trainer.methods.grpo.rewards import load_rewards
    from trainer.methods.grpo.rollouts import RolloutEngine
    from trainer.methods.grpo.stage import make_episode_format
    from trainer.recipe import Recipe

    recipe = Recipe.model_validate(read_checkpoint(trained).recipe)
    assert recipe.grpo is not None, "this is the end of a GRPO stage"
    learner = load_learner(recipe.model, 0, folder)
    torch.manual_seed(0)
    tasks = open_source(recipe.tasks.source).tasks("validation", count, seed=1, levels=recipe.tasks.levels)
    generator = TransformersGenerator(learner.model, learner.tokenizer, SamplingParams(1.0))
    terms, rollouts = load_rewards(recipe.grpo.rewards), recipe.grpo.rollouts

    async def run() -> list[float]:
        async with live_pool(starter_pool()) as live:
            engine = RolloutEngine(
                "bench", CachingPool(live), ChatTokens(learner.tokenizer),
                make_episode_format(recipe.model, rollouts.max_rounds, rollouts.max_length), terms, NoSink(),
            )  # fmt: skip
            groups = await asyncio.gather(*(engine.run_group(task, generator, 1) for task in tasks))
            return [group.rollouts[0].reward for group in groups]

    return asyncio.run(run())


def machine() -> dict[str, Any]:
    import os

    return {"cores": os.cpu_count(), "processor": platform.machine(), "python": platform.python_version()}


if __name__ == "__main__":
    main()
