"""What prevents a recipe from being started: each gap with the key of the recipe and what to do about it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from orchestrator.checkpoints import find_checkpoint
from orchestrator.errors import OrchestratorError
from orchestrator.orchestrator_name import split_options
from orchestrator.policies.registry import find_policy, make_orchestrator, needs_reference
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.errors import PoolNotFound, WorkerFault
from pool_registry.language_models.model_files import HUB, TINY, is_available, model_path
from pool_registry.pool import Pool
from pool_registry.secrets import list_references
from pool_registry.starter import starter_pool
from trainer.cluster.connection import check_address
from trainer.cluster.preflight import find_cluster_problems, list_clusters
from trainer.errors import TrainerError, TrainingFailed
from trainer.jobs.gpus import list_gpus
from trainer.learner.vllm_server import INSTALL_VLLM, is_installed
from trainer.memory_fit.gpu_state import GpuProblem, find_gpu_problem
from trainer.methods.grpo.rewards import explain_missing_reward
from trainer.recipe import Recipe
from trainer.tasks.practice.stored import SOURCE, find_practice_file
from trainer.tasks.registry import explain_missing_package, open_source
from trainer.tasks.task import Task
from trainer.tasks.teachers import EXPLAIN_NO_PLANS

SAMPLE = 200  # tasks that are looked at
SPARE_BYTES = 1_000_000_000
ANSWER_S = 2.0  # for a cluster, while a person edits the recipe
GB = 1_000_000_000


@dataclass(frozen=True, slots=True)
class LaunchGap:
    """Something that prevents a start (`blocks`), or that a person should know before one."""

    key: str
    sentence: str
    link: str = ""  # a page of the studio that mends it
    blocks: bool = True


def find_gaps(recipe: Recipe, store: Store) -> list[LaunchGap]:
    """Find everything that prevents a start, and what should be known before one."""
    pool = _pool(recipe, store)
    gaps = [] if pool else [LaunchGap("pool", f"There is no pool {recipe.pool!r}. Make it on the Pool page.", "/pool")]
    return [
        *gaps,
        *_tasks_missing(recipe, pool),
        *_measured_tasks_missing(recipe),
        *_pools_missing(recipe, store),
        *_teacher_missing(recipe, pool),
        *_files_missing(recipe),
        *_cluster_missing(recipe, pool),
        *(_machine_missing(recipe, store) if recipe.place.is_here else []),
    ]


def _cluster_missing(recipe: Recipe, pool: Pool | None) -> Iterator[LaunchGap]:
    """What cannot work on the recipe's cluster, and whether there is one."""
    clusters = list_clusters(recipe)
    for key, sentence in find_cluster_problems(recipe, [pool] if pool else []):
        yield LaunchGap(key, _sentence(sentence))
    for place in clusters:
        try:
            check_address(place, ANSWER_S)
        except TrainingFailed as error:
            yield LaunchGap("where", _sentence(error))
    if clusters:
        secrets = list_references([spec.config for spec in pool.enabled]) if pool else []
        named = f" and the secrets {', '.join(secrets)}" if secrets else ""
        sentence = f"Every node needs this version of Podium{named}. The nodes are asked before the first episode."
        yield LaunchGap("where", sentence, blocks=False)


def _machine_missing(recipe: Recipe, store: Store) -> Iterator[LaunchGap]:
    """What this machine lacks to run the recipe."""
    yield from _model_missing(recipe)
    yield from _gpu_missing(recipe)
    yield from _backend_missing(recipe)
    yield from _disk_missing(recipe, store)


def _pool(recipe: Recipe, store: Store) -> Pool | None:
    try:
        return store.pools.latest(recipe.pool).pool
    except PoolNotFound:
        return starter_pool() if recipe.pool == "starter" else None


