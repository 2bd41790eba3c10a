"""Name the operation of a need that asks for a sum as such.

Most pools that a reader learnt from have a calculator, and so a small model writes "evaluate an arithmetic expression"
also where a pool has one function for each operation. Such a need is as like the card that adds as the one that
multiplies: "how much more does A cost than B" became a product. Asked which of the four operations it is, the model
mostly knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.reader.bind_needs import SURE_LIKENESS, score_need
from orchestrator.reader.fill import BoundNeed
from orchestrator.reader.needs import Need, format_needs
from pool_registry.calls.live_pool import LiveWorker

# The words that a reader learns for them (assets/tasks/everyday_tools.yaml and project_tools.yaml).
SUMS = ("evaluate an arithmetic expression", "one sum with two numbers")
OPERATIONS = ("sum of two numbers", "difference of two numbers", "product of two numbers", "quotient of two numbers")


def asks_for_sum(need: Need) -> bool:
    """Whether a need leaves open which sum it is."""
    return need.text.casefold() in SUMS


def find_operation(worker: LiveWorker) -> str | None:
    """The operation that a worker does: it takes two numbers and nothing else, and its card is much like one of the
    four (of 128 such cards 124 are most like their own). None for other workers. Blocks: call it from a thread."""
    if not _takes_two_numbers(worker):
        return None
    likeness = {operation: score_need(operation, [worker])[0] for operation in OPERATIONS}
    nearest = max(likeness, key=likeness.__getitem__)
    return nearest if likeness[nearest] >= SURE_LIKENESS else None


def _takes_two_numbers(worker: LiveWorker) -> bool:
    properties = worker.parameters.get("properties")
    rules = list(properties.values()) if isinstance(properties, Mapping) else []
    kinds = [rule.get("type") for rule in rules if isinstance(rule, Mapping)]
    return len(rules) == 2 and all(kind in ("number", "integer") for kind in kinds)


def leave_out_other_operations(candidates: Sequence[BoundNeed], workers: Mapping[str, LiveWorker]) -> list[BoundNeed]:
    """The workers that may serve a need; where it names an operation, without those that do another one or are hardly
    like it. Blocks: call it from a thread."""
    return [
        item
        for item in candidates
        if item.need.text not in OPERATIONS
        or (item.likeness >= SURE_LIKENESS and find_operation(workers[item.worker]) in (None, item.need.text))
    ]


def write_choices(needs: Sequence[Need], place: int) -> list[str]:
    """The first needs as a model writes them, up to the one at a place (from 0 on), with each operation as that one."""
    return [format_needs([*needs[:place], replace(needs[place], text=operation)]) for operation in OPERATIONS]
