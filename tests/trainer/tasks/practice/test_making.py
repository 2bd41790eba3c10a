"""The record of making tasks holds the last progress, whoever reads it and whenever the next one comes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from orchestrator.traces.store import Store
from trainer.tasks.practice.make_tasks import PracticeOptions
from trainer.tasks.practice.making import RECORD_S, read_making, record_making
from trainer.tasks.practice.progress import Watch


@pytest.fixture(autouse=True)
def _own_home(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_HOME", str(store.home.root))


def test_a_report_just_after_another_is_written_a_little_later_and_nothing_after_the_end(tmp_path: Path):
    file, watch = tmp_path / "shop.making", Watch()
    with record_making(file, PracticeOptions(), watch) as outcome:
        watch.update(count=20)
        watch.update(answered=7)
        deadline = time.monotonic() + 20 * RECORD_S
        while (making := read_making(file)) is None or making.progress.answered != 7:
            assert time.monotonic() < deadline, "the last report was never written"
            time.sleep(0.02)
        watch.update(answered=8)
        watch.update(answered=9)
        outcome.append("20 tasks")
    time.sleep(2 * RECORD_S)
    ended = read_making(file)
    assert ended is not None and (ended.state, ended.progress.answered, ended.outcome) == ("done", 9, "20 tasks")
