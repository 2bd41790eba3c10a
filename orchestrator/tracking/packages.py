"""Packages of trackers, which are installed only where a team has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from orchestrator.errors import TrackerRefused

INSTALL = {
    "telemetry": "pip install 'podium-studio[telemetry]'",
    "trackio": "pip install 'podium-studio[trackio]'",
    "mlflow": "pip install 'podium-studio[mlflow]'",
}  # by the extra of Podium's that brings a package


def require_package(tracker: str, package: str, extra: str) -> None:
    """Raise TrackerRefused with the command that installs a package, where it is missing."""
    try:
        spec = find_spec(package)
    except ModuleNotFoundError:  # of a package around it
        spec = None
    if spec is None:
        command = INSTALL.get(extra, f"pip install {extra or package.partition('.')[0]}")
        raise TrackerRefused(f"{tracker} needs the package {package}, which is not installed; run: {command}")


@contextmanager
def explain_tracker(tracker: str) -> Iterator[None]:
    """Turn what another package raises into TrackerRefused."""
    try:
        yield
    except TrackerRefused:
        raise
    except Exception as error:
        words = " ".join(str(error).split())[:300] or type(error).__name__
        raise TrackerRefused(f"{tracker} takes no traces: {words}. Check its address and whether it runs") from error