def _tasks_missing(recipe: Recipe, pool: Pool | None) -> Iterator[LaunchGap]:
    source, levels = recipe.tasks.source, recipe.tasks.levels
    if source.startswith("hub:"):
        yield LaunchGap("tasks.source", f"{source} is fetched from the hub when the job starts.", blocks=False)
        return
    if source.startswith(SOURCE) and pool is not None and not find_practice_file(source.removeprefix(SOURCE)).is_file():
        yield LaunchGap("tasks.source", "Practice tasks for this pool are made when the job starts.", blocks=False)
        return
    try:
        tasks = _sample_tasks(source, levels, _file_time(source))
    except TrainerError as error:
        yield LaunchGap("tasks.source", _sentence(error))
        return
    oracle = recipe.sft is not None and recipe.sft.demonstrations.teacher == "oracle"
    if oracle and not any(task.oracle_turn for task in tasks):
        yield LaunchGap(
            "sft.demonstrations.teacher",
            f"{EXPLAIN_NO_PLANS[0].upper()}{EXPLAIN_NO_PLANS[1:]}.",
        )
    if pool is None:
        return
    lacking = sorted({name for task in tasks for name in task.list_missing_workers(pool)})
    if lacking:
        yield LaunchGap(
            "pool",
            f"The pool {pool.name} has no {', '.join(lacking)}, which the plans of these tasks call. Add them on the "
            "Pool page, or choose other tasks (tasks.source).",
            f"/pool?pool={pool.name}",
            blocks=oracle,
        )


def _measured_tasks_missing(recipe: Recipe) -> Iterator[LaunchGap]:
    """The package of the tasks to be measured on, where these are others than those to learn from."""
    source = recipe.evaluate.source if recipe.evaluate else ""
    if source and source != recipe.tasks.source and (problem := explain_missing_package(source)):
        yield LaunchGap("evaluate.source", _sentence(problem))


def _teacher_missing(recipe: Recipe, pool: Pool | None) -> Iterator[LaunchGap]:
    """A teacher that does not exist on the recipe's pool."""
    if pool is None or recipe.sft is None:
        return
    teacher = recipe.sft.demonstrations.teacher
    try:
        if find_policy(teacher) is None:
            find_checkpoint(split_options(teacher)[0])
        elif not needs_reference(teacher):
            make_orchestrator(teacher, open_live_pool(pool))
    except OrchestratorError as error:
        yield LaunchGap("sft.demonstrations.teacher", _sentence(error))


def _pools_missing(recipe: Recipe, store: Store) -> Iterator[LaunchGap]:
    """Yield pools and tasks that the section `pools` names and that do not exist."""
    names = sorted({*store.pools.names(), "starter"})
    phases = recipe.grpo.phases if recipe.grpo else ()
    draws = [("pools", recipe.pools), *((f"grpo.phases.{k}.pools", phase.pools) for k, phase in enumerate(phases))]
    for key, pools in draws:
        for name in pools.sources if pools else ():
            if name not in names:
                yield LaunchGap(f"{key}.sources", f"There is no pool {name!r}; there are: {', '.join(names)}.", "/pool")
    if recipe.pools is not None and recipe.pools.unseen:
        try:
            open_source(recipe.pools.unseen)
        except TrainerError as error:
            yield LaunchGap("pools.unseen", _sentence(error))


def _file_time(source: str) -> float:
    """The time of the last change to a source's file; 0 for generated sources."""
    if source.startswith(SOURCE):
        path = find_practice_file(source.removeprefix(SOURCE))
    elif source.startswith("file:"):
        path = Path(source.removeprefix("file:")).expanduser()
    else:
        return 0.0
    return path.stat().st_mtime if path.is_file() else 0.0


@lru_cache(maxsize=16)
def _sample_tasks(source: str, levels: tuple[int, ...], _file_time: float) -> list[Task]:
    """Draw some tasks of the train split. Raises TrainerError."""
    return open_source(source).tasks("train", SAMPLE, levels=levels)


def _model_missing(recipe: Recipe) -> Iterator[LaunchGap]:
    model = recipe.model
    try:
        is_available(model.base)
    except WorkerFault as fault:
        made = (
            "The tiny model has not been made. Run `python -m scripts.build_tiny_base` (minutes), "
            "or choose starter:smollm2."
        )
        yield LaunchGap("model.base", made if model.base == TINY else _sentence(fault))
    if model.base.startswith(HUB):
        yield LaunchGap("model.base", f"{model.base} is fetched from the hub when the job starts.", blocks=False)
    if model.base == TINY and recipe.pool != "starter":
        yield LaunchGap(
            "model.base",
            f"starter:tiny knows only the starter pool; on {recipe.pool} it will not learn. Choose starter:smollm2 "
            "or a model of the hub.",
            blocks=False,
        )
    if model.start:
        try:
            find_checkpoint(model.start)
        except OrchestratorError as error:
            yield LaunchGap("model.start", _sentence(error))


