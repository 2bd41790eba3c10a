"""Lessons in bulk: straight from the tasks' reference plans to tokens, in many processes.

What a reference plan shows needs no episode; only where second turns are to be learnt is a wrong one run, or written by
a reader. Every shard has tasks of its own seed, so that shards are made side by side and in any order; what is there
already is kept, and the same settings give the same lessons.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from orchestrator.plan import Turn
from orchestrator.prompt_styles import PROMPTS
from pool_registry.atomic_write import lock_file
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.language_models.model_files import model_path
from pool_registry.pool import Pool
from trainer.demonstrations.slips import draw_second_turn, make_slipping_reader
from trainer.demonstrations.token_lessons import (
    MANIFEST,
    LessonsManifest,
    LessonsRequest,
    ShardRecord,
    TokenLesson,
    add_shard,
    hash_tokenizer,
    is_whole,
    name_shard,
    read_manifest,
    write_manifest,
    write_shard,
)
from trainer.demonstrations.transcripts import Demonstration, ReaderLesson, write_reader_lesson
from trainer.errors import MENDABLE, InvalidRecipe, TrainingFailed
from trainer.methods.checks import check_workers, load_tasks
from trainer.methods.sft.section import SftSettings
from trainer.recipe import Recipe
from trainer.tasks.shared_pools import list_brought_pools, make_vary
from trainer.tasks.task import Task
from trainer.tasks.teachers import ORACLE

TASKS_PER_SHARD = 1_000
SLIPS_PER_SHARD = 50  # tasks, where a reader writes the plans that go wrong: three minutes of work
MOST_REPEATED = 0.1  # of the tasks of another seed, where a source makes tasks without end
Tell = Callable[[LessonsManifest], None]


@dataclass(frozen=True, slots=True)
class ShardJob:
    """What one process needs to make a shard."""

    number: int
    recipe: Recipe
    settings: SftSettings
    pool: Pool
    distractors: tuple[Pool, ...]
    folder: Path


@dataclass(frozen=True, slots=True)
class FinishedShard:
    """What became of a shard; `problem` says what a person can mend, where it was not made."""

    number: int
    record: ShardRecord
    problem: str = ""


def make_lessons(request: LessonsRequest, settings: SftSettings, tell: Tell) -> LessonsManifest:
    """Make lessons, or go on where an earlier call stopped; `tell` gets the manifest after every shard. Raises
    InvalidRecipe, TrainingFailed, OSError and what loading tasks raises."""
    check_makes_lessons(request.recipe, settings)
    check_has_tasks(request.recipe, request.count)
    manifest = _open_manifest(request, settings)
    todo = [job for job in _list_jobs(request, settings, manifest) if not _is_there(job, manifest)]
    for shard in _make_shards(todo, request.processes):
        if shard.problem:
            raise TrainingFailed("lessons", shard.problem)
        manifest = add_shard(request.folder, shard.number, shard.record)
        tell(manifest)
    return manifest


def check_makes_lessons(recipe: Recipe, settings: SftSettings) -> None:
    """Raise InvalidRecipe where lessons need more than reference plans."""
    demonstrations = settings.demonstrations
    problems = []
    if not PROMPTS[recipe.model.prompt].binds_needs:
        problems.append(("model.prompt", "lessons in bulk are a reader's: set it to reader or reader-fields"))
    if demonstrations.teacher != ORACLE:
        problems.append(("sft.demonstrations.teacher", "only reference plans need no episode: set it to oracle"))
    if demonstrations.rounds > 1:
        problems.append(("sft.demonstrations.rounds", "rounds need a training between them: set it to 1"))
    if demonstrations.variants:
        problems.append(("sft.demonstrations.variants", "lessons in bulk have no copies: set it to 0"))
    if problems:
        raise InvalidRecipe(problems)


def check_has_tasks(recipe: Recipe, count: int) -> None:
    """Raise TrainingFailed where the source has fewer tasks: shards of its other seeds would hold the same ones."""
    wanted = min(count, TASKS_PER_SHARD + 1)
    tasks = load_tasks(recipe.tasks, "train", wanted)
    if len(tasks) < wanted:
        raise TrainingFailed("lessons", f"{recipe.tasks.source} has {len(tasks):,} tasks to learn on: ask for as many")
    if count <= TASKS_PER_SHARD:
        return
    others = load_tasks(recipe.tasks.model_copy(update={"seed": recipe.tasks.seed + 1}), "train", wanted)
    queries = {task.query for task in tasks}
    if sum(task.query in queries for task in others) > MOST_REPEATED * len(others):
        raise TrainingFailed(
            "lessons",
            f"the tasks of {recipe.tasks.source} repeat from seed to seed: ask for at most {TASKS_PER_SHARD:,}, or "
            "mix in a source that makes tasks without end",
        )


def make_shard(job: ShardJob) -> FinishedShard:
    """Make one shard and write it; of its lessons those that fit into `max_length`."""
    try:
        tasks = load_tasks(job.recipe.tasks, "train", job.recipe.tasks.count)
        check_workers(tasks, job.pool)
        lessons = [lesson for lesson in _encode(job, tasks) if len(lesson.input_ids) <= job.settings.max_length]
    except MENDABLE as error:  # as text: not every error of ours survives the way between processes
        return FinishedShard(job.number, ShardRecord(tasks=0, lessons=0), str(error))
    write_shard(job.folder / name_shard(job.number), lessons)
    return FinishedShard(job.number, ShardRecord(tasks=job.recipe.tasks.count, lessons=len(lessons)))


def _encode(job: ShardJob, tasks: list[Task]) -> Iterator[TokenLesson]:
    chat = _load_chat(job.recipe.model.base)
    for demonstration in asyncio.run(_demonstrate(job, tasks)):
        transcript = demonstration.transcript(chat)
        yield TokenLesson(transcript.ids, transcript.labels())


async def _demonstrate(job: ShardJob, tasks: list[Task]) -> list[Demonstration]:
    """What the tasks' reference plans show: a coroutine, for workers may want an event loop."""
    recipe, options, seed = job.recipe, job.settings.demonstrations, job.settings.optimizer.seed
    others = [*job.distractors, *list_brought_pools(tasks)] if recipe.pools else []
    vary = make_vary(job.pool, recipe.pools, seed, others, tasks)
    lesson = ReaderLesson(recipe.model.choose_listing(), options.listed_needs)
    slots = asyncio.Semaphore(options.concurrency if options.slips else 1)

    async def demonstrate(task: Task, turn: Turn) -> Demonstration:
        async with slots:
            live = open_live_pool(task.pool or job.pool)
            tried = await draw_second_turn(task, live, options.second_turns, seed, make_slipping_reader(options, live))
            return write_reader_lesson(task.query, turn, live, lesson, options.needs_alone, seed, tried)

    shown = [demonstrate(task, task.oracle_turn) for task in map(vary, tasks) if task.oracle_turn is not None]
    return await asyncio.gather(*shown)


