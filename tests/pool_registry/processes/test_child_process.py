"""Programs that Podium starts: they end with it, whatever they try, and their last words are kept."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pool_registry import secrets
from pool_registry.errors import WorkerFault
from pool_registry.processes.child_process import start
from tests.pool_registry.support.processes import alive, gone

pytestmark = pytest.mark.medium

PYTHON = (sys.executable, "-I", "-S", "-c")
# Leaves group, session and parent behind, then tells its pid and minds neither a closed input nor SIGTERM.
DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(os.getpid(), flush=True)
        time.sleep(600)
    os._exit(0)
os.wait()
"""


def run(coroutine):
    return asyncio.run(coroutine)


def test_a_program_gets_its_arguments_as_they_are():
    async def scene():
        child = await start([*PYTHON, "import sys; print(sys.argv[1:])", "a b", "$HOME;", "*"], os.environ)
        line = await child.stdout.readline()
        await child.end()
        return line, child.alive

    assert run(scene()) == (b"['a b', '$HOME;', '*']\n", False)


@pytest.mark.parametrize("how", ["kill", "end"])
def test_a_daemon_that_a_program_leaves_ends_with_it(how):
    async def scene():
        child = await start([*PYTHON, DAEMON + "time.sleep(600)"], os.environ)
        daemon = int(await child.stdout.readline())
        there = alive(daemon)
        await getattr(child, how)()
        return there, await gone(daemon)

    assert run(scene()) == (True, True)


def test_a_daemon_ends_also_when_its_program_has_ended_by_itself():
    async def scene():
        child = await start([*PYTHON, DAEMON], os.environ)
        daemon = int(await child.stdout.readline())
        ended = await gone(daemon)
        await child.end()
        return ended

    assert run(scene())


def test_nothing_is_left_when_the_studio_is_killed(tmp_path: Path):
    code = f"""
import asyncio, os, sys
from pool_registry.processes.child_process import start
async def main():
    child = await start({[*PYTHON, DAEMON + "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), flush=True); time.sleep(600)"]!r}, os.environ)
    print(int(await child.stdout.readline()), int(await child.stdout.readline()), flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""  # noqa: E501
    studio = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    assert studio.stdout is not None
    pids = [int(word) for word in studio.stdout.readline().split()]
    assert len(pids) == 2 and all(map(alive, pids))
    studio.kill()
    studio.wait()
    studio.stdout.close()
    assert all(run(gone(pid)) for pid in pids)


def test_the_end_is_told_with_the_last_words_and_without_secrets(monkeypatch):
    monkeypatch.setenv("CHILD_SECRET", "hush-4711-hush")
    secrets.resolve("env:CHILD_SECRET")

    async def scene(code: str) -> str:
        child = await start([*PYTHON, code], os.environ)
        said = await child.ending()
        await child.end()
        return said

    said = run(
        scene("import os, sys; print('x' * 99999, '\\nno', os.environ['CHILD_SECRET'], file=sys.stderr); sys.exit(3)")
    )
    assert said.startswith("ended (exit status 3)") and said.endswith("no [secret]") and len(said) < 1000
    assert run(scene(f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})")) == "was ended by SIGKILL"


def test_a_program_that_is_not_there_is_told(tmp_path: Path):
    async def scene():
        child = await start(["no-such-program-here"], os.environ)
        said = await child.ending()
        await child.end()
        return said

    assert run(scene()) == (
        "ended (exit status 127) and said: no-such-program-here cannot be started: No such file or directory"
    )
    with pytest.raises(WorkerFault, match="cannot be started"):
        run(start(["cat"], os.environ, cwd=str(tmp_path / "nowhere")))
