"""Steps that the reference plans of several families share."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.plan import Step

CALCULATION = "evaluate an arithmetic expression"
CONVERSION = "convert units of measure"


def calculate(step: int, expression: str, access: Sequence[int]) -> Step:
    """A call of the calculator."""
    return Step(step, "calculator", {"expression": expression}, tuple(access), need=CALCULATION)


def read_passages(step: int, instruction: str, access: Sequence[int]) -> Step:
    """A call of the reader, which takes a figure or a name from the passages that it may see."""
    return Step(step, "reader", {"instruction": instruction}, tuple(access), need=instruction)
