"""Checkpoints: trained orchestrators as folders, found by name and read back.

A folder is a checkpoint once its `podium.json` is there: the manifest is written last and names every other file with
its size and hash. A folder without a manifest, or that does not match it, was interrupted and is not used.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from assets import asset
from orchestrator.binding.learnt_worker import LearntWorker, describe_starter
from orchestrator.errors import MisplacedModel, UnknownOrchestrator
from orchestrator.orchestrator_name import split_options
from orchestrator.out_of_depth.learnt_queries import FILE as LEARNT_QUERIES
from orchestrator.prompt_styles import PROMPTS, PromptStyle
from orchestrator.reader.cards import ListingFormat, make_listing_format
from pool_registry.actions import JsonValue
from pool_registry.atomic_write import flush_to_disk, write_atomically
from pool_registry.language_models.adapter_folder import ADAPTER_CONFIG
from pool_registry.language_models.model_guesses import CONFIG as MODEL_CONFIG
from pool_registry.language_models.model_guesses import explain_served
from pool_registry.storage.data_folder import find_home
from pool_registry.strict_model import StrictModel
from pool_registry.validation_words import describe_problems

log = logging.getLogger(__name__)
MANIFEST = "podium.json"


@dataclass(frozen=True, slots=True)
class Starter:
    """A checkpoint that ships: its folder, what people read for it, and where it is the one to ask. The others show
    what training does. `made_for`: the pools that it is suggested for, those with agents or those whose workers return
    records with fields; "" for any."""

    folder: str
    label: str
    plans_any_pool: bool = False
    made_for: Literal["", "agents", "records"] = ""
    is_last_resort: bool = False  # where nothing else can plan


# Names that are always there. `base` is the small model before it has seen a plan.
STARTERS = {
    "base": Starter("tiny-base", "Tiny, before training"),
    "starter-sft": Starter("tiny-sft", "Tiny after SFT"),
    "starter-grpo": Starter("tiny-grpo", "Tiny after SFT and GRPO", is_last_resort=True),
    "smollm2-sft": Starter("smollm2-sft", "SmolLM2 after SFT"),
    "smollm2-grpo": Starter("smollm2-grpo", "SmolLM2 after SFT and GRPO"),
    "smollm2-reader": Starter("smollm2-reader", "SmolLM2 reader", plans_any_pool=True),
    "smollm2-agents": Starter("smollm2-agents", "SmolLM2 reader for agents", plans_any_pool=True, made_for="agents"),
    "smollm2-records": Starter(
        "smollm2-records", "SmolLM2 reader for records", plans_any_pool=True, made_for="records"
    ),
}
# The files of a checkpoint that are copied and published: weights as safetensors, and texts and numbers beside them.
# Other formats of weights can hold code.
WEIGHTS = re.compile(r"(adapter_)?model(-\d{5}-of-\d{5})?\.safetensors")
TEXTS = frozenset(
    {"config.json", "generation_config.json", "adapter_config.json", "model.safetensors.index.json", "tokenizer.json",
     "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
     "tokenizer.model", "chat_template.jinja", LEARNT_QUERIES}
)  # fmt: skip
JOB_NAME = "name.txt"  # in a job's folder: the name that a person gave it
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
        """The learnt workers, for a binding; () where neither this manifest nor the starter pool knows them."""
        return self.specs or describe_starter(self.hash)


class Checkpoint(StrictModel):
    """The manifest: base model, weights, dialect, pool version, recipe and metrics, all that using it again needs.

    `kind` says whether the folder holds a whole model or an adapter for `base`. `prompt` is the style in which
    queries were put to the model in training; it must be used with the same one, of the same `prompt_version`.
    `hints`: of a reader, how many likely workers it was shown after a query. `languages`: those of the queries that it
    learnt, by their English names; empty where nobody has said it.
    """

    podium_checkpoint: Literal[1] = 1
    name: str
    kind: Literal["full", "adapter"]
    base: str
    stage: str = Field(pattern=r"^[a-z][a-z0-9_]{0,23}$")  # base, or the method that trained it
    phase: str = ""  # of the stage, after its main run
    step: int = 0
    dialect: str = "plan"
    prompt: PromptStyle = "full"
    prompt_version: int = Field(default=1, ge=1)
    hints: int = Field(default=0, ge=0)
    languages: tuple[str, ...] = ()
    turn_tokens: int = Field(default=512, ge=1)
    max_rounds: int | None = Field(default=None, ge=1)
    pool: TrainedPool | None = None
    created_at: str = ""
    recipe: dict[str, JsonValue] = {}
    metrics: dict[str, float] = {}
    files: dict[str, FileMark] = {}

    @property
    def knows_one_pool(self) -> bool:
        """Whether it was trained on the bare query and knows the workers of its training pool only, by heart."""
        return PROMPTS[self.prompt].knows_one_pool

    @property
    def is_reader(self) -> bool:
        """Whether it reads the pool at hand (orchestrator/policies/reader.py)."""
        return PROMPTS[self.prompt].binds_needs

    @property
    def listing(self) -> ListingFormat:
        """How a reader is shown a pool."""
        return make_listing_format(self.prompt, self.hints)


def find_checkpoint(name: str) -> tuple[Path, Checkpoint]:
    """The folder and manifest of a checkpoint: a starter's name, `JOB`, `JOB@STEP` or a folder. Options are ignored.

    Raises UnknownOrchestrator saying which there are.
    """
    folder = _find_folder(split_options(name)[0])
    if folder is None:
        if guess := _guess_meaning(split_options(name)[0]):
            raise MisplacedModel(guess)
        raise UnknownOrchestrator(f"there is no checkpoint {name!r}; there are: {', '.join(checkpoint_names())}")
    return folder, read_checkpoint(folder)


def open_checkpoint(name: str) -> tuple[Path, Checkpoint]:
    """The folder and manifest of a checkpoint whose weights are about to be used, exported or published.

    Raises UnknownOrchestrator when there is none, when its files are not those that were saved, or when it learnt
    with a prompt of another version.
    """
    folder, _ = find_checkpoint(name)
    checkpoint = verify_checkpoint(folder)
    _check_prompt_version(checkpoint)
    return folder, checkpoint


def _check_prompt_version(checkpoint: Checkpoint) -> None:
    current = PROMPTS[checkpoint.prompt].version
    if checkpoint.prompt_version != current:
        raise UnknownOrchestrator(
            f"the checkpoint {checkpoint.name} learnt with version {checkpoint.prompt_version} of the prompt "
            f"{checkpoint.prompt!r}, and this Podium writes version {current}: train it again with this one "
            f"(its recipe is in {MANIFEST}), or use it with the version of Podium that trained it"
        )


def verify_checkpoint(folder: Path) -> Checkpoint:
    """The manifest of a folder whose files have the hashes in it; those that have not changed since are not read again.

    A checkpoint of an earlier version that lists no files is taken as it is, with a warning. Raises
    UnknownOrchestrator.
    """
    checkpoint = read_checkpoint(folder)
    if checkpoint.files:
        _verify_files(folder, _describe_state(folder, [MANIFEST, *checkpoint.files]))
    else:
        _warn_of_missing_hashes(folder)
    strangers = sorted(
        path.name for path in folder.iterdir() if _is_read(path.name) and path.name not in checkpoint.files
    )
    if checkpoint.files and strangers:
        sentence = f"{strangers[0]} was not saved with it; remove that file or copy the checkpoint again"
        raise UnknownOrchestrator(f"the checkpoint {folder} was changed: {sentence}")
    return checkpoint


def read_checkpoint(folder: Path, verify: bool = False) -> Checkpoint:
    """The manifest of a folder; with `verify` every file is compared with it.

    Raises UnknownOrchestrator when there is none, or when a file is missing or damaged.
    """
    try:
        checkpoint = Checkpoint.model_validate_json((folder / MANIFEST).read_bytes())
    except (OSError, ValidationError) as error:
        reason = describe_problems(error) if isinstance(error, ValidationError) else str(error).splitlines()[0]
        raise UnknownOrchestrator(f"{folder} holds no complete checkpoint ({MANIFEST}: {reason})") from error
    for file, mark in checkpoint.files.items():
        path = folder / file
        if not path.is_file() or path.stat().st_size != mark.size or (verify and _sha256(path) != mark.sha256):
            sentence = f"{file} is not the file that was saved; copy it again, or take another checkpoint of its job"
            raise UnknownOrchestrator(f"the checkpoint {folder} is damaged: {sentence}")
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


def read_job_name(job: str) -> str:
    """The name that a person gave a job; "" where it goes by its id."""
    if _OF_JOB.fullmatch(job) is None:
        return ""
    try:
        return (find_home().jobs / job / JOB_NAME).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def checkpoint_names() -> list[str]:
    """Every checkpoint of this machine: the starters, then those of jobs, newest job first."""
    starters = [name for name in STARTERS if is_complete(starter_checkpoint(name))]
    jobs = sorted(find_home().jobs.glob("*/checkpoints"), key=lambda path: path.stat().st_mtime, reverse=True)
    return starters + [f"{folder.parent.name}@{step}" for folder in jobs for step, _ in complete_steps(folder)]


def plans_any_pool(name: str) -> bool:
    """Whether a name is that of a starter which is the one to ask on any pool."""
    return name in STARTERS and STARTERS[name].plans_any_pool


def find_last_resort() -> str:
    """The starter for a pool on which nothing else can plan."""
    return next(name for name, starter in STARTERS.items() if starter.is_last_resort)


def complete_steps(checkpoints: Path) -> list[tuple[int, Path]]:
    """The complete checkpoints in a job's folder by step, newest first."""
    steps = [
        (int(folder.name), folder) for folder in checkpoints.glob("*") if folder.name.isdigit() and is_complete(folder)
    ]
    return sorted(steps, reverse=True)


