"""Plans that wait for a person: which there are, what they would do, and the decision about one.

A plan waits in its trace and nowhere else, so that it outlives the process that wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from orchestrator.approval.records import Verdict
from orchestrator.engine.edits import AnyEdit
from orchestrator.engine.episode import Episode, fill_known, replay
from orchestrator.engine.events import PlanDecided, PlanHeld
from orchestrator.engine.release import Decision
from orchestrator.errors import OrchestratorError
from orchestrator.traces.store import EpisodeRow, Store, TraceFilter
from orchestrator.what_if import vary
from pool_registry.calls.live_pool import LivePool
from pool_registry.errors import PoolNotFound
from pool_registry.pool import Pool

MAX_LISTED = 200


class NotWaiting(OrchestratorError):
    """A decision about a plan that does not wait for one."""


@dataclass(frozen=True, slots=True)
class WaitingPlan:
    """An episode whose last plan waits, and the version of the pool that it runs on. `last_event` is the id of the last
    event until then."""

    episode: Episode
    held: PlanHeld
    pool: Pool
    row: EpisodeRow
    last_event: int


def list_waiting(store: Store) -> list[EpisodeRow]:
    """The episodes whose plan waits, newest first."""
    return store.traces.search(TraceFilter(state="waiting", limit=MAX_LISTED))


def read_waiting(store: Store, episode_id: str, round_seen: int | None = None) -> WaitingPlan:
    """The plan of an episode that waits; of the round that a person has seen, where it is named.

    Raises EpisodeNotFound, DamagedTrace, NotWaiting with the reason, or PoolNotFound.
    """
    store.traces.flush()
    row = store.traces.row(episode_id)
    events = store.traces.events_after(episode_id)
    episode = replay(episode_id, (event for _, event in events))
    if row.state != "waiting" or episode.held is None:
        raise NotWaiting(_explain_not_waiting(episode, row))
    if round_seen not in (None, episode.held.round):
        raise NotWaiting(
            f"somebody else has decided about the plan of round {round_seen}; that of round {episode.held.round} waits "
            "now: look at it first"
        )
    stored = store.pools.by_hash(row.pool, row.pool_hash)
    if stored is None:
        raise PoolNotFound(
            f"the version of pool {row.pool!r} that this plan was made for is not kept in this data folder; "
            "run the query again"
        )
    return WaitingPlan(episode, episode.held, stored.pool, row, events[-1][0])


def make_decision(
    plan: WaitingPlan, pool: LivePool, verdict: Verdict, by: str, note: str = "", edits: Sequence[AnyEdit] = ()
) -> Decision:
    """The decision about a plan, with its edits made. Raises InvalidEdits with every problem at its step."""
    if not edits:
        return Decision(verdict, by, note)
    old = plan.episode.rounds[-1].turn
    assert old is not None, "a plan that waits is a turn's"
    new = vary(plan.episode, plan.held.round, edits, pool).turns[-1]
    return Decision(verdict, by, note, tuple(edits), replace(old, steps=new.steps, answer=new.answer, text=new.text))


def claim_plan(store: Store, plan: WaitingPlan) -> None:
    """Take over an episode, so that nobody else decides about it too. Raises NotWaiting when somebody was faster."""
    if not store.traces.claim(plan.row.id, plan.last_event):
        raise NotWaiting("somebody else has just decided about this plan; reload to see how")
    store.traces.follow_resumed(plan.row.id)


def describe_plan(plan: WaitingPlan) -> dict[str, Any]:
    """The approval request as JSON, for clients and terminals. `values` are the arguments with what is known already
    in the place of `$k`; edits quote the plan as `arguments` have it."""
    turn = plan.episode.rounds[-1].turn
    estimates = {item.step: item for item in plan.held.estimate.steps}
    steps = [
        {
            "id": step.id,
            "worker": step.worker,
            "values": fill_known(step.arguments, plan.episode),
            "arguments": dict(step.arguments),
            "access": list(step.access),
            "problem": step.problem,
            "estimate": asdict(estimates[step.id]) if step.id in estimates else None,
        }
        for step in (turn.steps if turn else ())
    ]
    return {
        "id": plan.row.id,
        "status": "requires_approval",
        "query": plan.row.query,
        "pool": plan.row.pool,
        "orchestrator": plan.episode.escalated_to or plan.row.orchestrator,
        "user": plan.row.user_name,
        "round": plan.held.round,
        "held_at": plan.held.held_at,
        "reasons": [asdict(reason) for reason in plan.held.reasons],
        "estimated_cost": plan.held.estimate.cost,
        "estimated_s": plan.held.estimate.seconds,
        "without_estimate": list(plan.held.estimate.unknown),
        "steps": steps,
        "answer": turn.answer if turn else None,
    }


def _explain_not_waiting(episode: Episode, row: EpisodeRow) -> str:
    decided = [event for done in episode.rounds for event in done.releases if isinstance(event, PlanDecided)]
    if row.state == "interrupted":
        return "this run was interrupted when its studio stopped; run the query again"
    if not decided:
        return f"the plan of this run does not wait for a decision: its state is {row.state!r}"
    last = decided[-1]
    word = "rejected" if last.verdict == "reject" else "approved"
    return f"{last.by or 'somebody'} has {word} this plan already, at {last.decided_at}"
