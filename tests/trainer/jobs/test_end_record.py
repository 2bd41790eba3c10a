"""How a job ended, also where its row cannot be written, and why a process that left no word is gone."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3

import pytest
from sqlalchemy.exc import OperationalError

from orchestrator.engine.process_identity import this_process
from trainer import job_process
from trainer.job_process import explain_job_failure, run_job
from trainer.jobs import end_record, queue
from trainer.jobs.end_record import SIZE, explain_end, read_end, reserve_end, write_end
from trainer.recipe import parse_recipe

QUICK = parse_recipe("{name: quick, evaluate: {orchestrators: [oracle], source: forge, levels: [1], count: 1}}")


def full_database() -> OperationalError:
    cause = sqlite3.OperationalError("database or disk is full")
    cause.sqlite_errorcode = sqlite3.SQLITE_FULL
    return OperationalError("UPDATE job", {}, cause)


def test_the_record_takes_its_room_at_once_and_is_overwritten_in_place(tmp_path):
    path = tmp_path / "end.json"
    reserve_end(path)
    place, size = path.stat().st_ino, path.stat().st_size
    write_end(path, "failed", "disk_full", "é" * 10_000)
    assert (path.stat().st_ino, path.stat().st_size, size) == (place, SIZE, SIZE)
    record = read_end(path, this_process())
    assert record is not None and (record.state, record.code) == ("failed", "disk_full")
    assert read_end(path, "another:1:boot:1:host") is None


def test_a_job_whose_row_cannot_be_written_is_shown_as_it_ended_and_can_be_resumed(jobs, store, monkeypatch, caplog):
    key = jobs.submit(QUICK, here=True).id

    def refuse(*_: object) -> None:
        raise full_database()

    def fail(*_: object) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "finish", refuse)
        patch.setattr("trainer.run_recipe.run_recipe", fail)
        assert run_job(key, store, jobs) is False
        row = jobs.get(key)
        assert (row.state, row.code) == ("failed", "disk_full")
        assert "the disk is full: free" in row.message and "PODIUM_HOME" in row.message
    monkeypatch.setattr(queue, "is_alive", lambda *_: False)  # its process has ended by now
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_mark_one_lost", refuse)
        assert [row.code for row in jobs.all()] == ["disk_full"], "a list needs no room on the disk"
    assert jobs.all()[0].state == "failed" and jobs.resume(key).state == "queued"


def test_a_heartbeat_on_a_full_disk_is_logged_once_and_ends_the_job(jobs, monkeypatch, caplog):
    key = jobs.submit(QUICK, here=True).id
    jobs.claim(key)
    reserve_end(jobs.folder(key).end)
    ends: list[int] = []

    def refuse(*_: object) -> None:
        raise full_database()

    monkeypatch.setattr(jobs, "beat", refuse)
    monkeypatch.setattr(job_process, "FULL_S", 0.05)
    monkeypatch.setattr(job_process, "BEAT_S", 0.01)
    monkeypatch.setattr(os, "_exit", ends.append)
    with job_process._Heartbeat(jobs, key, jobs.folder(key)) as _:
        while not ends:
            pass
    row = jobs.get(key)
    assert (row.state, row.code) == ("failed", "disk_full") and "then resume" in row.message
    lines = [record for record in caplog.records if "heartbeat" in record.message]
    assert len(lines) == 1 and lines[0].exc_info is None


@pytest.mark.parametrize("kills", [(None, None), (3, 3), (3, 4)])
def test_why_a_process_is_gone_is_said_as_far_as_the_kernel_tells(tmp_path, monkeypatch, kills):
    before, after = kills
    monkeypatch.setattr(end_record, "count_memory_kills", lambda: before)
    reserve_end(tmp_path / "end.json")
    monkeypatch.setattr(end_record, "count_memory_kills", lambda: after)
    sentence = explain_end(read_end(tmp_path / "end.json", this_process()), this_process())
    assert "Resume goes on from the last complete checkpoint" in sentence
    assert ("the machine ran out of memory while it ran" in sentence) == (kills == (3, 4))
    assert ("ended nothing for lack of memory" in sentence) == (kills == (3, 3))


def test_a_process_of_before_a_restart_of_the_machine_was_not_killed_by_anybody():
    pid, ticks, _, rest = this_process().split(":", 3)
    assert "the machine was started anew" in explain_end(None, f"{pid}:{ticks}:another-boot:{rest}")


def test_a_job_that_a_signal_ends_says_which(jobs, store, monkeypatch):
    key = jobs.submit(QUICK, here=True).id

    def end(*_: object) -> bool:
        signal.raise_signal(signal.SIGTERM)
        return False

    monkeypatch.setattr("trainer.run_recipe.run_recipe", end)
    assert run_job(key, store, jobs)
    row = jobs.get(key)
    assert row.state == "stopped" and "SIGTERM" in row.message and "a time limit" in row.message
    assert read_end(jobs.folder(key).end, row.owner).signal == signal.SIGTERM


def test_a_full_disk_is_known_by_every_library_that_meets_it(jobs):
    folder = jobs.folder(jobs.submit(QUICK, here=True).id)
    wrapped = RuntimeError('Error while serializing: IoError(Os { message: "No space left on device" })')
    for error in (full_database(), OSError(errno.EDQUOT, "quota"), wrapped, ExceptionGroup("g", [full_database()])):
        code, message = explain_job_failure(error, None, folder)
        assert code == "disk_full" and str(folder.path) in message, error
    assert explain_job_failure(OSError(errno.EIO, "bad disk"), None, folder)[0] == "unexpected"
