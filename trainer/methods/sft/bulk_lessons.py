"""Lessons in bulk: straight from the tasks' reference plans to tokens, in many processes, without running anything.

What a reference plan shows needs no episode. Every shard has tasks of its own seed, so that shards are made side by
side and in any order; what is there already is kept, and the same settings give the same lessons.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from orchestrator.prompt_styles import PROMPTS
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.language_models.model_files import model_path
from pool_registry.pool import Pool
from trainer.demonstrations.token_lessons import (
    LessonsManifest,
    TokenLesson,
    hash_tokenizer,
    name_shard,
    read_manifest,
    write_manifest,
    write_shard,
)
from trainer.demonstrations.transcripts import Demonstration, ReaderLesson, write_reader_lesson
from trainer.errors import InvalidRecipe, TrainingFailed
from trainer.methods.checks import load_tasks
from trainer.methods.sft.section import SftSettings
from trainer.recipe import Recipe
from trainer.tasks.shared_pools import list_brought_pools, make_vary

TASKS_PER_SHARD = 1_000
Tell = Callable[[LessonsManifest], None]


@dataclass(frozen=True, slots=True)
class ShardJob:
    """What one process needs to make a shard. `distractors` are the pools that the recipe names."""

    number: int
    folder: Path
    recipe: Recipe
    pool: Pool
    distractors: tuple[Pool, ...]


def make_lessons(
    recipe: Recipe, pool: Pool, distractors: tuple[Pool, ...], count: int, folder: Path, processes: int, tell: Tell
) -> LessonsManifest:
    """Make lessons of `count` tasks in `folder`, or go on where an earlier call stopped; `tell` gets the manifest after
    every shard. Raises InvalidRecipe, TrainingFailed and what loading tasks raises."""
    settings = find_sft_settings(recipe)
    check_makes_lessons(recipe, settings)
    manifest = _open_manifest(recipe, settings, count, folder)
    shards = -(-count // manifest.tasks_per_shard)
    todo = [number for number in range(shards) if not _is_there(folder, manifest, number)]
    jobs = [ShardJob(number, folder, _draw_shard(recipe, manifest, number), pool, distractors) for number in todo]
    for number, lessons in _make_shards(jobs, processes):
        made = {**manifest.shards, name_shard(number): lessons}
        manifest = manifest.model_copy(update={"shards": dict(sorted(made.items()))})
        write_manifest(folder, manifest)
        tell(manifest)
    return manifest


def find_sft_settings(recipe: Recipe) -> SftSettings:
    """The settings of the recipe's SFT stage. Raises InvalidRecipe without one."""
    for stage in recipe.training_stages:
        if isinstance(stage.settings, SftSettings):
            return stage.settings
    raise InvalidRecipe([("sft", "lessons are for SFT: add an sft stage, whose demonstrations say how they are made")])


def check_makes_lessons(recipe: Recipe, settings: SftSettings) -> None:
    """Raise InvalidRecipe where lessons need more than reference plans."""
    demonstrations = settings.demonstrations
    problems = []
    if not PROMPTS[recipe.model.prompt].binds_needs:
        problems.append(("model.prompt", "lessons in bulk are a reader's: set it to reader or reader-outputs"))
    if demonstrations.teacher != "oracle":
        problems.append(("sft.demonstrations.teacher", "only reference plans need no episode: set it to oracle"))
    if demonstrations.rounds > 1:
        problems.append(("sft.demonstrations.rounds", "rounds need a training between them: set it to 1"))
    if problems:
        raise InvalidRecipe(problems)


def make_shard(job: ShardJob) -> tuple[int, int]:
    """Make one shard and write it. Returns its number and how many lessons fit into `max_length`."""
    settings = find_sft_settings(job.recipe)
    lessons = [lesson for lesson in _encode(job, settings) if len(lesson.input_ids) <= settings.max_length]
    write_shard(job.folder / name_shard(job.number), lessons)
    return job.number, len(lessons)


def _encode(job: ShardJob, settings: SftSettings) -> Iterator[TokenLesson]:
    chat = _load_chat(job.recipe.model.base)
    for demonstration in asyncio.run(_demonstrate(job, settings)):
        transcript = demonstration.transcript(chat)
        yield TokenLesson(transcript.ids, transcript.labels())


