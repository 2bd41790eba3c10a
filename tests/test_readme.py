"""What the README and the documentation show works as shown."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from functools import cache
from importlib import import_module
from itertools import takewhile
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytestmark = pytest.mark.medium

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def name_document(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "lessons").glob("**/*.md"))]
GROUPS = ("tasks", "lessons", "jobs", "export", "memory", "skills", "users", "tokens")  # commands that have commands
COMMANDS = sorted(
    {
        (name_document(path), command)
        for path in DOCUMENTS
        for command in re.findall(r"^    python -m (\S+(?: [^#\n]*)?)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if "|" not in command and not re.search(r"\[\w+\.\.\.\]", command)
    }
)
LINKS = sorted(
    {
        (name_document(path), link)
        for path in DOCUMENTS
        for link in re.findall(r"\]\((?!http)([^)#]+)\)", path.read_text(encoding="utf-8"))
    }
)
NAMED_FILES = sorted(
    {
        (name_document(path), name)
        for path in DOCUMENTS
        for name in re.findall(
            r"`((?:pool_registry|orchestrator|trainer|studio|bench|assets|scripts|examples|lessons)/[\w/.]+)`",
            path.read_text(encoding="utf-8"),
        )
        if "NAME" not in name  # stands for the reader's own
    }
)


def test_the_example_of_the_readme_runs_as_pasted(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "pasted.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "pasted.py")], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "answer: 54.0" in done.stdout


def test_the_tables_of_the_documentation_follow_the_code():
    done = subprocess.run(
        [sys.executable, "-m", "scripts.write_docs", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_readme_is_two_screens():
    assert len(README.splitlines()) < 150


@pytest.mark.parametrize(("document", "command"), COMMANDS)
def test_every_command_is_one_the_programs_know(document, command):
    words = shlex.split(command)
    module, *rest = takewhile(lambda word: not word.startswith("-"), words)
    path = rest[: 2 if rest and rest[0] in GROUPS else 1]
    shown = read_help(module, *path)
    for option in (word for word in words if word.startswith("--") and word != "--help"):
        assert option in shown


@cache
def read_help(module: str, *path: str) -> str:
    """What `python -m MODULE PATH --help` prints; our two programs are asked without a process of their own."""
    if module in ("studio", "trainer"):
        done = CliRunner().invoke(import_module(f"{module}.__main__").app, [*path, "--help"], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output
    process = subprocess.run([sys.executable, "-m", module, *path, "--help"], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize(("document", "link"), LINKS)
def test_what_a_document_links_to_is_there(document, link):
    assert ((ROOT / document).parent / link).exists()


@pytest.mark.parametrize(("document", "name"), NAMED_FILES)
def test_the_files_that_a_document_names_are_there(document, name):
    assert (ROOT / name).exists()
