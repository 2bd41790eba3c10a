"""The table of trackers. A place is named as TRACKER:TARGET: `otlp:http://127.0.0.1:4318`, `trackio:my-project`,
`mlflow:http://127.0.0.1:5000#my-experiment`.

Another package adds a row by an entry point in the group `podium.trackers`, whose value is an object of class
TrackerRow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.errors import TrackerRefused
from orchestrator.tracking.packages import require_package
from orchestrator.tracking.spans import Span
from pool_registry.extensions.extension_table import ExtensionTable


class Tracker(Protocol):
    """Takes traces and curves. Its methods are called from one thread and may wait."""

    def push(self, spans: Sequence[Span]) -> None:
        """Take spans that have ended; where the row is not `live` those of a whole trace, the outermost first."""

    def log(self, run: str, step: int, figures: Mapping[str, float]) -> None:
        """Take the figures of a step of a job."""

    def close(self) -> None:
        """Send what waits."""


@dataclass(frozen=True, slots=True)
class TrackerRow:
    """One tracker. `target` shows what stands behind the colon. `package` must be installed: `extra` is the extra of
    Podium's that brings it, or what another package's row has pip install. `live`: takes each span when that ends."""

    name: str
    summary: str
    target: str
    open: Callable[[str], Tracker]
    package: str
    extra: str
    live: bool = False


def _open_otlp(target: str) -> Tracker:
    from orchestrator.tracking.otlp import OtlpTracker

    return OtlpTracker(target)


def _open_trackio(target: str) -> Tracker:
    from orchestrator.tracking.trackio_runs import TrackioTracker

    return TrackioTracker(target)


def _open_mlflow(target: str) -> Tracker:
    from orchestrator.tracking.mlflow_runs import MlflowTracker

    return MlflowTracker(target)


TRACKERS = ExtensionTable(
    "podium.trackers",
    TrackerRow,
    (
        TrackerRow(
            "otlp",
            "Traces as OpenTelemetry spans, each when it ends.",
            "http://HOST:4318",
            _open_otlp,
            "opentelemetry.exporter.otlp.proto.http",
            "telemetry",
            live=True,
        ),
        TrackerRow(
            "trackio",
            "Traces, and curves of jobs, as runs of Trackio.",
            "PROJECT",
            _open_trackio,
            "trackio",
            "trackio",
        ),
        TrackerRow(
            "mlflow", "Traces, and curves of jobs, in MLflow.", "URI[#EXPERIMENT]", _open_mlflow, "mlflow", "mlflow"
        ),
    ),
)


def parse_place(place: str) -> tuple[TrackerRow, str]:
    """The row of TRACKER:TARGET, and its target. Raises TrackerRefused with the list of trackers."""
    name, colon, target = place.partition(":")
    row = TRACKERS.get(name.strip())
    if row is None or not colon:
        choices = ", ".join(f"{row.name}:{row.target}" for row in TRACKERS.values())
        raise TrackerRefused(f"there is no tracker {place[:100]!r}; use one of: {choices}")
    return row, target.strip()


def find_tracker(place: str) -> tuple[TrackerRow, str]:
    """As `parse_place`, where the tracker's package is installed. Raises TrackerRefused with the command that installs
    it, too."""
    row, target = parse_place(place)
    require_package(row.name, row.package, row.extra)
    return row, target
