"""The layers of a plan: how many of its steps have to wait for each other, how many can run at a time, and which
outputs a step uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from orchestrator.plan import Step


def step_layers(steps: Iterable[Step]) -> dict[int, int]:
    """The layer of each step by its id: 0 where it waits for no other step of `steps`, otherwise one more than the
    highest layer in its access list. Steps come by ascending id, which is a topological order: access lists name
    earlier steps only."""
    layers: dict[int, int] = {}
    for step in steps:
        layers[step.id] = 1 + max((layers[k] for k in step.access if k in layers), default=-1)
    return layers


def layer_sizes(steps: Iterable[Step]) -> list[int]:
    """How many steps stand in each layer: the list's length is the plan's depth, its maximum the width."""
    sizes = Counter(step_layers(steps).values())
    return [sizes[layer] for layer in range(len(sizes))]


def is_used(step: Step, k: int, role: str) -> bool:
    """Whether a step whose worker has this role uses entry `k` of its access list: it quotes `$k`, or it is a model,
    which gets every entry in its prompt, or a tool that quotes nothing and reads what it may see."""
    return k in step.references or role != "tool" or not step.references
