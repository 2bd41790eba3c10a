"""The files of an installed package: laid into a folder of packages they are the package again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from pool_registry.extensions.installed_packages import is_from_folder, list_package_files


def lay_down(package: str, folder: Path) -> Path:
    for name, path in list_package_files(package):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)
    return folder


def test_a_package_of_an_index_is_told_from_one_of_a_folder():
    assert is_from_folder("podium-lessons") and not is_from_folder("pydantic")


@pytest.mark.medium
def test_a_package_that_is_edited_here_can_be_laid_down_elsewhere(tmp_path):
    folder = lay_down("podium-lessons", tmp_path)
    assert not any("__pycache__" in path.parts for path in folder.rglob("*"))
    code = (
        "from importlib.metadata import distribution; import podium_lessons.sources;"
        "print(podium_lessons.__file__, distribution('podium-lessons').locate_file(''),"
        " len(distribution('podium-lessons').entry_points), podium_lessons.sources.LEDGER.task(1, 'test', 0).query)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120)
    rows = len(distribution("podium-lessons").entry_points)
    assert done.stdout.count(str(folder)) >= 1 and f" {rows} Company 2117" in done.stdout, done.stderr


def test_a_package_of_one_module_is_that_module(tmp_path):
    folder = lay_down("typing_extensions", tmp_path)
    assert {path.name for path in folder.iterdir() if path.is_file()} == {"typing_extensions.py"}
