"""The installed distributions: those behind imported names, pinned to the version that runs here, and the files of one
that no index has."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import distribution, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path


def pin_imports(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The pinned distributions behind imported names, and the names that no distribution provides."""
    foreign = [name for name in names if name not in sys.stdlib_module_names]
    unknown = [name for name in foreign if not _distributions().get(name)]
    return sorted({pin for name in foreign for pin in list_pins(name)}, key=str.lower), unknown


def list_pins(name: str) -> Iterator[str]:
    """The pinned distributions that provide an imported name."""
    for package in sorted(set(_distributions().get(name, []))):
        yield pin_version(package)


def pin_version(package: str) -> str:
    """Return `name==version` of what is installed, without a local label such as +cpu."""
    return f"{package}=={version(package).partition('+')[0]}"


def is_from_folder(package: str) -> bool:
    """Whether a distribution was installed from a folder of this machine: then no index has it."""
    origin = json.loads(distribution(package).read_text("direct_url.json") or "{}")
    return str(origin.get("url", "")).startswith("file:")


def list_package_files(package: str) -> Iterator[tuple[str, Path]]:
    """The modules of an installed distribution and its metadata, as (path in a folder of packages, file): laid into
    such a folder they are the distribution. Also where it was installed to be edited."""
    installed = distribution(package)
    for file in installed.files or ():
        if file.parent.name.endswith(".dist-info") and file.name not in ("RECORD", "direct_url.json"):
            yield file.as_posix(), Path(str(file.locate()))
    for name in sorted(name for name, packages in _distributions().items() if installed.name in packages):
        yield from _list_module_files(name)


def _list_module_files(name: str) -> Iterator[tuple[str, Path]]:
    spec = find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        if spec is not None and spec.origin:
            yield Path(spec.origin).name, Path(spec.origin)
        return
    for folder in map(Path, spec.submodule_search_locations):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(folder.parent).as_posix(), path


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()