def _make_shards(jobs: list[ShardJob], processes: int) -> Iterator[FinishedShard]:
    """Make shards side by side; each comes when it is done."""
    if processes == 1 or len(jobs) < 2:
        yield from map(make_shard, jobs)
        return
    # spawn: a forked process would share the threads of whatever this one has loaded
    with ProcessPoolExecutor(min(processes, len(jobs)), get_context("spawn"), _begin_process) as pool:
        waiting = [pool.submit(make_shard, job) for job in jobs]
        try:
            yield from (done.result() for done in as_completed(waiting))
        except BrokenProcessPool as error:
            raise TrainingFailed(
                "lessons",
                "a process ended before its shard was done, perhaps for want of memory; what is finished is kept: "
                "call it again, with fewer --processes",
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _begin_process() -> None:
    """One thread, for the processes share the cores; an end at once with Ctrl-C and with the process that began it."""
    import torch

    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None, "it runs in a process that another one began"
    parent.join()
    os._exit(1)


@cache
def _load_chat(base: str) -> Any:
    from trainer.learner.token_transcript import ChatTokens

    return ChatTokens(_load_tokenizer(base))


def _load_tokenizer(base: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_path(base), local_files_only=True, trust_remote_code=False)


def _open_manifest(request: LessonsRequest, settings: SftSettings) -> LessonsManifest:
    """The manifest of a folder that these settings fill. Raises TrainingFailed where it holds something else."""
    recipe, folder = request.recipe, request.folder
    style = recipe.model.prompt
    new = LessonsManifest(
        base=recipe.model.base,
        tokenizer=hash_tokenizer(_load_tokenizer(recipe.model.base)),
        prompt=style,
        prompt_version=PROMPTS[style].version,
        max_length=settings.max_length,
        tasks_per_shard=SLIPS_PER_SHARD if settings.demonstrations.slips else TASKS_PER_SHARD,
        recipe=_describe_content(recipe, settings),
    )
    folder.mkdir(parents=True, exist_ok=True)
    is_empty = not any(folder.iterdir())
    with lock_file(folder / ".lock"):
        if is_empty and not (folder / MANIFEST).exists():
            write_manifest(folder, new)
        old = read_manifest(folder)
    if new.model_copy(update={"shards": old.shards}) != old:
        raise TrainingFailed("lessons", f"{folder} holds lessons of other settings; name an empty folder")
    return old


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
        **demonstrations.model_dump(include={"second_turns", "slips"}),
        "seed": settings.optimizer.seed,
    }


def _list_jobs(request: LessonsRequest, settings: SftSettings, manifest: LessonsManifest) -> Iterator[ShardJob]:
    """The shards of a request, each with the tasks of a seed that no other one has."""
    tasks = request.recipe.tasks
    size = manifest.tasks_per_shard
    for number in range(-(-request.count // size)):
        update = {"count": min(size, request.count - number * size), "seed": tasks.seed + number}
        recipe = request.recipe.model_copy(update={"tasks": tasks.model_copy(update=update)})
        yield ShardJob(number, recipe, settings, request.pool, request.distractors, request.folder)


def _is_there(job: ShardJob, manifest: LessonsManifest) -> bool:
    """Whether a shard is finished, of as many tasks as are wanted now."""
    record = manifest.shards.get(name_shard(job.number))
    return (
        record is not None
        and record.tasks >= job.recipe.tasks.count
        and is_whole(job.folder / name_shard(job.number), record)
    )
