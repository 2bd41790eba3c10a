"""What the README shows works as shown."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest

from pool_registry.actions import Action, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.kinds import KINDS, Kind
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_of_a_worker_kind_is_short_and_works(monkeypatch):
    code, line = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(code.splitlines()) < 40
    module = types.ModuleType("readme_example")
    monkeypatch.setitem(sys.modules, "readme_example", module)
    exec(compile(code, "README.md", "exec"), module.__dict__)
    table_line = line.strip().rstrip(",").replace("pool_registry.workers.reverse", "readme_example")
    kind = eval(table_line, {"Kind": Kind})
    monkeypatch.setitem(KINDS, kind.name, kind)

    async def calls():
        spec = WorkerSpec(name="r", kind="reverse", description="d", config={"upper": True})
        async with live_pool(Pool(name="p", workers=(spec,))) as pool:
            return [await pool.call(Action("r", {"text": text})) for text in ("podium", " ")]

    good, blank = asyncio.run(calls())
    assert good.value == "MUIDOP" and blank.status is Status.PARSE_ERR


@pytest.mark.parametrize("command", re.findall(r"^    python -m (\S+ .*)$", README, re.MULTILINE))
def test_every_command_is_one_the_programs_know(command):
    words = shlex.split(command)
    module, *path = [word for word in words if not word.startswith("-")][: 2 if words[1] != "tasks" else 3]
    done = subprocess.run([sys.executable, "-m", module, *path, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    for option in (word for word in words if word.startswith("--")):
        assert option in done.stdout


@pytest.mark.parametrize("path", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_what_it_links_to_is_there(path):
    assert (ROOT / path).exists()


FILES = re.findall(r"`((?:pool_registry|orchestrator|trainer|studio|bench)/[\w/.]+)`", README)


@pytest.mark.parametrize("path", sorted(set(FILES) - {"pool_registry/workers/reverse.py"}))
def test_the_files_it_names_are_there(path):
    assert (ROOT / path).exists()
