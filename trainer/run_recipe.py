"""Runs the stages of a recipe in one job folder. Called by the job's own process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.checkpoints import complete_steps, read_checkpoint
from orchestrator.engine.episode_loop import NoSink
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
from trainer.job_place import HERE, parse_place
from trainer.jobs.job_folder import JobFolder
from trainer.recipe import Recipe
from trainer.recipe_packages import list_recipe_packages
from trainer.recipe_sections import EvaluateSettings, ModelSettings, TaskSettings
from trainer.results.rows import read_results
from trainer.results.statistics import mean
from trainer.tasks.practice.stored import make_missing_tasks
from trainer.tasks.registry import open_source
from trainer.tasks.sources.source import choose_own_levels
from trainer.tasks.task import Task
from trainer.tasks.task_conditions import apply_condition_to_tasks

if TYPE_CHECKING:
    from trainer.demonstrations.collect import TrajectoryPlace
    from trainer.evaluation.stage import TrialPlace
    from trainer.learner.load_and_save import TrainingContext

log = logging.getLogger(__name__)
MAX_TASK_POOLS = 64  # of those that tasks bring, as a source of distractors
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
        if (recipe.sft or recipe.grpo) and not _train(recipe, store, pool, job_folder, on_stage):
            return False
        return recipe.evaluate is None or _evaluate(recipe, store, pool, job_folder, on_stage)
    finally:
        store.traces.flush()


def _train(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder, on_stage: OnStage) -> bool:
    from trainer.memory_fit.must_fit import check_it_fits

    with _open_training(recipe, store, pool, job_folder) as training:
        check_it_fits(recipe)
        return _run_training_stages(training, on_stage)


def train_part(recipe: Recipe, store: Store, pool: Pool, job_folder: JobFolder, stage: str, sft_round: int) -> bool:
    """Train a stage, of SFT one round, as one of the processes of a job. Returns False when stopped on request."""
    expect_many_episodes()
    try:
        with _open_training(recipe, store, pool, job_folder) as training:
            if stage == "grpo":
                return _train_grpo(training)
            from trainer.methods.sft.stage import train_sft_round

            return train_sft_round(training, sft_round)
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
    recipe, job_folder = training.recipe, training.job_folder
    if recipe.sft is not None:
        from trainer.methods.sft.stage import run_sft

        newest = job_folder.find_newest_checkpoint()
        if newest is None or newest[0] < recipe.sft.steps:
            on_stage("sft", recipe.sft.steps)
            if not run_sft(training):
                return False
    if recipe.grpo is not None:
        newest = job_folder.find_newest_checkpoint()
        if newest is None or newest[0] < _count_sft_steps(recipe) + recipe.grpo.all_steps:
            on_stage("grpo", recipe.grpo.all_steps)
            if recipe.processes == 1:
                return _train_grpo(training)
            from trainer.learner.ranks import run_ranks

            return run_ranks(job_folder.path.name, training.store.home.root, "grpo", 1, recipe.processes)
    return True


def _train_grpo(training: TrainingContext) -> bool:
    recipe = training.recipe
    assert recipe.grpo is not None, "the caller knows that the recipe has this stage"
    if recipe.grpo.rollouts.backend == "vllm-async":
        from trainer.methods.grpo.async_stage import run_async_grpo as run_grpo
    else:
        from trainer.methods.grpo.stage import run_grpo
    start = _find_last_checkpoint(training.job_folder, "sft") if recipe.sft else None
    return run_grpo(training, start, _count_sft_steps(recipe))


def _count_sft_steps(recipe: Recipe) -> int:
    """The steps before GRPO's first: a job counts those of both stages."""
    return recipe.sft.steps if recipe.sft else 0


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
    step = newest[0] if newest else 0
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
def open_teacher(recipe: Recipe, pool: Pool, store: Store) -> Iterator[TrajectoryPlace | None]:
    """Where the trajectories of a recipe's teacher are sampled: None for this process. Raises TrainingFailed."""
    demonstrations = recipe.sft.demonstrations if recipe.sft else None
    place = parse_place(demonstrations.where) if demonstrations else HERE
    if demonstrations is None or not place.is_cluster:
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
    """The recipe's list, or else the start and the last of every stage and phase."""
    if settings.orchestrators:
        return list(settings.orchestrators)
    job = job_folder.path.name
    manifests = [(step, read_checkpoint(folder)) for step, folder in reversed(complete_steps(job_folder.checkpoints))]
    last_steps = {(manifest.stage, manifest.phase): step for step, manifest in manifests}
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
            validation = load_tasks(recipe.tasks, "validation", 1)
        except UnknownTask as error:
            raise TrainingFailed("tasks", f"{error}. Add some, or set saving.check_tasks: 0") from error
    tasks = load_tasks(recipe.tasks, "train", recipe.tasks.count)
    if recipe.sft is not None and recipe.sft.demonstrations.teacher == "oracle":
        _check_workers([*tasks, *validation], pool)
    return tasks


def load_tasks(settings: TaskSettings, split: str, count: int) -> list[Task]:
    """At most `count` tasks of a split. Raises TrainingFailed where the split has none, UnknownTask, UnusableTasks."""
    tasks = open_source(settings.source).tasks(split, count, settings.seed, settings.levels)
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


def load_distractor_pools(recipe: Recipe, store: Store, tasks: Sequence[Task]) -> list[Pool]:
    """The pools whose workers may be distractors: those that the recipe names, and some that the tasks bring.

    Raises PoolNotFound.
    """
    if not recipe.pool_draws:
        return []
    names = dict.fromkeys(name for pools in recipe.pool_draws for name in pools.sources)
    brought = {task.pool.name: task.pool for task in tasks if task.pool is not None}
    return [*(load_pool(store, name) for name in names), *list(brought.values())[:MAX_TASK_POOLS]]


async def _open_pool(pool: Pool) -> LivePool:
    return open_live_pool(pool)  # a coroutine: workers start on the runner's event loop


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
    rounds = recipe.grpo.rollouts.max_rounds if recipe.grpo else 2
    generator = TransformersGenerator(model, tokenizer, SamplingParams(0.0))
    episode_format = replace(make_episode_format(recipe, rounds), max_length=1_000_000)
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
