"""A training on a disk that is really full: it says so, keeps its checkpoints, and goes on once there is room."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from tests.trainer.jobs.test_durability import forked, learnt, trainer, write_recipe
from tests.trainer.support.waiting import until
from trainer.jobs.queue import JobRow, JobStore
from trainer.recipe import parse_recipe

MEGABYTES = 24
MOST_S = 60.0  # until a job ends that can keep nothing


def mount(folder: Path) -> bool:
    """Mount a small disk of its own; False where this account may not."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mount(folder):
        pytest.skip("this account may not mount a disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Write until nothing more goes in."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return ballast


def read_row(home: Path, key: str) -> JobRow:
    store = open_store(find_home(str(home)))
    try:
        return JobStore(store.engine, store.home).get(key)
    finally:
        store.close()


def show_job(home: Path, key: str) -> str:
    """What the Train page gets of a job."""
    from fastapi import FastAPI
    from fastapi.testclient import TestClient

    from studio.pages.train.routes import routes
    from studio.runtime import Runtime

    runtime, app = Runtime(open_store(find_home(str(home)))), FastAPI()
    app.include_router(routes(runtime))
    try:
        reply = TestClient(app).get(f"/api/jobs/{key}")
        assert reply.status_code == 200
        return reply.text
    finally:
        runtime.close()


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 3])
def test_a_training_whose_disk_fills_says_so_keeps_its_checkpoints_and_resumes(small_disk, tiny_base, after):
    home = small_disk / "home"
    store = open_store(find_home(str(home)))
    jobs = JobStore(store.engine, store.home)
    recipe = parse_recipe(write_recipe("crowded", 300, 1).replace("BASE", str(tiny_base))).with_only("sft")
    key = jobs.submit(recipe).id
    folder = jobs.folder(key)
    with forked(home, key) as processes:
        processes.start(key)
        until(lambda: jobs.get(key).state == "running" and len(learnt(folder)) >= after)
        ballast = fill(small_disk)
        filled_at = time.monotonic()
        processes.ended()
        assert time.monotonic() - filled_at < MOST_S
        store.close()  # what the studio has open keeps the log of the database there
        listing = trainer(home, "jobs", "list")
        out, error = listing.communicate(timeout=120)
        assert "Traceback" not in out + error
        assert "disk is full" in out + error
        assert "disk is full" in show_job(home, key)
        kept = sorted(path.name for path in folder.checkpoints.iterdir())
        ballast.unlink()
        row = read_row(home, key)
        assert (row.state, row.code) == ("failed", "disk_full"), (row, folder.log.read_text()[-3000:])
        assert "free" in row.message and "PODIUM_HOME" in row.message and "then resume" in row.message
        assert folder.log.read_text().count("Traceback") <= 2
        assert bool(kept) == (after > 2)
        store = open_store(find_home(str(home)))
        jobs = JobStore(store.engine, store.home)
        before = len(learnt(folder))
        jobs.resume(key)
        processes.start(key)
        until(lambda: len(learnt(folder)) > before)
        jobs.stop(key)
        processes.ended()
        assert jobs.get(key).state == "stopped"
        store.close()
