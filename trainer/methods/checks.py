"""What checkpoints are measured on while any method trains: validation tasks, solved greedily."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestrator.engine.episode_loop import NoSink
from pool_registry.pool import Pool
from trainer.errors import TrainingFailed
from trainer.recipe import Recipe
from trainer.recipe_sections import TaskSettings
from trainer.results.statistics import mean
from trainer.tasks.registry import open_source
from trainer.tasks.sources.source import choose_own_levels
from trainer.tasks.task import Task
from trainer.tasks.task_conditions import apply_condition_to_tasks

if TYPE_CHECKING:
    from trainer.learner.load_and_save import TrainingContext

DEFAULT_ROUNDS = 2  # turns of an episode, where no method of the recipe says it


def measure_checkpoint(training: TrainingContext, model: Any, tokenizer: Any, count: int) -> Mapping[str, float]:
    """Let the model solve `count` validation tasks greedily; where the recipe varies pools, on renamed and unseen
    pools too.

    Returns `check/correct` (share of tasks) and `check/valid_turns` (share of turns that could be parsed), and then
    also the shares `check/seen`, `check/renamed` and `check/unseen`, of which `check/correct` is the mean.
    """
    from trainer.learner.generator import SamplingParams
    from trainer.learner.token_transcript import ChatTokens
    from trainer.learner.transformers_generator import TransformersGenerator
    from trainer.methods.grpo.rollout_metrics import compute_rollout_metrics
    from trainer.methods.grpo.rollouts import RolloutEngine
    from trainer.methods.grpo.stage import make_episode_format

    recipe = training.recipe
    generator = TransformersGenerator(model, tokenizer, SamplingParams(0.0))
    episode_format = make_episode_format(recipe.model, recipe.max_rounds or DEFAULT_ROUNDS)
    engine = RolloutEngine("check", training.pool, ChatTokens(tokenizer), episode_format, {}, NoSink())

    async def measure(tasks: Sequence[Task]) -> Mapping[str, float]:
        groups = await asyncio.gather(*(engine.run_group(task, generator, 1) for task in tasks))
        return compute_rollout_metrics(groups, [], [])

    try:
        sets = load_check_tasks(recipe, training.pool.pool, count)
        measured = {name: training.runner.run(measure(tasks)) for name, tasks in sets.items()}
    finally:
        training.runner.run(engine.close())
        generator.close()
    figures = {
        "check/correct": mean([figures["rollout/correct"] for figures in measured.values()]),
        "check/valid_turns": mean([figures["rollout/valid_turns"] for figures in measured.values()]),
    }
    if recipe.pools is not None:
        figures |= {f"check/{name}": means["rollout/correct"] for name, means in measured.items()}
    return figures


def load_check_tasks(recipe: Recipe, pool: Pool, count: int) -> dict[str, list[Task]]:
    """The tasks that checkpoints are measured on: those of the validation split, and where the recipe varies pools
    the same on renamed pools, and others on pools that training does not draw. Raises TrainingFailed or UnknownTask."""
    tasks = load_tasks(recipe.tasks, "validation", count)[:count]
    if recipe.pools is None:
        return {"seen": tasks}
    changed, renamed, _ = apply_condition_to_tasks("renamed", pool, tasks)
    sets = {"seen": tasks, "renamed": [task if task.pool else replace(task, pool=changed) for task in renamed]}
    if recipe.pools.unseen:
        levels = choose_own_levels(open_source(recipe.pools.unseen), recipe.tasks.levels)
        unseen = recipe.tasks.model_copy(update={"source": recipe.pools.unseen, "levels": levels})
        sets["unseen"] = load_tasks(unseen, "validation", count)[:count]
    return sets


def load_tasks(settings: TaskSettings, split: str, count: int) -> list[Task]:
    """At most `count` tasks of a split. Raises TrainingFailed where the split has none, UnknownTask, UnusableTasks."""
    tasks = open_source(settings.source).tasks(split, count, settings.seed, settings.levels)
    if not tasks:
        raise TrainingFailed("tasks", f"{settings.source} has no task in the {split} split at these levels")
    return tasks


def check_workers(tasks: list[Task], pool: Pool) -> None:
    """Raise TrainingFailed when the pool lacks a worker that a reference plan calls."""
    missing = sorted({name for task in tasks for name in task.list_missing_workers(pool)})
    if missing:
        raise TrainingFailed(
            "pool", f"the pool {pool.name} lacks {', '.join(missing)}, which these tasks' reference plans call; "
            "add them on the Pool page, choose other tasks (tasks.source), or another teacher"
        )  # fmt: skip
