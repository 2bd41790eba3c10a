"""The commands `lessons make` and `lessons show`: lessons in bulk, as tokens in a folder."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pool_registry.errors import writing_to
from trainer.cli.options import HomeOption, JsonOption, open_data_folder
from trainer.errors import TrainingFailed
from trainer.methods.base import Method
from trainer.methods.table import METHODS
from trainer.recipe import Recipe, load_recipe

if TYPE_CHECKING:
    from trainer.demonstrations.token_lessons import LessonsManifest

lessons_app = typer.Typer(help="Lessons in bulk, straight from reference plans.", no_args_is_help=True)


@lessons_app.command("make")
def make(
    recipe: Annotated[str, typer.Argument(help="A reader's recipe, or a preset: its tasks, pools and demonstrations.")],
    out: Annotated[Path, typer.Option(help="The folder; one that an earlier call began is gone on with.")],
    count: Annotated[int, typer.Option(help="Tasks that lessons are made of.", min=1, max=10_000_000)] = 10_000,
    processes: Annotated[
        int | None, typer.Option(help="That make shards side by side. Default: one a core.", min=1, max=1024)
    ] = None,
    home: HomeOption = None,
) -> None:
    """Make lessons of a recipe's tasks, without running anything."""
    from trainer.demonstrations.token_lessons import LessonsRequest
    from trainer.run_recipe import load_distractor_pools, load_pool
    from trainer.tasks.practice.stored import make_missing_tasks

    chosen = load_recipe(recipe)
    method = find_method(chosen)
    began = time.monotonic()
    with open_data_folder(home) as store, writing_to(out):
        make_missing_tasks(chosen.list_sources(), store)
        distractors = tuple(load_distractor_pools(chosen, store, []))
        pool = load_pool(store, chosen.pool)
        request = LessonsRequest(chosen, pool, distractors, count, out, processes or os.cpu_count() or 1)
        manifest = method.make_lessons(request, tell_progress)
    typer.echo(f"{describe(out, manifest)}; {time.monotonic() - began:.0f} s")
    typer.echo(f"Learn from them with {method.lessons_key}: {out.resolve()}")


@lessons_app.command("show")
def show(folder: Annotated[Path, typer.Argument(help="A folder of lessons.")], as_json: JsonOption = False) -> None:
    """Say how many lessons a folder holds, and for which model and prompt."""
    from trainer.demonstrations.token_lessons import read_manifest

    manifest = read_manifest(folder)
    typer.echo(json.dumps(manifest.model_dump(), indent=1) if as_json else describe(folder, manifest))


def find_method(recipe: Recipe) -> Method[Any]:
    """The method of a recipe that learns from lessons. Raises TrainingFailed."""
    method = next((stage.method for stage in recipe.training_stages if stage.method.lessons_key), None)
    if method is None:
        labels = ", ".join(method.label for method in METHODS.values() if method.lessons_key)
        raise TrainingFailed("lessons", f"no stage of this recipe learns from lessons; add one of: {labels}")
    return method


def tell_progress(manifest: LessonsManifest) -> None:
    """Say on stderr how far the lessons of a folder are."""
    typer.echo(f"{len(manifest.shards)} shards, {manifest.lessons:,} lessons", err=True)


def describe(folder: Path, manifest: LessonsManifest) -> str:
    """A folder of lessons in a line."""
    size = sum((folder / name).stat().st_size for name in manifest.shards if (folder / name).is_file())
    mean = f", {size / manifest.lessons:.0f} bytes each" if manifest.lessons else ""
    return (
        f"{manifest.lessons:,} lessons of {manifest.tasks:,} tasks for {manifest.base}, prompts of the style "
        f"{manifest.prompt}, at most {manifest.max_length:,} tokens{mean}"
    )
