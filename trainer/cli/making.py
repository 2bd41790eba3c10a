"""Makes tasks at a command line: progress on stderr, and Ctrl-C that keeps what is done."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from trainer.cli.command_line import INTERRUPTED
from trainer.cli.progress_line import ProgressLine
from trainer.errors import UnusableTasks

if TYPE_CHECKING:
    from orchestrator.traces.store import Store
    from trainer.tasks.practice.make_tasks import PracticeOptions, PracticeTasks
    from trainer.tasks.practice.progress import Watch
    from trainer.tasks.practice.task_book import Merge

STOPPING = "Stopping: no new call is made, and those in flight end first. Ctrl-C again ends at once."
STOPPED = "Stopped. What is kept so far is saved; the same command goes on, and asks nothing again that was answered."


@dataclass(frozen=True, slots=True)
class MadeHere:
    """What was made, and whether Ctrl-C stopped it."""

    tasks: PracticeTasks
    merge: Merge
    is_stopped: bool


def make_with_progress(store: Store, pool: str, options: PracticeOptions, file: Path) -> MadeHere:
    """Make tasks and save them. Raises what `make_and_save` raises, and ends the command where it is stopped before
    there is a task to keep."""
    from trainer.tasks.practice.progress import Watch
    from trainer.tasks.practice.stored import make_and_save

    line = ProgressLine()
    watch = Watch(lambda progress: line.show(progress.describe()))

    async def make() -> tuple[PracticeTasks, Merge]:
        with stop_at_interrupt(watch, line):
            return await make_and_save(store, pool, options, file, watch)

    try:
        tasks, merge = asyncio.run(make())
    except UnusableTasks as error:
        if not watch.is_stopped:
            raise
        line.close()
        typer.echo(f"podium: {error}\n{STOPPED}", err=True)
        raise typer.Exit(INTERRUPTED) from error
    finally:
        line.close()
    return MadeHere(tasks, merge, watch.is_stopped)


@contextmanager
def stop_at_interrupt(watch: Watch, line: ProgressLine) -> Iterator[None]:
    """While the body runs in the event loop, the first Ctrl-C stops what is watched; the second ends the program."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.remove_signal_handler(signal.SIGINT)  # first: whoever reads the line may press again at once
        watch.stop()
        line.say(STOPPING)

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