def _gpu_missing(recipe: Recipe) -> Iterator[LaunchGap]:
    """A GPU that cannot be used is no reason to wait, but training on the CPU instead must be no surprise."""
    problem = _find_gpu_problem() if recipe.sft or recipe.grpo else None
    if problem is not None:
        sentence = f"This job would run on the CPU. The GPU cannot be used: {problem.cause}. {problem.action}."
        yield LaunchGap("model", sentence, blocks=False)
    gpus = list_gpus() if recipe.processes > 1 else []
    if gpus and len(gpus) < recipe.processes:
        yield LaunchGap("processes", f"This machine has {len(gpus)} GPUs: set processes: {len(gpus)} or fewer.")


@cache
def _find_gpu_problem() -> GpuProblem | None:
    """What it was when first asked: mending it needs a restart."""
    return find_gpu_problem()


def _backend_missing(recipe: Recipe) -> Iterator[LaunchGap]:
    if recipe.grpo is None:
        return
    key, rollouts = "grpo.rollouts.backend", recipe.grpo.rollouts
    runs_vllm = rollouts.backend == "vllm-colocate" or (rollouts.backend == "vllm" and not rollouts.vllm_url)
    if runs_vllm and not is_installed():
        yield LaunchGap(key, f"vLLM is not installed. Run `{INSTALL_VLLM}`, or choose the backend transformers.")
    if rollouts.backend == "vllm" and recipe.model.lora is None:
        yield LaunchGap("model.lora", "A vLLM server takes new adapters, not whole models: add model.lora.")


def _files_missing(recipe: Recipe) -> Iterator[LaunchGap]:
    if recipe.sft is not None and recipe.sft.demonstrations.file:
        path = Path(recipe.sft.demonstrations.file).expanduser()
        if not path.is_file():
            yield LaunchGap("sft.demonstrations.file", f"There is no file {path}.")
    for index, reward in enumerate(recipe.grpo.rewards if recipe.grpo else ()):
        problem = explain_missing_reward(reward.term)
        if problem:
            yield LaunchGap(f"grpo.rewards.{index}.term", f"{problem[0].upper()}{problem[1:]}.")


def _disk_missing(recipe: Recipe, store: Store) -> Iterator[LaunchGap]:
    free = shutil.disk_usage(store.home.root).free
    need = SPARE_BYTES + checkpoint_bytes(recipe) * checkpoints_kept(recipe)
    if free < need:
        yield LaunchGap(
            "saving.keep",
            f"Checkpoints need about {need / GB:.1f} GB and the disk has {free / GB:.1f} GB free. "
            "Free some space, or lower saving.keep.",
        )


def checkpoints_kept(recipe: Recipe) -> int:
    """The most checkpoints on disk at a time: those kept, the best, the last of SFT and the one being written."""
    return max((part.saving.keep for part in (recipe.sft, recipe.grpo) if part), default=0) + 3


def checkpoint_bytes(recipe: Recipe) -> int:
    """Estimate the bytes of one checkpoint: weights and AdamW's two moments, or an adapter's share of that."""
    base = recipe.model.base
    if base.startswith(HUB):
        return 0  # not known before it is fetched
    try:
        weights = sum(file.stat().st_size for file in model_path(base).glob("*.safetensors")) if _there(base) else 0
    except (WorkerFault, OSError):
        return 0
    return weights * 3 if recipe.model.lora is None else weights // 10


def _there(base: str) -> bool:
    """Whether the model is on this machine, ready to be read: the starter's is converted on first use."""
    try:
        return is_available(base) in ("found", "ready")
    except WorkerFault:
        return False


def _sentence(error: BaseException | str) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
