"""The record of making tasks, a file beside the tasks: whoever comes later, or after a restart, sees there how it goes.

Whoever makes tasks holds a lock, so that nobody else makes those of the same file. The record names the process: where
that has ended without a word, the making counts as interrupted, and can go on.
"""

from __future__ import annotations

import threading
import time
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from orchestrator.engine.process_identity import is_alive, this_process
from pool_registry.atomic_write import lock_file, write_atomically
from pool_registry.errors import UnwritablePath, writing_to
from pool_registry.storage.data_folder import find_home
from pool_registry.strict_model import FrozenModel
from trainer.errors import MENDABLE, UnusableTasks
from trainer.tasks.practice.make_tasks import PracticeOptions
from trainer.tasks.practice.progress import Progress, Watch

RECORD_S = 0.25  # seconds between two writes of the progress
BUSY = "tasks for this pool are being made already: wait until that has ended, or stop it"
INTERRUPTED = "It was interrupted: the program that made the tasks has ended. What was answered by then is saved"
FAILED = "It failed unexpectedly: the log of the program that made the tasks says why. What was answered is saved"

State = Literal["running", "stopped", "failed", "done", "interrupted"]


class Making(FrozenModel):
    """One making of tasks. Times in seconds since 1970. `outcome` says in words what came of it, "" while it runs;
    `options` are those with which it goes on, without recorded arguments. `first_cost`: US dollars that had been spent
    before it went on."""

    state: State
    process: str
    started: float
    updated: float
    options: PracticeOptions
    progress: Progress
    outcome: str = ""

    @property
    def can_go_on(self) -> bool:
        """Whether it ended before it was done, with money left under its cap."""
        cap, spent = self.options.panel.max_cost, self.progress.cost
        return self.state in ("stopped", "interrupted") and (cap is None or spent < cap)

    def plan_rest(self) -> tuple[PracticeOptions, Watch]:
        """What goes on with it: under the same cap, less what was spent. Raises UnusableTasks where nothing can."""
        if not self.can_go_on:
            raise UnusableTasks("there is nothing to go on with: make tasks anew, with a higher cap if there was one")
        cap, spent = self.options.panel.max_cost, self.progress.cost
        panel = self.options.panel if cap is None else replace(self.options.panel, max_cost=cap - spent)
        return replace(self.options, panel=panel), Watch(earlier_cost=spent)


def read_making(file: Path) -> Making | None:
    """The record in a file, or None. What it says is running and whose process has ended, was interrupted."""
    try:
        making = Making.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):  # none, or one of another version: it is no more than a report
        return None
    if making.state != "running" or is_alive(making.process, find_home().root):
        return making
    return making.model_copy(update={"state": "interrupted", "outcome": INTERRUPTED})


@contextmanager
def record_making(file: Path, options: PracticeOptions, watch: Watch) -> Iterator[list[str]]:
    """Keep the record while the body makes tasks; what the body puts into the list is the outcome.

    Raises UnusableTasks where somebody else makes them."""
    with _hold(file.with_suffix(".busy")):
        recorder = Recorder(file, options, watch)
        outcome: list[str] = []
        ending: tuple[State, str] = ("failed", FAILED)
        try:
            yield outcome
            ending = ("stopped" if watch.is_stopped else "done", "; ".join(outcome))
        except MENDABLE as error:
            ending = ("stopped" if watch.is_stopped else "failed", str(error))
            raise
        except (KeyboardInterrupt, CancelledError):
            ending = ("interrupted", INTERRUPTED)
            raise
        finally:
            recorder.end(*ending)


@contextmanager
def _hold(file: Path) -> Iterator[None]:
    with ExitStack() as stack:
        with writing_to(file):
            try:
                stack.enter_context(lock_file(file, wait=False))
            except BlockingIOError as error:
                raise UnusableTasks(BUSY) from error
        yield


class Recorder:
    """Writes the record as the watch hears of progress, and passes that on."""

    def __init__(self, file: Path, options: PracticeOptions, watch: Watch) -> None:
        self._file, self._watch, self._report = file, watch, watch.report
        self._next = 0.0
        self._lock = threading.Lock()
        self._later: threading.Timer | None = None
        panel = options.panel
        cap = None if panel.max_cost is None else panel.max_cost + watch.earlier_cost
        now = time.time()
        self._making = Making(
            state="running",
            process=this_process(),
            started=now,
            updated=now,
            options=replace(options, recorded={}, panel=replace(panel, max_cost=cap)),
            progress=replace(watch.progress, max_cost=cap),
        )
        watch.report = self.take
        watch.update(max_cost=cap)

    def take(self, progress: Progress) -> None:
        """Write the progress; a little later where one has just been written, for the next may be long in coming."""
        with self._lock:
            self._making = self._making.model_copy(update={"progress": progress, "updated": time.time()})
            wait = self._next - time.monotonic()
            if wait <= 0:
                self._next = time.monotonic() + RECORD_S
                self._write()
            elif self._later is None:
                self._later = threading.Timer(wait, self._write_later)
                self._later.daemon = True
                self._later.start()
        self._report(progress)

    def end(self, state: State, outcome: str) -> None:
        """Write how it ended."""
        self._watch.report = self._report
        update = {"state": state, "outcome": outcome, "updated": time.time()}
        with self._lock:
            if self._later is not None:
                self._later.cancel()
                self._later = None
            self._making = self._making.model_copy(update=update)
            self._write()

    def _write_later(self) -> None:
        with self._lock, suppress(UnwritablePath):  # the next report, or the end, says so to whoever makes the tasks
            if self._later is not None:  # it has not ended meanwhile
                self._later, self._next = None, time.monotonic() + RECORD_S
                self._write()

    def _write(self) -> None:
        with writing_to(self._file):
            write_atomically(self._file, self._making.model_dump_json())
