"""Runs what a recipe says, stage by stage, in one job folder. Called by the job's own process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
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
from trainer.recipe import Recipe
from trainer.tasks.sources.source import source_named
from trainer.tasks.task import Task

if TYPE_CHECKING:
    from trainer.learner.load_and_save import TrainingContext

log = logging.getLogger(__name__)
OnStage = Callable[[str, int], None]


def run_recipe(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder, tell: OnStage) -> bool:
    """Every stage of the recipe, going on where an interrupted run stopped. False when stopped on request.

    `tell(stage, steps)` is called as a stage begins. Raises TrainingFailed, InvalidRecipe, WorkerFault,
    UnknownOrchestrator or StorageError; each says what to do next.
    """
    expect_many_episodes()
    resumed = job_folder.find_intact_checkpoint()
    job_folder.truncate_after(resumed[0] if resumed else 0)
    try:
        trained = _train(recipe, store, pool, job_folder, tell) if recipe.sft or recipe.grpo else True
        return trained and (recipe.evaluate is None or _evaluate(recipe, store, pool, job_folder, tell))
    finally:
        store.traces.flush()


def _train(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder, tell: OnStage) -> bool:
    """The stages that train. False when stopped on request."""
    from trainer.learner.load_and_save import TrainingContext, configure_libraries

    configure_libraries(recipe.threads)
    tasks = load_training_tasks(recipe, pool)
    with asyncio.Runner() as runner:
        live = runner.run(_open_pool(pool))
        try:
            return _run_stages(
                TrainingContext(recipe, tasks, live, store, job_folder, runner, check=measure_checkpoint), tell
            )
        finally:
            runner.run(live.close())


def _run_stages(training: TrainingContext, tell: OnStage) -> bool:
    recipe, job_folder = training.recipe, training.job_folder
    start = None
    if recipe.sft is not None:
        from trainer.sft.stage import run_sft

        newest = job_folder.find_newest_checkpoint()
        if newest is None or newest[0] < recipe.sft.steps:
            tell("sft", recipe.sft.steps)
            if not run_sft(training):
                return False
        start = _find_last_checkpoint(job_folder, "sft")
    if recipe.grpo is not None:
        from trainer.grpo.stage import run_grpo

        offset = recipe.sft.steps if recipe.sft else 0
        newest = job_folder.find_newest_checkpoint()
        if newest is None or newest[0] < offset + recipe.grpo.steps:
            tell("grpo", recipe.grpo.steps)
            if not run_grpo(training, start, offset):
                return False
    return True


def choose_orchestrators(recipe: Recipe, job_folder: JobFolder) -> list[str]:
    """What the evaluate stage measures: the recipe's choice, or where it began and what every stage made."""
    if recipe.evaluate is not None and recipe.evaluate.orchestrators:
        return list(recipe.evaluate.orchestrators)
    job = job_folder.path.name
    made = {read_checkpoint(folder).stage: step for step, folder in reversed(complete_steps(job_folder.checkpoints))}
    begun = recipe.model.start or ("base" if recipe.model.base == TINY else "")
    return [*([begun] if begun else []), *(f"{job}@{step}" for step in made.values())]


def _evaluate(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder, tell: OnStage) -> bool:
    """The evaluate stage. False when stopped on request."""
    from trainer.evaluation.stage import EvaluationStage

    if recipe.threads:
        from trainer.learner.load_and_save import configure_libraries

        configure_libraries(recipe.threads)
    newest = job_folder.find_newest_checkpoint()
    names = choose_orchestrators(recipe, job_folder)
    stage = EvaluationStage(recipe, names, pool, store, job_folder, newest[0] if newest else 0)
    with asyncio.Runner() as runner:
        return runner.run(stage.run(lambda episodes: tell("evaluate", episodes)))


def _find_last_checkpoint(job_folder: JobFolder, stage: str) -> Any:
    """The folder of a stage's last checkpoint."""
    for _, folder in complete_steps(job_folder.checkpoints):
        if read_checkpoint(folder).stage == stage:
            return folder
    raise TrainingFailed("checkpoint", f"the {stage} stage left no complete checkpoint; resume the job")


def load_training_tasks(recipe: Recipe, pool: Pool) -> list[Task]:
    """The tasks of the train split. Raises TrainingFailed when there are none, the pool lacks a worker, or
    checkpoints are to be measured and there is nothing to measure them on."""
    if any(section.saving.check_tasks for section in (recipe.sft, recipe.grpo) if section is not None):
        try:
            _load_tasks(recipe, pool, "validation", 1)
        except UnknownTask as error:
            raise TrainingFailed("tasks", f"{error}. Add some, or set saving.check_tasks: 0") from error
    return _load_tasks(recipe, pool, "train", recipe.tasks.count)


def _load_tasks(recipe: Recipe, pool: Pool, split: str, count: int) -> list[Task]:
    tasks = source_named(recipe.tasks.source).tasks(split, count, levels=recipe.tasks.levels)
    if not tasks:
        raise TrainingFailed("tasks", f"{recipe.tasks.source} has no task in the {split} split at these levels")
    known = {spec.name for spec in pool.enabled}
    missing = sorted({name for task in tasks for name in task.workers} - known)
    if missing and recipe.sft is not None and recipe.sft.demonstrations.teacher == "oracle":
        raise TrainingFailed(
            "pool", f"the pool {pool.name} lacks {', '.join(missing)}, which these tasks' reference plans call; "
            "add them on the Pool page, choose other tasks (tasks.source), or another teacher"
        )  # fmt: skip
    return tasks


def load_pool(store: Store, name: str) -> Pool:
    """The pool called `name`; the starter pool is there without having been saved."""
    if name == "starter":
        seed_starter(store.pools)
    return store.pools.latest(name).pool


async def _open_pool(pool: Pool) -> LivePool:
    return open_live_pool(pool)


def measure_checkpoint(training: TrainingContext, model: Any, tokenizer: Any, count: int) -> Mapping[str, float]:
    """The share of `count` validation tasks that the model solves greedily, and of its turns that are turns."""
    from trainer.grpo.rollouts import RolloutEngine, figures
    from trainer.grpo.stage import manner_of
    from trainer.grpo.token_transcript import ChatTokens
    from trainer.learner.generator import SamplingParams
    from trainer.learner.transformers_generator import TransformersGenerator

    recipe = training.recipe
    tasks = _load_tasks(recipe, training.pool.pool, "validation", count)[:count]
    rounds = recipe.grpo.rollouts.max_rounds if recipe.grpo else 2
    generator = TransformersGenerator(model, tokenizer, SamplingParams(0.0))
    manner = replace(manner_of(recipe, rounds), max_length=1_000_000)
    engine = RolloutEngine("check", training.pool, ChatTokens(tokenizer), manner, {}, NoSink())

    async def run() -> Mapping[str, float]:
        groups = await asyncio.gather(*(engine.group(task, generator, 1) for task in tasks))
        return figures(groups, [], [])

    try:
        found = training.runner.run(run())
    finally:
        generator.close()
    return {"check/correct": found["rollout/correct"], "check/valid_turns": found["rollout/valid_turns"]}
