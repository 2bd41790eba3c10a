"""What prevents a recipe from being started: each gap with the key of the recipe and what to do about it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path

from orchestrator.checkpoints import find_checkpoint
from orchestrator.errors import OrchestratorError
from orchestrator.traces.store import Store
from pool_registry.calls.worker_state import lacks_price
from pool_registry.errors import PoolNotFound, SecretNotFound, WorkerFault
from pool_registry.kinds import kind_of, load_config
from pool_registry.language_models.model_files import HUB, TINY, is_available, model_path
from pool_registry.pool import Pool
from pool_registry.secrets import list_references, resolve
from pool_registry.starter import starter_pool
from trainer.cluster.connection import check_address
from trainer.cluster.preflight import find_cluster_problems, list_clusters
from trainer.errors import TrainerError, TrainingFailed, UnknownTask
from trainer.jobs.gpus import list_gpus
from trainer.launch_gap import LaunchGap, as_sentence
from trainer.memory_fit.gpu_state import GpuProblem, find_gpu_problem
from trainer.recipe import Recipe
from trainer.tasks.practice.stored import SOURCE, find_practice_file
from trainer.tasks.registry import explain_missing_package, open_source
from trainer.tasks.task import Task

SAMPLE = 200  # tasks that are looked at
SPARE_BYTES = 1_000_000_000
ANSWER_S = 2.0  # for a cluster, while a person edits the recipe
GB = 1_000_000_000


def find_gaps(recipe: Recipe, store: Store) -> list[LaunchGap]:
    """Find everything that prevents a start, and what should be known before one; a wrong place comes first."""
    pool = _pool(recipe, store)
    checks = CHECKS if recipe.place.is_here else [check for check in CHECKS if check not in OF_THIS_MACHINE]
    gaps = [gap for check in checks for gap in check(recipe, pool, store)]
    return sorted(gaps, key=lambda gap: not (gap.key == "where" and gap.blocks))


def _pool_missing(recipe: Recipe, pool: Pool | None, _store: Store) -> Iterator[LaunchGap]:
    if pool is None:
        yield LaunchGap("pool", f"There is no pool {recipe.pool!r}. Make it on the Pool page.", "/pool")


def _methods_lack(recipe: Recipe, pool: Pool | None, store: Store) -> Iterator[LaunchGap]:
    """What the recipe's methods miss."""
    for stage in recipe.training_stages:
        yield from stage.method.find_gaps(stage.settings, recipe, pool, store)


def _methods_lack_here(recipe: Recipe, _pool: Pool | None, _store: Store) -> Iterator[LaunchGap]:
    """What this machine lacks for the recipe's methods."""
    for stage in recipe.training_stages:
        yield from stage.method.find_machine_gaps(stage.settings, recipe)


def _cluster_missing(recipe: Recipe, pool: Pool | None, _store: Store) -> Iterator[LaunchGap]:
    """What cannot work on the recipe's cluster, and whether there is one."""
    clusters = list_clusters(recipe)
    for key, sentence in find_cluster_problems(recipe, [pool] if pool else []):
        yield LaunchGap(key, as_sentence(sentence))
    for place in clusters:
        try:
            check_address(place, ANSWER_S)
        except TrainingFailed as error:
            yield LaunchGap("where", as_sentence(error))
    if clusters:
        secrets = list_references([spec.config for spec in pool.switched_on]) if pool else []
        named = f" and the secrets {', '.join(secrets)}" if secrets else ""
        sentence = f"Every node needs this version of Podium{named}. The nodes are asked before the first episode."
        yield LaunchGap("where", sentence, blocks=False)


def _pool(recipe: Recipe, store: Store) -> Pool | None:
    try:
        return store.pools.latest(recipe.pool).pool
    except PoolNotFound:
        return starter_pool() if recipe.pool == "starter" else None


def _tasks_missing(recipe: Recipe, pool: Pool | None, _store: Store) -> Iterator[LaunchGap]:
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
        yield LaunchGap("tasks.source", as_sentence(error))
        return
    for stage in recipe.training_stages:
        yield from stage.method.find_task_gaps(stage.settings, tasks)
    if pool is None:
        return
    lacking = sorted({name for task in tasks for name in task.list_missing_workers(pool)})
    if lacking:
        yield LaunchGap(
            "pool",
            f"The pool {pool.name} has no {', '.join(lacking)}, which the plans of these tasks call. Add them on the "
            "Pool page, or choose other tasks (tasks.source).",
            f"/pool?pool={pool.name}",
            blocks=recipe.needs_plans,
        )


def _measured_tasks_missing(recipe: Recipe, _pool: Pool | None, _store: Store) -> Iterator[LaunchGap]:
    """The package of the tasks to be measured on, where these are others than those to learn from."""
    source = recipe.evaluate.source if recipe.evaluate else ""
    if source and source != recipe.tasks.source and (problem := explain_missing_package(source)):
        yield LaunchGap("evaluate.source", as_sentence(problem))


def _splits_missing(recipe: Recipe, _pool: Pool | None, _store: Store) -> Iterator[LaunchGap]:
    """Parts of the tasks that a later stage needs, and that have none: a job would end there after hours."""
    source, levels = recipe.tasks.source, recipe.tasks.levels
    if source.startswith("hub:") or (
        source.startswith(SOURCE) and not find_practice_file(source.removeprefix(SOURCE)).is_file()
    ):
        return
    needed = {}
    if any(stage.settings.saving.check_tasks for stage in recipe.training_stages):
        needed["validation"] = "checkpoints are measured on. Add some, or set saving.check_tasks: 0"
    if recipe.evaluate is not None and not recipe.evaluate.source:
        needed[recipe.evaluate.split] = "the last stage measures on. Add some, or leave evaluate out"
    for split, what in needed.items():
        try:
            if open_source(source).tasks(split, 1, levels=levels):
                continue
        except UnknownTask:
            pass  # there is none
        except TrainerError:
            continue  # told where the tasks to learn from are looked at
        yield LaunchGap("tasks.source", f"{source} has no task in the split {split}, which {what}.")