def starter_checkpoint(name: str) -> Path:
    """Return the folder in which the starter checkpoint `name` ships."""
    return asset("starters") / STARTERS[name].folder


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
    with suppress(OSError, RuntimeError, ValueError):  # no path at all: too long, with NUL, the home of nobody
        folder = Path(name).expanduser()
        if (folder / MANIFEST).is_file():
            return folder
    return None


def _guess_meaning(name: str) -> str:
    """What a name that is no checkpoint's seems to be, and what to do; "" where nothing can be guessed."""
    with suppress(OSError, RuntimeError, ValueError):  # no path at all
        folder = Path(name).expanduser()
        if (folder / MODEL_CONFIG).is_file() or (folder / ADAPTER_CONFIG).is_file():
            command = f"podium make-orchestrator {shlex.quote(name)}"
            return f"{name} is a trained folder without {MANIFEST}: make it an orchestrator with `{command}`"
        if served := explain_served(name):
            return f"{served}, then take model:WORKER as the orchestrator"
    return ""


@lru_cache(maxsize=256)
def _verify_files(folder: Path, _state: tuple[tuple[str, int, int, int], ...]) -> None:
    """Compare the files of a folder with its manifest, once for each state of them. Raises UnknownOrchestrator."""
    read_checkpoint(folder, verify=True)


def _describe_state(folder: Path, names: Iterable[str]) -> tuple[tuple[str, int, int, int], ...]:
    """What differs when a file was written again or replaced."""
    states = [(name, (folder / name).stat()) for name in names]
    return tuple((name, state.st_ino, state.st_size, state.st_ctime_ns) for name, state in states)


@lru_cache(maxsize=256)
def _warn_of_missing_hashes(folder: Path) -> None:
    log.warning("%s was saved without hashes: whether its files were changed cannot be seen", folder)


def _is_read(name: str) -> bool:
    """Whether a loader would read a file of this name."""
    return name in TEXTS or WEIGHTS.fullmatch(name) is not None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush_and_mark(path: Path) -> FileMark:
    flush_to_disk(path)
    return FileMark(size=path.stat().st_size, sha256=_sha256(path))
