"""A pytest plugin that writes how many trials the tests made, and which failed or were skipped, as JSON."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from tests.trust.trials import TALLY

VARIABLE = "PODIUM_TRIALS_FILE"


@dataclass(slots=True)
class Record:
    """What the tests of one promise came to."""

    trials: int = 0
    failures: int = 0
    failed_tests: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    processor_s: float = 0.0  # of this process and of those that it has awaited


RECORD = Record()


def pytest_runtest_setup() -> None:
    TALLY.trials = TALLY.failures = 0


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        RECORD.skipped.append(f"{report.nodeid}: {reason}")
    elif report.when == "call" or report.failed:
        trials = max(1, TALLY.trials)
        failures = max(1, TALLY.failures) if report.failed else 0
        RECORD.trials += trials
        RECORD.failures += failures
        RECORD.failed_tests += [report.nodeid] if report.failed else []


def pytest_sessionfinish() -> None:
    RECORD.processor_s = sum(os.times()[:4])
    Path(os.environ[VARIABLE]).write_text(json.dumps(asdict(RECORD)), encoding="utf-8")
