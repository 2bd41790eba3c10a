"""Name the operation of a need that asks for a sum as such.

Most pools that a reader learnt from have a calculator, and so a small model writes "evaluate an arithmetic expression"
also where a pool has one function for each operation. Such a need is as like the card that adds as the one that
multiplies: "how much more does A cost than B" became a product. Asked which of the four operations it is, the model
mostly knows. Where one worker does them all, and an argument chooses between them, the argument is then that one:
"what do A and B cost together" was multiplied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.reader.bind_needs import list_candidates, score_need
from orchestrator.reader.fill import BoundNeed
from orchestrator.reader.needs import Need, format_needs
from orchestrator.reader.thresholds import THRESHOLDS
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LiveWorker

# The words that a reader learns for them (everyday_tools.yaml and project_tools.yaml of podium-lessons).
SUMS = ("evaluate an arithmetic expression", "one sum with two numbers")
OPERATIONS = ("sum of two numbers", "difference of two numbers", "product of two numbers", "quotient of two numbers")

# What a value is called that chooses one of them.
SPELLINGS = {
    OPERATIONS[0]: ("add", "addition", "plus", "sum", "+"),
    OPERATIONS[1]: ("subtract", "subtraction", "minus", "difference", "-"),
    OPERATIONS[2]: ("multiply", "multiplication", "times", "product", "*", "x"),
    OPERATIONS[3]: ("divide", "division", "divided by", "quotient", "/"),
}


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
    return nearest if likeness[nearest] >= THRESHOLDS.is_sure else None


def _takes_two_numbers(worker: LiveWorker) -> bool:
    kinds = [rule.get("type") for rule in _list_rules(worker).values()]
    return len(kinds) == 2 and all(kind in ("number", "integer") for kind in kinds)


def _list_rules(worker: LiveWorker) -> dict[str, Mapping[str, JsonValue]]:
    """The parameters of a worker, each with its schema."""
    properties = worker.parameters.get("properties")
    rules = properties if isinstance(properties, Mapping) else {}
    return {name: rule for name, rule in rules.items() if isinstance(rule, Mapping)}


@dataclass(frozen=True, slots=True)
class OperationParameter:
    """The parameter that chooses the operation of a worker on two numbers, and its value for each one."""

    name: str
    values: Mapping[str, str]


def find_operation_parameter(worker: LiveWorker) -> OperationParameter | None:
    """None where a worker takes anything but two numbers and one of these operations. One that does others, too, is not
    known: which of all it has to do the model is not asked."""
    rules = _list_rules(worker)
    numbers = [name for name, rule in rules.items() if rule.get("type") in ("number", "integer")]
    choosing = {name: enum for name, rule in rules.items() if isinstance(enum := rule.get("enum"), list | tuple)}
    if len(rules) != 3 or len(numbers) != 2 or len(choosing) != 1 or not choosing.keys().isdisjoint(numbers):
        return None
    name, enum = choosing.popitem()
    choices = [str(value) for value in enum]
    values = {
        operation: choice
        for operation, spellings in SPELLINGS.items()
        for choice in choices
        if choice.casefold() in spellings
    }
    return OperationParameter(name, values) if len(values) == len(choices) >= 2 else None


def hold_to_operation(worker: LiveWorker, need: Need) -> Mapping[str, JsonValue]:
    """The parameters of a worker as a schema; where one chooses the operation, it can only be that of the need."""
    parameter = find_operation_parameter(worker) if need.text in OPERATIONS else None
    if parameter is None or need.text not in parameter.values:
        return worker.parameters
    rules = _list_rules(worker)
    held = {**rules[parameter.name], "enum": [parameter.values[need.text]]}
    return {**worker.parameters, "properties": {**rules, parameter.name: held}}


def list_servers(need: Need, workers: Mapping[str, LiveWorker]) -> list[BoundNeed]:
    """The workers that may serve a need, the likeliest first. Where it names an operation, those without the ones that
    do another one or are hardly like it, but with those that can do it; where it does not, without those that do one
    and are hardly like it. Blocks: call it from a thread."""
    candidates = list_candidates(need, list(workers.values()))
    if asks_for_sum(need):
        return candidates
    if need.text not in OPERATIONS:
        return [
            item
            for item in candidates
            if item.likeness >= THRESHOLDS.does_operation or find_operation(workers[item.worker]) is None
        ]
    choosing = [worker for worker in workers.values() if _can_do(worker, need.text)]
    chosen = [replace(item, need=need) for item in list_candidates(replace(need, text=SUMS[1]), choosing)]
    others = [
        item
        for item in candidates
        if item.likeness >= THRESHOLDS.is_sure
        and workers[item.worker] not in choosing
        and find_operation(workers[item.worker]) in (None, need.text)
    ]
    return sorted([*others, *chosen], key=lambda item: -item.likeness)


def _can_do(worker: LiveWorker, operation: str) -> bool:
    parameter = find_operation_parameter(worker)
    return parameter is not None and operation in parameter.values


def write_choices(needs: Sequence[Need], place: int) -> list[str]:
    """The first needs as a model writes them, up to the one at a place (from 0 on), with each operation as that one."""
    return [format_needs([*needs[:place], replace(needs[place], text=operation)]) for operation in OPERATIONS]
