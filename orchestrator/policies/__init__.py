"""Orchestrators by name. Each policy is one short file that emits ordinary turns.

A name is `policy`, `policy:worker` or `policy:worker:dialect`: `fan_out`, `direct:solver`,
`model:solver:plan`. This table is the one place to register a policy. Any other name is a checkpoint's:
`starter-grpo`, `JOB@STEP`, a folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.dialects import dialect_named
from orchestrator.errors import UnknownOrchestrator
from orchestrator.plan import Turn
from orchestrator.policies.direct import DirectPolicy
from orchestrator.policies.fan_out import FanOutPolicy
from orchestrator.policies.model import agent_policy, checkpoint_policy
from orchestrator.policies.oracle import OraclePolicy
from orchestrator.policies.pipeline import PipelinePolicy
from orchestrator.run import Orchestrator
from pool_registry.agents import Draw
from pool_registry.live import LivePool


@dataclass(frozen=True, slots=True)
class Wanted:
    """A parsed name with what it may need. `draw`: how models sample; policies of chance go by its seed."""

    worker: str
    dialect: str
    pool: LivePool
    reference: Turn | None
    draw: Draw | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """One line of the table; `make` raises UnknownOrchestrator when the pool lacks what it needs."""

    name: str
    label: str
    summary: str
    make: Callable[[Wanted], Orchestrator]


def _oracle(wanted: Wanted) -> Orchestrator:
    if wanted.reference is None:
        raise UnknownOrchestrator(
            "the oracle replays the reference plan of a generated task, and this query has none; "
            "draw a query from a suite, or choose another orchestrator"
        )
    return OraclePolicy(wanted.reference)


POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy("oracle", "Oracle", "Replays the reference plan of a generated task.", _oracle),
        Policy(
            "model",
            "Model",
            "A chat or local model writes the turns, in any dialect.",
            lambda w: agent_policy(w.pool, agent_named(w), dialect_named(w.dialect or "plan"), w.draw),
        ),
        Policy("direct", "Direct", "One agent answers alone.", lambda w: DirectPolicy(agent_named(w))),
        Policy(
            "fan_out",
            "Fan-out",
            "All agents answer in parallel, one of them aggregates.",
            lambda w: FanOutPolicy(agents_of(w.pool), agent_named(w)),
        ),
        Policy(
            "pipeline",
            "Pipeline",
            "A planner, a solver and a verifier, one after another.",
            lambda w: PipelinePolicy(agents_of(w.pool)),
        ),
    )
}


def make_orchestrator(
    name: str, pool: LivePool, reference: Turn | None = None, draw: Draw | None = None
) -> Orchestrator:
    """The orchestrator called `name` on an open pool; `reference` is the oracle's plan, `draw` how it samples.

    Raises UnknownOrchestrator saying which names there are or what the pool lacks.
    """
    policy_name, _, rest = name.strip().partition(":")
    worker, _, dialect = rest.partition(":")
    policy = POLICIES.get(policy_name)
    if policy is None:
        try:
            return checkpoint_policy(pool, name.strip(), draw)
        except UnknownOrchestrator as error:
            raise UnknownOrchestrator(
                f"there is no orchestrator {name!r}; use one of: {', '.join(POLICIES)} "
                f"(direct:WORKER, model:WORKER:DIALECT), or a checkpoint: {error}"
            ) from error
    return policy.make(Wanted(worker, dialect, pool, reference, draw))


def agents_of(pool: LivePool) -> list[str]:
    """The names of the language models in a pool; UnknownOrchestrator when there are none."""
    agents = [name for name, worker in pool.workers.items() if worker.role == "agent"]
    if not agents:
        raise UnknownOrchestrator(f"pool {pool.pool.name!r} has no enabled agent; add a chat or local model to it")
    return agents


def agent_named(wanted: Wanted) -> str:
    """The agent that was asked for, or the pool's first one."""
    agents = agents_of(wanted.pool)
    if not wanted.worker:
        return agents[0]
    if wanted.worker not in agents:
        raise UnknownOrchestrator(
            f"pool {wanted.pool.pool.name!r} has no agent {wanted.worker!r}; it has: {', '.join(agents)}"
        )
    return wanted.worker
