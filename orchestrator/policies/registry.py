"""Orchestrators by name. Each policy is one short file that emits ordinary turns.

A name is `policy`, `policy:worker` or `policy:worker:dialect`: `fan_out`, `direct:solver`,
`model:solver:plan`; `random_plan:7` names a seed. This table is the one place to register a policy. Any other
name is a checkpoint's: `starter-grpo`, `JOB@STEP`, a folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from orchestrator.dialects import dialect_named
from orchestrator.engine.episode_loop import Orchestrator
from orchestrator.errors import UnknownOrchestrator
from orchestrator.plan import Turn
from orchestrator.policies.cascade import CascadePolicy, cheapest_first
from orchestrator.policies.direct import DirectPolicy
from orchestrator.policies.fan_out import FanOutPolicy
from orchestrator.policies.group_chat import GroupChatPolicy, chair_of
from orchestrator.policies.model import agent_policy, checkpoint_policy
from orchestrator.policies.oracle import OraclePolicy
from orchestrator.policies.pipeline import PipelinePolicy
from orchestrator.policies.random_plan import RandomPlanPolicy
from orchestrator.policies.react import react_policy
from orchestrator.policies.router import RouterPolicy
from pool_registry.calls.live_pool import LivePool
from pool_registry.language_models.completion import Draw

if TYPE_CHECKING:
    from orchestrator.traces.agent_track_record import Record

# (the oracle's plan, how to sample) -> an orchestrator for one episode
Make = Callable[[Turn | None, Draw | None], Orchestrator]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A parsed name with what it may need. `draw`: how models sample; policies of chance go by its seed.
    `record`: what the traces say about agents on this pool."""

    worker: str
    dialect: str
    pool: LivePool
    reference: Turn | None
    draw: Draw | None
    record: Callable[[], Record]


@dataclass(frozen=True, slots=True)
class Policy:
    """One line of the table; `make` raises UnknownOrchestrator when the pool lacks what it needs.
    `takes_agent` says that the name of an agent may stand behind its own."""

    name: str
    label: str
    summary: str
    make: Callable[[Wanted], Orchestrator]
    takes_agent: bool = False


def _oracle(wanted: Wanted) -> Orchestrator:
    if wanted.reference is None:
        raise UnknownOrchestrator(
            "the oracle replays the reference plan of a generated task, and this query has none; "
            "draw a query from a suite, or choose another orchestrator"
        )
    return OraclePolicy(wanted.reference)


def _random_plan(wanted: Wanted) -> Orchestrator:
    drawn = wanted.draw.seed if wanted.draw is not None and wanted.draw.seed is not None else 0
    if wanted.worker and not (wanted.worker.isascii() and wanted.worker.isdigit()):
        raise UnknownOrchestrator(f"random_plan takes a seed, as in random_plan:7, not {wanted.worker!r}")
    if not wanted.pool.workers:
        raise UnknownOrchestrator(f"pool {wanted.pool.pool.name!r} has no enabled worker to plan with; add one to it")
    return RandomPlanPolicy(wanted.pool, int(wanted.worker[:18] or drawn))


def _group_chat(wanted: Wanted) -> Orchestrator:
    agents = agents_of(wanted.pool)
    return GroupChatPolicy(agents, agent_named(wanted) if wanted.worker else chair_of(agents))


POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy("oracle", "Oracle", "Replays the reference plan of a generated task.", _oracle),
        Policy(
            "model",
            "Model",
            "A chat or local model writes the turns, in any dialect.",
            lambda w: agent_policy(w.pool, agent_named(w), dialect_named(w.dialect or "plan"), w.draw),
            takes_agent=True,
        ),
        Policy("direct", "Direct", "One agent answers alone.", lambda w: DirectPolicy(agent_named(w)), True),
        Policy(
            "react",
            "ReAct",
            "One agent calls the workers one after another and sees each output before the next call.",
            lambda w: react_policy(w.pool, agent_named(w), w.dialect, w.draw),
            takes_agent=True,
        ),
        Policy(
            "fan_out",
            "Fan-out",
            "All agents answer in parallel, one of them aggregates.",
            lambda w: FanOutPolicy(agents_of(w.pool), agent_named(w)),
            takes_agent=True,
        ),
        Policy(
            "pipeline",
            "Pipeline",
            "A planner, a solver and a verifier, one after another.",
            lambda w: PipelinePolicy(agents_of(w.pool)),
        ),
        Policy(
            "cascade",
            "Cascade",
            "The cheapest agent first; a reply that is not sure enough goes to the next.",
            lambda w: CascadePolicy(cheapest_first(agents_of(w.pool), w.pool)),
        ),
        Policy(
            "router",
            "Router",
            "The one agent that did best on such queries, by the traces of this data folder.",
            lambda w: RouterPolicy(agents_of(w.pool), w.pool, w.record),
        ),
        Policy(
            "group_chat",
            "Group chat",
            "Agents speak in turns, each sees what was said; one of them chairs and ends it.",
            _group_chat,
            takes_agent=True,
        ),
        Policy("random_plan", "Random plan", "A random valid plan over the pool: the floor.", _random_plan),
    )
}


def make_orchestrator(
    name: str, pool: LivePool, reference: Turn | None = None, draw: Draw | None = None
) -> Orchestrator:
    """The orchestrator called `name` on an open pool; `reference` is the oracle's plan, `draw` how it samples.

    Raises UnknownOrchestrator saying which names there are or what the pool lacks.
    """
    return maker(name, pool)(reference, draw)


def maker(name: str, pool: LivePool, record: Callable[[], Record] | None = None) -> Make:
    """`make_orchestrator` for many episodes: the traces that a policy goes by are read once, when the first of them
    needs them, so that the episodes themselves do not change its choices. `record` gives another record than this
    data folder's of now."""
    policy_name, _, rest = name.strip().partition(":")
    worker, _, dialect = rest.partition(":")
    policy = POLICIES.get(policy_name)
    if policy is None:
        return lambda _, draw: _from_checkpoint(name, pool, draw)
    kept = _once(record or (lambda: _recorded(pool)))
    return lambda reference, draw: policy.make(Wanted(worker, dialect, pool, reference, draw, kept))


def _once(read: Callable[[], Record]) -> Callable[[], Record]:
    """`read`, called at most once; whoever comes meanwhile, in any thread, waits for what it returns."""
    lock = Lock()
    found: list[Record] = []

    def once() -> Record:
        with lock:
            if not found:
                found.append(read())
            return found[0]

    return once


def _from_checkpoint(name: str, pool: LivePool, draw: Draw | None) -> Orchestrator:
    try:
        return checkpoint_policy(pool, name.strip(), draw)
    except UnknownOrchestrator as error:
        raise UnknownOrchestrator(
            f"there is no orchestrator {name!r}; use one of: {', '.join(POLICIES)} "
            f"(direct:WORKER, model:WORKER:DIALECT), or a checkpoint: {error}"
        ) from error


def _recorded(pool: LivePool) -> Record:
    from orchestrator.traces.agent_track_record import recorded  # brings the database along

    return recorded(pool.pool.name)


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
