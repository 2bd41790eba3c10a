"""Tests that ask other studios' own packages, which `make neighbours` installs into an environment of their own."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest


def require(package: str) -> None:
    """Skip a module's tests where `package` is not installed; under `make test-neighbours` it must be."""
    if find_spec(package) is not None:
        return
    if os.environ.get("PODIUM_NEIGHBOURS"):
        pytest.fail(f"make neighbours has not installed {package}", pytrace=False)
    pytest.skip(f"{package} is not installed; run: make test-neighbours", allow_module_level=True)
