"""A job's traces and curves, sent to the places of its recipe and of PODIUM_TRACK while it runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from orchestrator.traces.store import Store
from orchestrator.tracking.live import Tracking, track
from pool_registry.actions import JsonValue
from trainer.jobs.job_folder import JobFolder, read_lines

PAUSE_S = 2.0
NO_FIGURES = ("stage", "step", "at")


@contextmanager
def track_job(places: Sequence[str], job: str, store: Store, job_folder: JobFolder) -> Iterator[None]:
    """Send what the job plays and measures inside the block. Raises TrackerRefused."""
    tracking = track(store, places)
    if tracking is None:
        yield
        return
    curves = _Curves(tracking, job, job_folder.metrics)
    try:
        yield
    finally:
        curves.close()
        tracking.close()


class _Curves:
    """Sends the lines that are added to a job's metrics, from a thread of its own."""

    def __init__(self, tracking: Tracking, job: str, metrics: Path) -> None:
        self._tracking, self._job, self._metrics = tracking, job, metrics
        self._sent = len(read_lines(metrics))  # those of before a resume were sent then
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="curves", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send the rest."""
        self._over.set()
        self._thread.join()
        self._send()

    def _work(self) -> None:
        while not self._over.wait(PAUSE_S):
            self._send()

    def _send(self) -> None:
        rows = read_lines(self._metrics)
        self._sent = min(self._sent, len(rows))  # a resume drops lines beyond its checkpoint
        for row in rows[self._sent :]:
            self._tracking.log(self._job, int(str(row["step"])), list_figures(row))
        self._sent = len(rows)


def list_figures(row: Mapping[str, JsonValue]) -> dict[str, float]:
    """The figures of a line of metrics by STAGE/NAME."""
    figures = {name: value for name, value in row.items() if name not in NO_FIGURES}
    return {
        f"{row['stage']}/{name}": float(value)
        for name, value in figures.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
