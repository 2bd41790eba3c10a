"""A stand-in for `nvidia-smi`, which comes with NVIDIA's driver."""

from __future__ import annotations

from pathlib import Path

import pytest


def install_driver(
    folder: Path, monkeypatch: pytest.MonkeyPatch, said: str, status: int = 0, seconds: float = 0
) -> None:
    """Put a program first on the PATH that says `said` to every question, after `seconds`."""
    (folder / "said").write_text(said)
    program = folder / "bin" / "nvidia-smi"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n/bin/sleep {seconds}\n/bin/cat '{folder}/said'\nexit {status}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
