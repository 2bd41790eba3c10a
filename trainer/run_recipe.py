"""Runs the stages of a recipe in one job folder. Called by the job's own process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.checkpoints import complete_steps, read_checkpoint
from orchestrator.engine.episode_loop import NoSink
from orchestrator.engine.gc_settings import expect_many_episodes
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.language_models.model_files import TINY
from pool_registry.pool import Pool
from pool_registry.starter import seed_starter
from trainer.errors import TrainingFailed, UnknownTask
from trainer.jobs.job_folder import JobFolder
from trainer.recipe import EvaluateSettings, ModelSettings, Recipe, TaskSettings
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task

if TYPE_CHECKING:
    from trainer.learner.load_and_save import TrainingContext

log = logging.getLogger(__name__)
OnStage = Callable[[str, int], None]  # (stage, its steps or episodes), called as a stage begins


def run_recipe(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder, on_stage: OnStage) -> bool:
    """Run every stage, continuing where an interrupted run stopped. Returns False when stopped on request.

    Raises TrainingFailed, InvalidRecipe, WorkerFault, UnknownOrchestrator or StorageError; each message says what to
    do next.
    """
    expect_many_episodes()
    checkpoint = job_folder.find_intact_checkpoint()
    job_folder.truncate_after(checkpoint[0] if checkpoint else 0)
    try:
        if (recipe.sft or recipe.grpo) and not _train(recipe, store, pool, job_folder, on_stage):
            return False
        return recipe.evaluate is None or _evaluate(recipe, store, pool, job_folder, on_stage)
    finally:
        store.traces.flush()


def _train(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder, on_stage: OnStage) -> bool:
    from trainer.learner.load_and_save import TrainingContext, configure_libraries

    configure_libraries(recipe.threads)
    tasks = load_training_tasks(recipe, pool)
    with asyncio.Runner() as runner:
        live = runner.run(_open_pool(pool))
        try:
            context = TrainingContext(recipe, tasks, live, store, job_folder, runner, check=measure_checkpoint)
            return _run_training_stages(context, on_stage)
        finally:
            runner.run(live.close())


def _run_training_stages(training: TrainingContext, on_stage: OnStage) -> bool:
    recipe, job_folder = training.recipe, training.job_folder
    start = None
    if recipe.sft is not None:
        from trainer.sft.stage import run_sft

        newest = job_folder.find_newest_checkpoint()
        if newest is None or newest[0] < recipe.sft.steps:
            on_stage("sft", recipe.sft.steps)
            if not run_sft(training):
                return False
        start = _find_last_checkpoint(job_folder, "sft")
    if recipe.grpo is not None:
        from trainer.grpo.stage import run_grpo

        offset = recipe.sft.steps if recipe.sft else 0  # a job counts the steps of both stages
        newest = job_folder.find_newest_checkpoint()
        if newest is None or newest[0] < offset + recipe.grpo.steps:
            on_stage("grpo", recipe.grpo.steps)
            if not run_grpo(training, start, offset):
                return False
    return True


def _evaluate(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder, on_stage: OnStage) -> bool:
    from trainer.evaluation.stage import EvaluationStage

    if recipe.threads:
        from trainer.learner.load_and_save import configure_libraries

        configure_libraries(recipe.threads)
    settings = recipe.complete_evaluate()
    newest = job_folder.find_newest_checkpoint()
    names = choose_orchestrators(settings, recipe.model, job_folder)
    stage = EvaluationStage(settings, names, pool, store, job_folder, newest[0] if newest else 0)
    with asyncio.Runner() as runner:
        return runner.run(stage.run(lambda episodes: on_stage("evaluate", episodes)))


def choose_orchestrators(settings: EvaluateSettings, model: ModelSettings, job_folder: JobFolder) -> list[str]:
    """Name what the evaluate stage measures: the recipe's list, or else the start and the last of every stage."""
    if settings.orchestrators:
        return list(settings.orchestrators)
    job = job_folder.path.name
    last_steps = {
        read_checkpoint(folder).stage: step for step, folder in reversed(complete_steps(job_folder.checkpoints))
    }
    start = model.start or ("base" if model.base == TINY else "")
    return [*([start] if start else []), *(f"{job}@{step}" for step in last_steps.values())]


