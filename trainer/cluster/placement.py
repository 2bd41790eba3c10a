"""Which actors a job has on a cluster: one on each node, and where models are loaded one for each GPU."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.policies.registry import POLICIES
from pool_registry.kinds import kind_of
from pool_registry.pool import Pool
from trainer.cluster.connection import ClusterNode

SAME = "same"  # what a worker of the kind orchestrator is by default: that of the episode around it
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an actor runs. `gpus` is what it claims there, 1 or 0: no other actor of the cluster gets that one."""

    node: ClusterNode
    gpus: int = 0


def place_actors(nodes: Sequence[ClusterNode], pools: Sequence[Pool], orchestrators: Sequence[str]) -> list[Placement]:
    """Choose the actors of a job, at most as many as its workers elsewhere take calls at a time."""
    models = _load_models(pools, orchestrators)
    copies = {node.id: int(node.gpus) if models else 0 for node in nodes}
    placements = [
        Placement(node, min(1, copies[node.id]))
        for number in range(max([1, *copies.values()]))
        for node in nodes
        if number < max(1, copies[node.id])
    ]
    slots = {
        spec.name: spec.max_concurrency for pool in pools for spec in pool.switched_on if kind_of(spec).load().remote
    }
    name = min(slots, key=lambda name: slots[name], default="")
    if name and slots[name] < len(placements):
        log.info("%d of %d places are used: %s takes no more calls at a time", slots[name], len(placements), name)
        return placements[: slots[name]]
    return placements


def _load_models(pools: Sequence[Pool], orchestrators: Sequence[str]) -> bool:
    """Whether a place loads a model of its own: a checkpoint's, or a worker's."""
    specs = [spec for pool in pools for spec in pool.switched_on]
    inner = [str(spec.config.get("orchestrator", SAME)) for spec in specs if spec.kind == "orchestrator"]
    names = {*orchestrators, *inner} - {SAME}
    checkpoints = any(OrchestratorName.parse(name).policy not in POLICIES for name in names)
    return checkpoints or any(spec.kind == "local_model" for spec in specs)
