"""What a live Space shows of a run: its last change, too, whenever the run ends."""

from __future__ import annotations

import asyncio

import pytest


@pytest.fixture
def live(monkeypatch, tmp_path):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))  # the module brings a default for Spaces
    from studio.publish.space_app import live

    monkeypatch.setattr(live, "POLL_S", 0.01)
    return live


def count_changes(live, ends_while_busy: bool, changes: int) -> list[int]:
    """The counts that a page is shown of a run that records so many changes, while it draws the first one or after."""

    async def run() -> list[int]:
        recorder, drawn = live.MemorySink(None), asyncio.Event()

        async def record() -> None:
            recorder.count = 1
            await drawn.wait()
            recorder.count += changes

        task, counts = asyncio.create_task(record()), []
        async for _ in live.list_changes(task, recorder):
            counts.append(recorder.count)
            drawn.set()
            if ends_while_busy:
                await task
        return counts

    return asyncio.run(run())


@pytest.mark.parametrize("ends_while_busy", [True, False])
def test_the_end_of_a_run_is_shown_also_where_it_comes_while_the_page_is_drawn(live, ends_while_busy):
    assert count_changes(live, ends_while_busy, 3) == [1, 4]


def test_nothing_is_shown_twice(live):
    assert count_changes(live, True, 0) == [1]
