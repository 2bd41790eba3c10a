"""`podium publish`: a folder is named for a preview alone."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from studio.__main__ import app
from studio.publish.request import PublishError


def test_a_folder_without_a_dry_run_sends_nothing(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise AssertionError("it publishes")

    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    monkeypatch.setattr("studio.publish.publish.publish_now", fail)
    arguments = [
        "publish",
        "--pool",
        "starter",
        "--orchestrator",
        "oracle",
        "--repo",
        "mine",
        "--out",
        str(tmp_path / "p"),
    ]
    with pytest.raises(PublishError, match="--out goes with --dry-run"):
        CliRunner().invoke(app, [*arguments, "--yes"], catch_exceptions=False)
    assert not (tmp_path / "p").exists()
