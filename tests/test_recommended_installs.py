"""Whatever a message, a page or the documentation tells a person to install can be installed, all of it together."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine import needs

ROOT = Path(__file__).resolve().parents[1]
PLACES = (
    "assets", "bench", "docs", "examples", "orchestrator", "pool_registry", "scripts", "studio", "trainer",
    "CONTRIBUTING.md", "Makefile", "README.md", "SECURITY.md",
)  # fmt: skip
SUFFIXES = {".py", ".md", ".js", ".html", ".yaml", ".json", ".toml", ".sh", ""}
OURS = "podium-studio"
FOLDERS = {OURS: ROOT, "podium-lessons": ROOT / "lessons"}  # what this repository holds
# Options, then requirements in quotes, or a single one without. What is installed by the pip of another environment
# (OTHER/bin/pip install) need not fit what is here.
COMMAND = re.compile(
    r"""(?<!/)pip install((?:\s+--?[\w-]+)*)"""
    r"""((?:\s+'[^']+'|\s+"[^"]+")+|\s+(?:\./lessons|[\w.~=<>!*-]+)(?:\[[\w,]+\])?)"""
)
EXTRAS = re.compile(rf"""(?:{OURS}|['"]\.)\[([a-z,]+)\]""")


def read_product() -> Iterator[str]:
    for place in PLACES:
        path = ROOT / place
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix in SUFFIXES and "__pycache__" not in file.parts:
                yield file.read_text(encoding="utf-8", errors="ignore").replace("$(EXTRAS)", "dev,gpu")


def find_advice(text: str) -> Iterator[tuple[str, bool]]:
    """Every (requirement, whether without its dependencies) that a text recommends; files of other projects are not."""
    for options, words in COMMAND.findall(text):
        if "-r" in options.split():
            continue
        for word in re.findall(r"""'[^']+'|"[^"]+"|\S+""", words):
            name = word.strip("'\"").rstrip(".") or "."
            name = "podium-lessons" if name == "./lessons" else re.sub(rf"^(\.|{OURS})(?=\[|$)", OURS, name)
            yield name, "--no-deps" in options
    for extras in EXTRAS.findall(text):
        yield f"{OURS}[{extras}]", False


def all_advice() -> set[tuple[str, bool]]:
    return {advice for text in read_product() for advice in find_advice(text)}


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("run: pip install -e '.[gpu]', or not", {("podium-studio[gpu]", False)}),
        ("(pip install reasoning-gym).", {("reasoning-gym", False)}),
        ("pip install datasets (or 'podium-studio[tasks]')", {("datasets", False), ("podium-studio[tasks]", False)}),
        ('pip install --no-deps "a==0.1.2" "b-c==1"', {("a==0.1.2", True), ("b-c==1", True)}),
        ("run `pip install .` there", {("podium-studio", False)}),
        ("pip install -r llama.cpp/requirements.txt && x", set()),
        ("pip install foo.", {("foo", False)}),
        ("pip install ./lessons, in a checkout of Podium", {("podium-lessons", False)}),
    ],
)
def test_advice_is_found_in_sentences(text, advice):
    assert set(find_advice(text)) == advice


def test_every_extra_that_is_recommended_exists():
    named = [extras for requirement, _ in all_advice() for extras in EXTRAS.findall(requirement)]
    extras = {extra for names in named for extra in names.split(",")}
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"gpu", "dev", "postgres", "tasks"} <= extras <= set(known)


@pytest.mark.slow
@needs(sys.platform.startswith("linux"), "builds of vLLM")
def test_all_that_is_recommended_resolves_together(tmp_path):
    """In a fresh environment; what resolves together also resolves alone."""
    advice = sorted(all_advice())
    run_pip("--target", str(tmp_path), "uv")
    for options, alone in (([], False), (["--no-deps"], True)):
        requirements = [write_place(requirement) for requirement, by_itself in advice if by_itself is alone]
        # pip downloads gigabytes to read what they need, so it is asked only where uv, which reads that alone, has
        # found nothing: an index may be known to pip only.
        if not is_resolved_by_uv(tmp_path, [*options, *requirements]):
            run_pip("--dry-run", "--ignore-installed", *options, *requirements)


def write_place(requirement: str) -> str:
    """A requirement as pip finds it: ours are folders here, others are names."""
    name, bracket, extras = requirement.partition("[")
    return f"{FOLDERS[name]}{bracket}{extras}" if name in FOLDERS else requirement


def is_resolved_by_uv(folder: Path, words: list[str]) -> bool:
    """Whether uv, which was installed into `folder`, would install this into an empty environment."""
    command = [
        str(folder / "bin" / "uv"),
        "pip",
        "install",
        "--python",
        sys.executable,
        "--target",
        str(folder / "empty"),
    ]
    done = subprocess.run([*command, "--dry-run", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode == 0


def run_pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
