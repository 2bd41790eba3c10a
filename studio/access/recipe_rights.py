"""What an editor may not let a training job do: run a person's own code, read files by their path, reach servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from orchestrator.checkpoints import MANIFEST
from studio.access.roles import UserRole, current_rights
from trainer.cluster.preflight import list_clusters
from trainer.recipe import Recipe

FILE_SOURCE, HUB_SOURCE = "file:", "hub:"
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?(:[\w.-]+)?")
OWN_MODELS = ("starter:", "hub:")


def check_recipe(recipe: Recipe) -> None:
    """Raise RoleRefused when only an owner may check or start a job with this recipe."""
    if current_rights.get().is_owner:
        return
    for key, what in _list_reaches(recipe):
        current_rights.get().require(UserRole.OWNER, f"use a recipe that {what} ({key})")


def check_task_source(source: str) -> None:
    """Raise RoleRefused when a source of tasks is a file or folder of this machine."""
    for part in _list_files(source):
        current_rights.get().require(UserRole.OWNER, f"read tasks from {part}")


def _list_reaches(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """What a recipe reaches of this machine, as (key, what it does)."""
    if recipe.place.is_rented:
        yield "where", "rents a machine with this studio's login"
    for place in list_clusters(recipe):
        yield "where", f"runs episodes on {place}"
    for source in recipe.list_sources():
        yield from (("tasks.source", f"reads {part}") for part in _list_files(source))
    if not recipe.model.base.startswith(OWN_MODELS):
        yield "model.base", f"reads the folder {recipe.model.base}"
    if _is_path(recipe.model.start):
        yield "model.start", f"reads the folder {recipe.model.start}"
    for name in recipe.evaluate.orchestrators if recipe.evaluate else ():
        if _is_path(name):
            yield "evaluate.orchestrators", f"reads the folder {name}"
    for stage in recipe.training_stages:
        yield from stage.method.list_reaches(stage.settings)


def _list_files(source: str) -> list[str]:
    return [part for part in map(str.strip, source.split(",")) if part.startswith(FILE_SOURCE) or _is_folder(part)]


def _is_folder(source: str) -> bool:
    """Whether a data set is no name of the Hub's, or is one of a folder here: the loader prefers that."""
    address = source.removeprefix(HUB_SOURCE)
    is_named = _HUB_NAME.fullmatch(address) is not None and not Path(address.partition(":")[0]).exists()
    return address != source and not is_named


def _is_path(name: str) -> bool:
    """Whether the name of a checkpoint or an orchestrator is a place on this machine, a relative one too."""
    place = name.strip().partition("+")[0]
    if place.startswith(OWN_MODELS):
        return False
    return place.startswith(("/", "~", ".")) or "/" in place or (Path(place) / MANIFEST).is_file()