def _agents_missing(recipe: Recipe, pool: Pool | None, _store: Store) -> Iterator[LaunchGap]:
    """What the stage `who` needs of a pool."""
    if recipe.who is None or pool is None:
        return
    if len(pool.agents()) < 2:
        sentence = f"The pool {pool.name} has fewer than two agents to choose from. Add agents, or leave who out."
        yield LaunchGap("who", sentence, f"/pool?pool={pool.name}")


def _judges_missing(recipe: Recipe, pool: Pool | None, _store: Store) -> Iterator[LaunchGap]:
    """Judges that tasks name and the pool has not."""
    if pool is None:
        return
    try:
        tasks = _sample_tasks(recipe.tasks.source, recipe.tasks.levels, _file_time(recipe.tasks.source))
    except TrainerError:
        return
    judges = {task.judge for task in tasks if task.judge}
    there = {spec.name for spec in pool.switched_on}
    if lacking := sorted(judges - there):
        sentence = f"Tasks are graded by {', '.join(lacking)}, which the pool {pool.name} has not, or not switched on."
        yield LaunchGap("pool", sentence, f"/pool?pool={pool.name}")


def _keys_missing(_recipe: Recipe, pool: Pool | None, _store: Store) -> Iterator[LaunchGap]:
    """Keys that workers name and that are not set on this machine."""
    if pool is None:
        return
    users: dict[str, list[str]] = {}
    for spec in pool.switched_on:
        for reference in list_references(spec.config):
            users.setdefault(reference, []).append(spec.name)
    for reference, names in users.items():
        try:
            resolve(reference)
        except SecretNotFound as error:
            yield LaunchGap("pool", as_sentence(f"{error}, for {', '.join(names)}"), blocks=False)


def _prices_missing(recipe: Recipe, pool: Pool | None, _store: Store) -> Iterator[LaunchGap]:
    """Workers that a capped job cannot call, because nobody knows what they cost."""
    if recipe.max_cost is None or pool is None:
        return
    unpriced = [spec.name for spec in pool.switched_on if lacks_price(spec, kind_of(spec).load(), load_config(spec))]
    if unpriced:
        sentence = (
            f"The job has a cap, and {', '.join(unpriced)} has no price: give each its price_in and price_out, or say "
            "that its calls are free."
        )
        yield LaunchGap("max_cost", sentence, f"/pool?pool={pool.name}")


def _pools_missing(recipe: Recipe, _pool: Pool | None, store: Store) -> Iterator[LaunchGap]:
    """Yield pools and tasks that the section `pools` names and that do not exist."""
    names = sorted({*store.pools.names(), "starter"})
    for key, pools in recipe.list_pool_draws():
        for name in pools.sources:
            if name not in names:
                yield LaunchGap(f"{key}.sources", f"There is no pool {name!r}; there are: {', '.join(names)}.", "/pool")
    if recipe.pools is not None and recipe.pools.unseen:
        try:
            open_source(recipe.pools.unseen)
        except TrainerError as error:
            yield LaunchGap("pools.unseen", as_sentence(error))


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


def _model_missing(recipe: Recipe, _pool: Pool | None, _store: Store) -> Iterator[LaunchGap]:
    model = recipe.model
    try:
        is_available(model.base)
    except WorkerFault as fault:
        made = (
            "The tiny model has not been made. Run `python -m scripts.build_tiny_base` (minutes), "
            "or choose starter:smollm2."
        )
        yield LaunchGap("model.base", made if model.base == TINY else as_sentence(fault))
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
            yield LaunchGap("model.start", as_sentence(error))


def _gpu_missing(recipe: Recipe, _pool: Pool | None, _store: Store) -> Iterator[LaunchGap]:
    """A GPU that cannot be used is no reason to wait, but training on the CPU instead must be no surprise."""
    problem = _find_gpu_problem() if recipe.trains else None
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


def _disk_missing(recipe: Recipe, _pool: Pool | None, store: Store) -> Iterator[LaunchGap]:
    free = shutil.disk_usage(store.home.root).free
    need = SPARE_BYTES + checkpoint_bytes(recipe) * checkpoints_kept(recipe)
    if free < need:
        yield LaunchGap(
            "saving.keep",
            f"Checkpoints need about {need / GB:.1f} GB and the disk has {free / GB:.1f} GB free. "
            "Free some space, or lower saving.keep.",
        )


def checkpoints_kept(recipe: Recipe) -> int:
    """The most checkpoints on disk at a time: those kept, the best, the last of a stage and the one being written."""
    return max((stage.settings.saving.keep for stage in recipe.training_stages), default=0) + 3


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


Check = Callable[[Recipe, Pool | None, Store], Iterator[LaunchGap]]
# The order is that of the page. The pool comes as None where it does not exist.
CHECKS: tuple[Check, ...] = (
    _pool_missing,
    _tasks_missing,
    _measured_tasks_missing,
    _splits_missing,
    _agents_missing,
    _judges_missing,
    _prices_missing,
    _keys_missing,
    _pools_missing,
    _methods_lack,
    _cluster_missing,
    _model_missing,
    _gpu_missing,
    _methods_lack_here,
    _disk_missing,
)
OF_THIS_MACHINE = (_model_missing, _gpu_missing, _methods_lack_here, _disk_missing)