def _find_last_checkpoint(job_folder: JobFolder, stage: str) -> Path:
    for _, folder in complete_steps(job_folder.checkpoints):
        if read_checkpoint(folder).stage == stage:
            return folder
    raise TrainingFailed("checkpoint", f"the {stage} stage left no complete checkpoint; resume the job")


def load_training_tasks(recipe: Recipe, pool: Pool) -> list[Task]:
    """Load the tasks of the train split.

    Raises TrainingFailed when there are none, when the pool lacks a worker that they need, or when checkpoints are
    to be measured and there is no validation task.
    """
    validation: list[Task] = []
    if any(section.saving.check_tasks for section in (recipe.sft, recipe.grpo) if section is not None):
        try:
            validation = _load_tasks(recipe.tasks, "validation", 1)
        except UnknownTask as error:
            raise TrainingFailed("tasks", f"{error}. Add some, or set saving.check_tasks: 0") from error
    tasks = _load_tasks(recipe.tasks, "train", recipe.tasks.count)
    if recipe.sft is not None and recipe.sft.demonstrations.teacher == "oracle":
        _check_workers([*tasks, *validation], pool)
    return tasks


def _load_tasks(settings: TaskSettings, split: str, count: int) -> list[Task]:
    tasks = open_source(settings.source).tasks(split, count, levels=settings.levels)
    if not tasks:
        raise TrainingFailed("tasks", f"{settings.source} has no task in the {split} split at these levels")
    return tasks


def _check_workers(tasks: list[Task], pool: Pool) -> None:
    """Raise TrainingFailed when the pool lacks a worker that a reference plan calls."""
    missing = sorted({name for task in tasks for name in task.list_missing_workers(pool)})
    if missing:
        raise TrainingFailed(
            "pool", f"the pool {pool.name} lacks {', '.join(missing)}, which these tasks' reference plans call; "
            "add them on the Pool page, choose other tasks (tasks.source), or another teacher"
        )  # fmt: skip


def load_pool(store: Store, name: str) -> Pool:
    """Load the newest version of a pool. The starter pool is made first where it was never saved."""
    if name == "starter":
        seed_starter(store.pools)
    return store.pools.latest(name).pool


async def _open_pool(pool: Pool) -> LivePool:
    return open_live_pool(pool)  # a coroutine: workers start on the runner's event loop


def measure_checkpoint(training: TrainingContext, model: Any, tokenizer: Any, count: int) -> Mapping[str, float]:
    """Let the model solve `count` validation tasks greedily.

    Returns `check/correct` (share of tasks) and `check/valid_turns` (share of turns that could be parsed).
    """
    from trainer.grpo.rollouts import RolloutEngine, compute_rollout_metrics
    from trainer.grpo.stage import make_episode_format
    from trainer.grpo.token_transcript import ChatTokens
    from trainer.learner.generator import SamplingParams
    from trainer.learner.transformers_generator import TransformersGenerator

    recipe = training.recipe
    tasks = _load_tasks(recipe.tasks, "validation", count)[:count]
    rounds = recipe.grpo.rollouts.max_rounds if recipe.grpo else 2
    generator = TransformersGenerator(model, tokenizer, SamplingParams(0.0))
    episode_format = replace(make_episode_format(recipe, rounds), max_length=1_000_000)
    engine = RolloutEngine("check", training.pool, ChatTokens(tokenizer), episode_format, {}, NoSink())

    async def run() -> Mapping[str, float]:
        groups = await asyncio.gather(*(engine.run_group(task, generator, 1) for task in tasks))
        return compute_rollout_metrics(groups, [], [])

    try:
        measured = training.runner.run(run())
    finally:
        training.runner.run(engine.close())
        generator.close()
    return {"check/correct": measured["rollout/correct"], "check/valid_turns": measured["rollout/valid_turns"]}
