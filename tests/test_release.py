"""A release is made from a fresh copy of the sources, and what it holds is installed elsewhere and used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a program without what this process has in its environment of Python, Podium and make. Returns what it
    printed."""
    own = ("PYTHON", "PODIUM_HOME", "MAKE")  # a `make` that `make` starts adds lines of its own
    env = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    done = subprocess.run(command, cwd=cwd, env={**env, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    """A fresh copy of the files that git tracks."""
    folder = tmp_path_factory.mktemp("sources")
    files = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    for name in filter(None, files):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def printed(sources) -> str:
    return run("make", "dist", f"VENV={sys.prefix}", cwd=sources)


def test_a_release_holds_wheel_source_bill_and_licences_with_their_hashes(sources, printed):
    dist = sources / "dist"
    names = {path.name for path in dist.iterdir()}
    assert {"sbom.json", "licences.md", "vulnerabilities.txt", "SHA256SUMS"} <= names
    assert len([name for name in names if name.endswith((".whl", ".tar.gz"))]) == 2
    checked = run("sha256sum", "--check", "SHA256SUMS", cwd=dist)
    assert checked.count(": OK") == len(names) - 1
    assert len(json.loads((dist / "sbom.json").read_text())["components"]) > 100
    assert printed.rstrip().endswith((dist / "vulnerabilities.txt").read_text().rstrip()), "said last"


def test_its_wheel_is_installed_in_an_empty_environment_and_used(sources, printed, tmp_path):
    """The packages that it requires are lent by the environment of the tests: installing them takes minutes."""
    place = tmp_path / "empty"
    venv.create(place, symlinks=True)
    python, podium = place / "bin" / "python", place / "bin" / "podium"
    pip = (sys.executable, "-m", "pip")
    run(*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, sources / "lessons", cwd=tmp_path)
    wheels = [*(sources / "dist").glob("*.whl"), *tmp_path.glob("*.whl")]
    assert len(wheels) == 2
    run(*pip, "--python", python, "install", "-q", "--no-deps", *wheels, cwd=tmp_path)
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])", cwd=tmp_path).strip()
    # A folder in a .pth file is searched, but its own .pth files are not read: the sources under test stay out.
    Path(packages, "lent.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    where = run(python, "-c", "import studio, trainer, podium_lessons as l; print(studio.__file__, l.__file__)",
                cwd=tmp_path)  # fmt: skip
    assert where.count(str(place)) == 2

    home = {"PODIUM_HOME": str(tmp_path / "home")}
    assert "Ready" in run(podium, "prepare", cwd=tmp_path, **home)
    assert "starter" in run(podium, "pool", "list", cwd=tmp_path, **home)
    answer = run(podium, "run", "What is 212 * 285?", cwd=tmp_path, **home)
    assert "60420" in answer.replace(",", "")
