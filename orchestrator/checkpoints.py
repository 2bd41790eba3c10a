"""Checkpoints: trained orchestrators as folders, found by name and read back.

A folder is a checkpoint once its `podium.json` is there: the manifest is written last and names every other file with
its size and hash. A folder without a manifest, or that does not match it, was interrupted and is not used.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from assets import asset
from orchestrator.binding.learnt_worker import LearntWorker, describe_starter
from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import split_options
from orchestrator.out_of_depth.learnt_queries import FILE as LEARNT_QUERIES
from orchestrator.prompt import PromptStyle
from pool_registry.actions import JsonValue
from pool_registry.atomic_write import flush_to_disk, write_atomically
from pool_registry.storage.data_folder import find_home
from pool_registry.strict_model import StrictModel

MANIFEST = "podium.json"
# Names that are always there. `base` is the small model before it has seen a plan.
STARTERS = {
    "base": "tiny-base",
    "starter-sft": "tiny-sft",
    "starter-grpo": "tiny-grpo",
    "smollm2-sft": "smollm2-sft",
    "smollm2-grpo": "smollm2-grpo",
    "smollm2-reader": "smollm2-reader",
}
READER = "smollm2-reader"  # plans for any pool
# The files of a checkpoint that are copied and published: weights as safetensors, and texts and numbers beside them.
# Other formats of weights can hold code.
WEIGHTS = re.compile(r"(adapter_)?model(-\d{5}-of-\d{5})?\.safetensors")
TEXTS = frozenset(
    {"config.json", "generation_config.json", "adapter_config.json", "model.safetensors.index.json", "tokenizer.json",
     "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
     "tokenizer.model", "chat_template.jinja", LEARNT_QUERIES}
)  # fmt: skip
_OF_JOB = re.compile(r"([a-z0-9][a-z0-9-]{2,60})(?:@([0-9]{1,9}))?")


class FileMark(BaseModel):
    """The size in bytes and the hash of a file."""

    size: int
    sha256: str


class TrainedPool(BaseModel):
    """The pool version that a checkpoint was trained on. `specs` says what its workers do and take; manifests of
    earlier versions have none."""

    name: str
    hash: str
    workers: tuple[str, ...]
    specs: tuple[LearntWorker, ...] = ()

    @property
    def learnt(self) -> tuple[LearntWorker, ...]:
        """Its workers for a binding; () where neither this manifest nor the starter pool knows them."""
        return self.specs or describe_starter(self.hash)


class Checkpoint(StrictModel):
    """The manifest: base model, weights, dialect, pool version, recipe and metrics, all that using it again needs.

    `kind` says whether the folder holds a whole model or an adapter for `base`. `prompt` is the style in which
    queries were put to the model in training; it must be used with the same one.
    """

    podium_checkpoint: Literal[1] = 1
    name: str
    kind: Literal["full", "adapter"]
    base: str
    stage: Literal["base", "sft", "grpo"]
    phase: str = ""  # of GRPO, after its main run
    step: int = 0
    dialect: str = "plan"
    prompt: PromptStyle = "full"
    turn_tokens: int = Field(default=512, ge=1)
    max_rounds: int | None = Field(default=None, ge=1)
    pool: TrainedPool | None = None
    created_at: str = ""
    recipe: dict[str, JsonValue] = {}
    metrics: dict[str, float] = {}
    files: dict[str, FileMark] = {}


def find_checkpoint(name: str) -> tuple[Path, Checkpoint]:
    """The folder and manifest of a checkpoint: a starter's name, `JOB`, `JOB@STEP` or a folder. Options are ignored.

    Raises UnknownOrchestrator saying which there are.
    """
    folder = _find_folder(split_options(name)[0])
    if folder is None:
        raise UnknownOrchestrator(f"there is no checkpoint {name!r}; there are: {', '.join(checkpoint_names())}")
    return folder, read_checkpoint(folder)


def read_checkpoint(folder: Path, verify: bool = False) -> Checkpoint:
    """The manifest of a folder; with `verify` every file is compared with it.

    Raises UnknownOrchestrator when there is none, or when a file is missing or damaged.
    """
    try:
        checkpoint = Checkpoint.model_validate_json((folder / MANIFEST).read_bytes())
    except (OSError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise UnknownOrchestrator(f"{folder} holds no complete checkpoint ({MANIFEST}: {reason})") from error
    for file, mark in checkpoint.files.items():
        path = folder / file
        if not path.is_file() or path.stat().st_size != mark.size or (verify and _sha256(path) != mark.sha256):
            raise UnknownOrchestrator(f"the checkpoint {folder} is damaged: {file} is not the file that was saved")
    return checkpoint


def is_complete(folder: Path) -> bool:
    """Whether a folder holds a complete checkpoint."""
    try:
        read_checkpoint(folder)
    except UnknownOrchestrator:
        return False
    return True


def spell_checkpoint(name: str) -> str:
    """The one name under which settings of a checkpoint are stored: a starter's, `JOB@STEP`, or its folder's path.

    Raises UnknownOrchestrator when there is no such checkpoint.
    """
    folder, _ = find_checkpoint(name)
    starters = [starter for starter in STARTERS if starter_checkpoint(starter) == folder]
    if starters:
        return starters[0]
    jobs = find_home().jobs
    if folder.parent.name == "checkpoints" and folder.parent.parent.parent == jobs:
        return f"{folder.parent.parent.name}@{folder.name}"
    return str(folder.resolve())


def checkpoint_names() -> list[str]:
    """Every checkpoint of this machine: the starters, then those of jobs, newest job first."""
    starters = [name for name in STARTERS if is_complete(starter_checkpoint(name))]
    jobs = sorted(find_home().jobs.glob("*/checkpoints"), key=lambda path: path.stat().st_mtime, reverse=True)
    return starters + [f"{folder.parent.name}@{step}" for folder in jobs for step, _ in complete_steps(folder)]


def complete_steps(checkpoints: Path) -> list[tuple[int, Path]]:
    """The complete checkpoints in a job's folder by step, newest first."""
    steps = [
        (int(folder.name), folder) for folder in checkpoints.glob("*") if folder.name.isdigit() and is_complete(folder)
    ]
    return sorted(steps, reverse=True)


def starter_checkpoint(name: str) -> Path:
    """Where the starter checkpoint called `name` ships."""
    return asset("starters") / STARTERS[name]


def seal(folder: Path, checkpoint: Checkpoint) -> Checkpoint:
    """Flush all files to disk, then write the manifest: from now on the folder is a checkpoint."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    marks = {str(path.relative_to(folder)): _flush_and_mark(path) for path in files}
    sealed = checkpoint.model_copy(update={"files": marks})
    write_atomically(folder / MANIFEST, json.dumps(sealed.model_dump(mode="json"), indent=1, ensure_ascii=False))
    return sealed


def _find_folder(name: str) -> Path | None:
    if name in STARTERS:
        folder = starter_checkpoint(name)
        return folder if is_complete(folder) else None
    match = _OF_JOB.fullmatch(name)
    if match is not None:
        steps = complete_steps(find_home().jobs / match[1] / "checkpoints")
        matches = [folder for step, folder in steps if match[2] is None or step == int(match[2])]
        if matches:
            return matches[0]
    folder = Path(name).expanduser()
    return folder if (folder / MANIFEST).is_file() else None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush_and_mark(path: Path) -> FileMark:
    flush_to_disk(path)
    return FileMark(size=path.stat().st_size, sha256=_sha256(path))
