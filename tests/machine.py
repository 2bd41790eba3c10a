"""What only some machines have. Tests that need it are skipped there, and fail in CI, where it must be."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

IN_CI = bool(os.environ.get("PODIUM_CI"))  # set by .ci/run


def missing(what: str) -> NoReturn:
    """Skip the running test, or fail it in CI."""
    sentence = f"this machine has no {what}; make system installs what it can"
    if IN_CI:
        pytest.fail(sentence)
    pytest.skip(sentence)


def needs(found: bool, what: str) -> pytest.MarkDecorator:
    """A mark for tests that need `what`; without an effect in CI, so that they run and fail there."""
    return pytest.mark.skipif(not found and not IN_CI, reason=f"this machine has no {what}")
