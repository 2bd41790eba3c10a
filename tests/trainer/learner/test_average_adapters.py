"""Averages of two adapters."""

from __future__ import annotations

import pytest

from scripts.average_adapters import average


def test_a_share_of_each_keeps_the_precision():
    import torch

    weights = {"a": torch.ones(2, 3, dtype=torch.float16)}
    averaged = average(weights, {"a": torch.zeros(2, 3)}, 0.25)
    assert averaged["a"].dtype == torch.float16 and torch.equal(averaged["a"], torch.full((2, 3), 0.25).half())


@pytest.mark.parametrize(("name", "length"), [("b", 2), ("a", 3)])
def test_adapters_of_other_shapes_are_refused(name, length):
    import torch

    with pytest.raises(SystemExit, match="differ"):
        average({"a": torch.ones(2)}, {name: torch.zeros(length)}, 0.5)


def test_a_share_outside_its_range_is_refused():
    import torch

    with pytest.raises(SystemExit, match="from 0 to 1"):
        average({"a": torch.ones(2)}, {"a": torch.ones(2)}, 1.5)
