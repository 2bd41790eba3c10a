"""What shows that a case of the table is right, by the words of the case."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.field.table import FELL_SHORT, RIGHT_ALREADY

Context = pytest.FixtureRequest
Show = Callable[[Context], None]
CASES = FELL_SHORT | RIGHT_ALREADY
SHOWN: dict[str, list[Show]] = {}


def shows(*cases: str) -> Callable[[Show], Show]:
    """A decorator: the function shows what is right for these cases."""

    def keep(show: Show) -> Show:
        for case in cases:
            assert case in CASES, case
            SHOWN.setdefault(case, []).append(show)
        return show

    return keep
