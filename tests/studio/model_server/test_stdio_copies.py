"""An MCP server on stdin and stdout, which agents keep for weeks, copies the database and starts on no damaged one."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from pool_registry.storage.backups import back_up, list_backups
from pool_registry.storage.integrity import find_damage
from studio.prepare import open_whole_store, prepare_store
from tests.studio.support.damage import damage_middle

pytestmark = pytest.mark.medium

START = (
    "import studio.housekeeping.daily as daily; daily.FIRST_COPY_S = 0.0\n"
    "from studio.__main__ import main; main()"
)  # fmt: skip
DEADLINE_S = 240.0


def serve(home: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", START, "serve", "--mcp", "--home", str(home)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def run_podium(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "studio", *words], capture_output=True, text=True, check=False)


def test_a_server_on_stdio_makes_the_daily_copy_and_writes_nothing_else(tmp_path):
    store = prepare_store(str(tmp_path))
    store.close()
    server, ends = serve(tmp_path), time.monotonic() + DEADLINE_S
    while not list((tmp_path / "backups").glob("daily-*.db")) and time.monotonic() < ends and server.poll() is None:
        time.sleep(0.1)
    out, errors = server.communicate(timeout=DEADLINE_S)
    assert (server.returncode, out) == (0, ""), errors
    (copy,) = list_backups(store.home)
    assert copy.name.startswith("daily-") and copy.schema and copy.pools


def test_it_names_the_copy_that_opens_and_each_copy_can_be_put_back(tmp_path):
    store = prepare_store(str(tmp_path))
    whole = [back_up(store.engine, store.home, "x") for _ in range(3)]
    store.close()
    store.engine.dispose()
    for copy in whole:
        assert copy is not None
        damage_middle(tmp_path / "podium.db")
        refused = serve(tmp_path)
        _, errors = refused.communicate(timeout=DEADLINE_S)
        assert refused.returncode != 0 and "is damaged" in errors and f"podium restore {whole[-1].name}" in errors
        assert "Traceback" not in errors
        done = run_podium("restore", copy.name, "--home", str(tmp_path))
        assert done.returncode == 0 and f"Restored {copy.name}." in done.stdout
        assert find_damage(store.home) == ""
        again = open_whole_store(str(tmp_path))
        assert "starter" in again.pools.names()
        again.close()
        again.engine.dispose()
    listed = run_podium("restore", "--home", str(tmp_path)).stdout.splitlines()
    assert sum(line.startswith("replaced-") and line.endswith("damaged") for line in listed) == 3
