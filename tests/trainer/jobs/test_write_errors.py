"""A write that fails, each in turn: what is saved is the old state or the new one, and saving again works."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.checkpoints import Checkpoint, read_checkpoint
from pool_registry.atomic_write import write_atomically
from tests.trust.trials import count_trials
from trainer.jobs.job_folder import JobFolder

EVENTS = frozenset({"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.link"})


@dataclass(slots=True)
class Fault:
    """Refuses the write with this number below a folder; 0 refuses none and only counts."""

    folder: str
    number: int
    writes: int = 0
    active: bool = True

    def meet(self) -> None:
        self.writes += 1
        if self.writes == self.number:
            raise OSError(errno.ENOSPC, "No space left on device")


_FAULT: Fault | None = None


def _watch(event: str, details: tuple[object, ...]) -> None:
    if _FAULT is None or not details:
        return
    within = event in ("os.remove", "os.rmdir") and details[-1] != -1  # a name in a folder that is open
    if not within and not str(details[0]).startswith(_FAULT.folder):
        return
    opened = event == "open" and isinstance(details[2], int) and details[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if opened or event in EVENTS:
        _FAULT.meet()


sys.addaudithook(_watch)  # it cannot be taken away again: without a fault it does nothing


@contextmanager
def refuse_write(folder: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fault]:
    """Refuse the write `number` below `folder`: to open, move, make or remove a file, or to flush one to disk."""
    global _FAULT
    fault = Fault(str(folder), number)
    flush = os.fsync

    def flush_or_refuse(handle: int) -> None:
        fault.meet()
        flush(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", flush_or_refuse)
        _FAULT = fault
        try:
            yield fault
        finally:
            _FAULT = None


def fail_every_write(folder: Path, write: Callable[[], object], check: Callable[[], None], monkeypatch) -> None:
    """Do `write` again and again, with one more of its writes going well each time, until all do."""
    number = 0
    while True:
        number += 1
        with refuse_write(folder, number, monkeypatch) as fault:
            try:
                write()
            except OSError as error:
                assert error.errno == errno.ENOSPC
        if fault.writes < number:
            break
        count_trials()
        check()
    assert number > 3, "some writes were refused"
    check()


def save(job_folder: JobFolder, step: int) -> Path:
    drafted = job_folder.draft / f"checkpoint-{step}"
    drafted.mkdir(parents=True, exist_ok=True)
    (drafted / "weights").write_bytes(str(step).encode() * 100)
    about = Checkpoint.model_validate({"name": "c", "kind": "full", "base": "b", "stage": "sft", "step": step})
    return job_folder.save_checkpoint(drafted, about)


def test_a_failing_write_leaves_a_checkpoint_whole_or_away(tmp_path, monkeypatch):
    job_folder = JobFolder(tmp_path / "job").create()
    save(job_folder, 2)

    def check() -> None:
        newest = job_folder.find_newest_checkpoint()
        assert newest is not None and newest[0] in (2, 4)
        assert read_checkpoint(newest[1], verify=True).step == newest[0]

    fail_every_write(job_folder.path, lambda: save(job_folder, 4), check, monkeypatch)
    newest = job_folder.find_newest_checkpoint()
    assert newest is not None and newest[0] == 4


def test_a_failing_write_loses_no_checkpoint_when_old_ones_go(tmp_path, monkeypatch):
    job_folder = JobFolder(tmp_path / "job").create()
    for step in range(1, 7):
        save(job_folder, step)

    def check() -> None:
        assert job_folder.find_intact_checkpoint() is not None
        newest = job_folder.find_newest_checkpoint()
        assert newest is not None and newest[0] == 6

    fail_every_write(job_folder.path, lambda: job_folder.prune_checkpoints(2), check, monkeypatch)


def test_a_failing_write_leaves_a_file_old_or_new(tmp_path, monkeypatch):
    file = tmp_path / "recipe.yaml"
    file.write_text("old")

    def check() -> None:
        assert file.read_text() in ("old", "new")

    fail_every_write(tmp_path, lambda: write_atomically(file, "new"), check, monkeypatch)
    assert file.read_text() == "new" and [path.name for path in tmp_path.iterdir()] == ["recipe.yaml"]