async def _demonstrate(job: ShardJob, settings: SftSettings) -> list[Demonstration]:
    """What the reference plans of the shard's tasks show: a coroutine, for workers may want an event loop."""
    recipe = job.recipe
    tasks = load_tasks(recipe.tasks, "train", recipe.tasks.count)
    others = [*job.distractors, *list_brought_pools(tasks)] if recipe.pools else []
    seed = settings.optimizer.seed
    vary = make_vary(job.pool, recipe.pools, seed, others, tasks)
    lesson = ReaderLesson(recipe.model.choose_listing(), settings.demonstrations.listed_needs)
    needs_alone = settings.demonstrations.needs_alone
    return [
        write_reader_lesson(
            task.query, task.oracle_turn, open_live_pool(task.pool or job.pool), lesson, needs_alone, seed
        )
        for task in map(vary, tasks)
        if task.oracle_turn is not None
    ]


def _make_shards(jobs: list[ShardJob], processes: int) -> Iterator[tuple[int, int]]:
    """Make shards side by side; each comes when it is done."""
    if processes == 1 or len(jobs) < 2:
        yield from map(make_shard, jobs)
        return
    # spawn: a forked process would share the threads of whatever this one has loaded
    with ProcessPoolExecutor(processes, get_context("spawn"), _use_one_thread) as pool:
        waiting = [pool.submit(make_shard, job) for job in jobs]
        try:
            yield from (done.result() for done in as_completed(waiting))
        finally:
            pool.shutdown(cancel_futures=True)


def _use_one_thread() -> None:
    import torch

    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)  # the processes share the cores


@cache
def _load_chat(base: str) -> Any:
    from trainer.learner.token_transcript import ChatTokens

    return ChatTokens(_load_tokenizer(base))


def _load_tokenizer(base: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_path(base), local_files_only=True, trust_remote_code=False)


def _open_manifest(recipe: Recipe, settings: SftSettings, count: int, folder: Path) -> LessonsManifest:
    """The manifest of a folder that these settings fill. Raises TrainingFailed where it holds lessons of others."""
    style = recipe.model.prompt
    new = LessonsManifest(
        base=recipe.model.base,
        tokenizer=hash_tokenizer(_load_tokenizer(recipe.model.base)),
        prompt=style,
        prompt_version=PROMPTS[style].version,
        max_length=settings.max_length,
        tasks_per_shard=min(TASKS_PER_SHARD, count),
        tasks=count,
        recipe=_describe_content(recipe, settings),
    )
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        write_manifest(folder, new)
        return new
    old = read_manifest(folder)
    kept = {"tasks": count, "shards": old.shards, "tasks_per_shard": old.tasks_per_shard}
    if new.model_copy(update=kept) != old.model_copy(update={"tasks": count}):
        raise TrainingFailed("lessons", f"{folder} holds lessons of other settings; name an empty folder")
    return new.model_copy(update=kept)


def _describe_content(recipe: Recipe, settings: SftSettings) -> dict[str, Any]:
    """What of a recipe decides the content of its lessons, beside their number."""
    demonstrations = settings.demonstrations
    return {
        "pool": recipe.pool,
        "hints": recipe.model.count_hints(),
        "tasks": recipe.tasks.model_dump(mode="json", exclude={"count"}),
        "pools": recipe.pools.model_dump(mode="json") if recipe.pools else None,
        "listed_needs": demonstrations.listed_needs,
        "needs_alone": demonstrations.needs_alone,
        "seed": settings.optimizer.seed,
    }


def _is_there(folder: Path, manifest: LessonsManifest, number: int) -> bool:
    name = name_shard(number)
    return name in manifest.shards and (folder / name).is_file()


def _draw_shard(recipe: Recipe, manifest: LessonsManifest, number: int) -> Recipe:
    """The recipe of one shard: its number of tasks, of a seed that no other shard has."""
    left = manifest.tasks - number * manifest.tasks_per_shard
    update = {"count": min(manifest.tasks_per_shard, left), "seed": recipe.tasks.seed + number}
    return recipe.model_copy(update={"tasks": recipe.tasks.model_copy(update=update)})
