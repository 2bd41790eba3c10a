"""Runs the stages of a recipe in one job folder. Called by the job's own process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.checkpoints import complete_steps, read_checkpoint
from orchestrator.engine.gc_settings import expect_many_episodes
from orchestrator.orchestrator_name import TurnOptions, add_options
from orchestrator.policies.registry import draws_plans, is_reader
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.language_models.model_files import TINY
from pool_registry.pool import Pool
from pool_registry.starter import seed_starter
from trainer.cluster.preflight import refuse_cluster_problems
from trainer.errors import TrainingFailed, UnknownTask
from trainer.job_place import parse_place
from trainer.jobs.job_folder import JobFolder
from trainer.methods.base import StageStart, TrainingStage
from trainer.methods.checks import check_workers, load_tasks, measure_checkpoint
from trainer.recipe import WHO, Recipe
from trainer.recipe_packages import list_recipe_packages
from trainer.recipe_sections import (
    START,
    TRAINED,
    DemonstrationSettings,
    EvaluateSettings,
    ModelSettings,
)
from trainer.results.rows import read_results
from trainer.spend_cap import share_cap
from trainer.tasks.practice.stored import make_missing_tasks
from trainer.tasks.registry import open_source
from trainer.tasks.shared_pools import list_brought_pools
from trainer.tasks.sources.source import choose_own_levels
from trainer.tasks.task import Task

if TYPE_CHECKING:
    from trainer.demonstrations.collect import TrajectoryPlace
    from trainer.evaluation.stage import TrialPlace
    from trainer.learner.load_and_save import TrainingContext

log = logging.getLogger(__name__)
OnStage = Callable[[str, int], None]  # (stage, its steps or episodes), called as a stage begins


def run_recipe(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder, on_stage: OnStage) -> bool:
    """Run every stage, continuing where an interrupted run stopped. Returns False when stopped on request.

    Raises TrainingFailed, InvalidRecipe, WorkerFault, UnknownOrchestrator or StorageError; each message says what to
    do next.
    """
    refuse_cluster_problems(recipe, [pool])
    expect_many_episodes()
    checkpoint = job_folder.find_intact_checkpoint()
    job_folder.truncate_after(checkpoint[0] if checkpoint else 0)
    try:
        make_missing_tasks(recipe.list_sources(), store)
        for stage, run in ((recipe.who, _learn_who), (recipe.trains, _train), (recipe.evaluate, _evaluate)):
            if stage and not run(share_cap(recipe, job_folder), store, pool, job_folder, on_stage):
                return False
        return True
    finally:
        store.traces.flush()


def _learn_who(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder, on_stage: OnStage) -> bool:
    from trainer.outcome_stage import OutcomeStage

    assert recipe.who is not None, "the caller knows that the recipe has this stage"
    stage = OutcomeStage(recipe.who, recipe.tasks, pool, store, job_folder)
    return stage.run(lambda episodes: on_stage(WHO, episodes))


def _train(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder, on_stage: OnStage) -> bool:
    from trainer.memory_fit.must_fit import check_it_fits

    with _open_training(recipe, store, pool, job_folder) as training:
        check_it_fits(recipe)
        return _run_training_stages(training, on_stage)


def train_part(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder, stage: str, part: int) -> bool:
    """Train a part of a stage as one of the processes of a job. Returns False when stopped on request."""
    expect_many_episodes()
    try:
        with _open_training(recipe, store, pool, job_folder) as training:
            chosen = next(one for one in recipe.training_stages if one.name == stage)
            return chosen.method.run_rank(training, chosen.settings, _find_start(training, chosen), part)
    finally:
        store.traces.flush()


@contextmanager
def _open_training(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder) -> Iterator[TrainingContext]:
    """Open the pool and load the tasks. Raises TrainingFailed and what loading tasks raises."""
    from trainer.learner.load_and_save import TrainingContext, configure_libraries
    from trainer.learner.ranks import count_threads

    configure_libraries(count_threads(recipe.threads, recipe.processes))
    tasks = load_training_tasks(recipe, pool)
    with asyncio.Runner() as runner:
        live = runner.run(_open_pool(pool))
        try:
            others = load_distractor_pools(recipe, store, tasks)
            yield TrainingContext(
                recipe, tasks, live, store, job_folder, runner, measure_checkpoint, others, open_teacher
            )
        finally:
            runner.run(live.close())


def _run_training_stages(training: TrainingContext, on_stage: OnStage) -> bool:
    for stage in training.recipe.training_stages:
        newest = training.job_folder.find_newest_checkpoint()
        if newest is not None and newest[0] >= stage.end:
            continue
        if stage.method.has_nothing_to_learn(training.job_folder, stage.settings):
            continue
        on_stage(stage.name, stage.steps)
        if not stage.method.run(training, stage.settings, _find_start(training, stage)):
            return False
    return True


def _find_start(training: TrainingContext, stage: TrainingStage) -> StageStart:
    """Where a stage begins: at the last checkpoint of the stage before it, if there is one."""
    earlier = [other for other in training.recipe.training_stages if other.before < stage.before]
    before = [other for other in earlier if not other.method.has_nothing_to_learn(training.job_folder, other.settings)]
    checkpoint = _find_last_checkpoint(training.job_folder, before[-1].name) if before else None
    return StageStart(stage.before, checkpoint)


def _evaluate(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder, on_stage: OnStage) -> bool:
    from trainer.evaluation.stage import EvaluationStage

    if recipe.threads:
        from trainer.learner.load_and_save import configure_libraries

        configure_libraries(recipe.threads)
    settings = recipe.complete_evaluate()
    if recipe.evaluate and recipe.evaluate.source and not recipe.evaluate.levels:  # the recipe's are of another source
        own = choose_own_levels(open_source(settings.source), settings.levels)
        settings = settings.model_copy(update={"levels": own})
    newest = job_folder.find_newest_checkpoint()
    names = choose_orchestrators(settings, recipe.model, job_folder)
    others = load_distractor_pools(recipe, store, [])
    step = newest[0] if newest else None
    with _open_trial_place(recipe, settings, names, [pool, *others], job_folder) as place:
        stage = EvaluationStage(settings, names, pool, store, job_folder, step, recipe.pools, others, place)
        with asyncio.Runner() as runner:
            return runner.run(stage.run(lambda episodes: on_stage("evaluate", episodes)))


@contextmanager
def _open_trial_place(
    recipe: Recipe, settings: EvaluateSettings, names: Sequence[str], pools: Sequence[Pool], job_folder: JobFolder
) -> Iterator[TrialPlace | None]:
    """Where the episodes of an evaluation run: None for this process. Raises TrainingFailed."""
    if not recipe.place.is_cluster:
        yield None
        return
    from trainer.cluster.episodes import open_cluster

    spent = sum(row.cost for row in read_results(job_folder.results))
    left = None if settings.max_cost is None else max(0.0, settings.max_cost - spent)
    packages = list_recipe_packages(recipe, pools)
    with open_cluster(recipe.place, pools, names, settings.concurrency, left, packages) as episodes:
        yield episodes


@contextmanager
def open_teacher(
    recipe: Recipe, demonstrations: DemonstrationSettings, pool: Pool, store: Store
) -> Iterator[TrajectoryPlace | None]:
    """Where the trajectories of a teacher are sampled: None for this process. Raises TrainingFailed."""
    place = parse_place(demonstrations.where)
    if not place.is_cluster:
        yield None
        return
    from trainer.cluster.episodes import open_cluster

    packages, at_once = list_recipe_packages(recipe, [pool]), demonstrations.concurrency
    with open_cluster(place, [pool], [demonstrations.teacher], at_once, packages=packages) as episodes:
        yield episodes.open_teacher(pool, store)


def choose_orchestrators(settings: EvaluateSettings, model: ModelSettings, job_folder: JobFolder) -> list[str]:
    """Name what the evaluate stage measures: the recipe's list, or else the start and the last of every stage; those
    that draw plans with each of the options."""
    names = list_orchestrators(settings, model, job_folder)
    constrained = None if settings.constrained else False
    options = [TurnOptions(samples, constrained) for samples in dict.fromkeys(settings.turn_samples)]
    repairs = TurnOptions(without=settings.without)
    return [
        add_options(choice, repairs) if settings.without and is_reader(name) else choice
        for name in names
        for choice in ([add_options(name, option) for option in options] if draws_plans(name) else [name])
    ]


def list_orchestrators(settings: EvaluateSettings, model: ModelSettings, job_folder: JobFolder) -> list[str]:
    """The recipe's list, in which `start` stands for what it starts from and `trained` for the last checkpoint of every
    stage and phase; without a list these two."""
    job = job_folder.path.name
    manifests = [(step, read_checkpoint(folder)) for step, folder in reversed(complete_steps(job_folder.checkpoints))]
    last_steps = {(manifest.stage, manifest.phase): step for step, manifest in manifests}
    start = model.start or ("base" if model.base == TINY else "")
    meanings = {START: [start] if start else [], TRAINED: [f"{job}@{step}" for step in last_steps.values()]}
    names: list[str] = []
    for name in settings.orchestrators or (START, TRAINED):
        word, plus, options = name.partition("+")
        names += [f"{meaning}{plus}{options}" for meaning in meanings.get(word, [word])]
    return list(dict.fromkeys(names))


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
    if any(stage.settings.saving.check_tasks for stage in recipe.training_stages):
        try:
            validation = load_tasks(recipe.tasks, "validation", 1)
        except UnknownTask as error:
            raise TrainingFailed("tasks", f"{error}. Add some, or set saving.check_tasks: 0") from error
    if not any(stage.method.needs_tasks(stage.settings) for stage in recipe.training_stages):
        return []
    tasks = load_tasks(recipe.tasks, "train", recipe.tasks.count)
    if recipe.needs_plans:
        check_workers([*tasks, *validation], pool)
    return tasks


def load_pool(store: Store, name: str) -> Pool:
    """Load the newest version of a pool. The starter pool is made first where it was never saved."""
    if name == "starter":
        seed_starter(store.pools)
    return store.pools.latest(name).pool


def load_distractor_pools(recipe: Recipe, store: Store, tasks: Sequence[Task]) -> list[Pool]:
    """The pools whose workers may be distractors: those that the recipe names, and some that the tasks bring.

    Raises PoolNotFound.
    """
    if not recipe.pool_draws:
        return []
    names = dict.fromkeys(name for pools in recipe.pool_draws for name in pools.sources)
    return [*(load_pool(store, name) for name in names), *list_brought_pools(tasks)]


async def _open_pool(pool: Pool) -> LivePool:
    return open_live_pool(pool)  # a coroutine: workers start on the runner's event loop
