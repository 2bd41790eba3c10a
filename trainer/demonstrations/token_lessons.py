"""Lessons as tokens, in a folder that any number of trainings read: shards of Parquet and what they were made with.

A shard holds rows of `input_ids` and `learnt`: the spans of tokens that the model is to write, as start and end in
turn. A training reads them from disk row by row; only what a batch needs is in memory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError

from orchestrator.prompt_styles import PROMPTS, PromptStyle
from pool_registry.actions import JsonValue
from pool_registry.atomic_write import draft_file, lock_file, write_atomically
from pool_registry.strict_model import StrictModel
from trainer.errors import TrainingFailed

if TYPE_CHECKING:
    from datasets import Dataset

    from pool_registry.pool import Pool
    from trainer.recipe import Recipe

MANIFEST = "lessons.json"
COMMAND = "`python -m trainer lessons make`"
NO_TARGET = -100  # transformers' convention


@dataclass(frozen=True, slots=True)
class LessonsRequest:
    """Lessons of `count` tasks of a recipe, to be made in `folder` by so many processes. `distractors` are the pools
    that the recipe names."""

    recipe: Recipe
    pool: Pool
    distractors: tuple[Pool, ...]
    count: int
    folder: Path
    processes: int


class ShardRecord(StrictModel):
    """How many tasks a shard was made of, and how many lessons it holds."""

    tasks: int
    lessons: int


class LessonsManifest(StrictModel):
    """What the lessons of a folder were made with, and its finished shards. `recipe` is what decides their content."""

    podium_lessons: Literal[1] = 1
    base: str
    tokenizer: str  # a hash of the vocabulary and the chat template
    prompt: PromptStyle
    prompt_version: int
    max_length: int
    tasks_per_shard: int
    recipe: dict[str, JsonValue]
    shards: dict[Annotated[str, Field(pattern=r"^shard-\d{5,}\.parquet$")], ShardRecord] = {}

    @property
    def tasks(self) -> int:
        """The tasks of all finished shards."""
        return sum(shard.tasks for shard in self.shards.values())

    @property
    def lessons(self) -> int:
        """The lessons of all finished shards."""
        return sum(shard.lessons for shard in self.shards.values())


@dataclass(frozen=True, slots=True)
class TokenLesson:
    """One lesson: its tokens, and the labels of them."""

    input_ids: Sequence[int]
    labels: Sequence[int]


def name_shard(number: int) -> str:
    """The file name of a shard."""
    return f"shard-{number:05}.parquet"


def hash_tokenizer(tokenizer: Any) -> str:
    """A hash of all that decides which tokens a conversation becomes."""
    parts = [tokenizer.chat_template, tokenizer.eos_token, sorted(tokenizer.get_vocab().items())]
    return sha256(json.dumps(parts).encode()).hexdigest()


def write_shard(path: Path, lessons: Sequence[TokenLesson]) -> None:
    """Write a shard, whole or not at all."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = {
        "input_ids": pa.array([list(lesson.input_ids) for lesson in lessons], pa.list_(pa.uint32())),
        "learnt": pa.array([find_spans(lesson.labels) for lesson in lessons], pa.list_(pa.uint32())),
    }
    with draft_file(path) as draft:
        parquet.write_table(pa.table(rows), draft, compression="zstd")


def is_whole(path: Path, record: ShardRecord) -> bool:
    """Whether a shard is there with all of its lessons."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return bool(parquet.read_metadata(path).num_rows == record.lessons)
    except (OSError, pa.ArrowException):
        return False


def write_manifest(folder: Path, manifest: LessonsManifest) -> None:
    """Write what the lessons of a folder were made with."""
    write_atomically(folder / MANIFEST, json.dumps(manifest.model_dump(), indent=1, ensure_ascii=False) + "\n")


def add_shard(folder: Path, number: int, record: ShardRecord) -> LessonsManifest:
    """Enter a finished shard, beside those that another process has entered meanwhile. Returns the manifest."""
    with lock_file(folder / ".lock"):
        manifest = read_manifest(folder)
        shards = dict(sorted({**manifest.shards, name_shard(number): record}.items()))
        manifest = manifest.model_copy(update={"shards": shards})
        write_manifest(folder, manifest)
    return manifest


def read_manifest(folder: Path) -> LessonsManifest:
    """Read it. Raises TrainingFailed."""
    try:
        return LessonsManifest.model_validate_json((folder / MANIFEST).read_bytes())
    except OSError as error:
        raise TrainingFailed(
            "lessons", f"{folder} holds no lessons (no {MANIFEST}); make some with {COMMAND}, in an empty folder"
        ) from error
    except ValidationError as error:
        raise TrainingFailed("lessons", f"{folder / MANIFEST} is malformed; make the lessons again") from error


def check_fit(folder: Path, prompt: PromptStyle) -> LessonsManifest:
    """The manifest of lessons that a model with these prompts can learn. Raises TrainingFailed."""
    manifest = read_manifest(folder)
    there = (manifest.prompt, manifest.prompt_version)
    if there != (prompt, PROMPTS[prompt].version):
        raise TrainingFailed(
            "lessons",
            f"the lessons in {folder} have prompts of the style {there[0]}, version {there[1]}; the recipe's is "
            f"{prompt}, version {PROMPTS[prompt].version}: make them again, or set model.prompt: {there[0]}",
        )
    if not manifest.lessons:
        raise TrainingFailed("lessons", f"{folder} has no finished shard; go on with {COMMAND}")
    return manifest


def load_lessons(folder: Path, prompt: PromptStyle, tokenizer: Any, max_length: int) -> Dataset:
    """The lessons of at most `max_length` tokens as rows of `input_ids`, `labels` and `length`, read from disk as they
    are needed. Raises TrainingFailed where they fit another model or prompt, or a shard is gone or damaged."""
    from datasets import Dataset

    manifest = check_fit(folder, prompt)
    if manifest.tokenizer != hash_tokenizer(tokenizer):
        raise TrainingFailed(
            "lessons", f"the lessons in {folder} are tokens of another model ({manifest.base}): make them for this one"
        )
    for name, record in manifest.shards.items():
        if not is_whole(folder / name, record):
            raise TrainingFailed("lessons", f"{folder / name} is gone or damaged; {COMMAND} makes it again")
    files = [str(folder / name) for name in manifest.shards]
    rows = Dataset.from_parquet(files, cache_dir=str(folder / "cache"))
    rows = rows.map(_add_labels, remove_columns=["learnt"], desc=None)
    rows = rows.filter(lambda length: length <= max_length, input_columns="length")
    if not len(rows):
        raise TrainingFailed("max_length", f"no lesson of {folder} has at most {max_length:,} tokens; raise max_length")
    return rows


def _add_labels(row: dict[str, Any]) -> dict[str, Any]:
    ids = row["input_ids"]
    return {"labels": make_labels(ids, row["learnt"]), "length": len(ids)}


def find_spans(labels: Sequence[int]) -> list[int]:
    """The spans of labels that are targets: start and end of each, in turn."""
    spans: list[int] = []
    place = 0
    for is_target, run in groupby(labels, lambda label: label != NO_TARGET):
        length = len(list(run))
        spans += [place, place + length] if is_target else []
        place += length
    return spans


def make_labels(ids: Sequence[int], spans: Sequence[int]) -> list[int]:
    """The labels that these spans stand for."""
    labels = [NO_TARGET] * len(ids)
    for start, end in zip(spans[::2], spans[1::2], strict=True):
        labels[start:end] = ids[start:end]
    return labels
