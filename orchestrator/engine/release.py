"""How the plans of an episode are released: by the gate, by a stronger orchestrator, or by a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from orchestrator.approval.plan_gate import PlanGate, PlanReview
from orchestrator.approval.records import Verdict
from orchestrator.engine.edits import AnyEdit
from orchestrator.engine.episode import Episode
from orchestrator.plan import Turn
from pool_registry.actions import JsonValue


@runtime_checkable
class Orchestrator(Protocol):
    """A policy: from the episode so far to the next turn. A trained model, an API model or a fixed baseline.

    One that `gives_up` does not recover from its mistakes: after MAX_USELESS_TURNS turns that could not be used it is
    not asked again.
    """

    name: str
    gives_up: bool = False

    async def turn(self, episode: Episode) -> Turn: ...

    def accepts_answer(self, answer: JsonValue) -> bool:  # noqa: ARG002  a default
        """Whether an answer whose quotes are filled in will do; where not, another turn is asked for."""
        return True


class _PlainOrchestrator(Orchestrator):
    """One that is no subclass of Orchestrator, with the defaults of the members that it leaves out."""

    def __init__(self, inner: Orchestrator) -> None:
        for member in ("name", "turn", "gives_up", "accepts_answer"):
            if hasattr(inner, member):
                setattr(self, member, getattr(inner, member))


def complete_orchestrator(orchestrator: Orchestrator) -> Orchestrator:
    """Give an orchestrator of another package, which may have a name and `turn` alone, the other members."""
    return orchestrator if isinstance(orchestrator, Orchestrator) else _PlainOrchestrator(orchestrator)


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about a plan, and by whom. `turn` is the plan as it was edited, `edits` how; without a turn the
    plan stays as it is."""

    verdict: Verdict
    by: str
    note: str = ""
    edits: tuple[AnyEdit, ...] = ()
    turn: Turn | None = None


Approver = Callable[[PlanReview], Awaitable[Decision | None]]  # None: nobody decides now, and the plan waits


async def leave_waiting(review: PlanReview) -> Decision | None:  # noqa: ARG001
    """The approver of runs whose plan is stored until a person decides."""
    return None


@dataclass(frozen=True, slots=True)
class PlanRelease:
    """What lets the plans of one run go.

    `approve` is asked about a plan that may not run by itself. `make_stronger` makes the orchestrator that plans in its
    place where the gate doubts, and raises OrchestratorError; None: there is none.
    """

    gate: PlanGate
    approve: Approver = leave_waiting
    make_stronger: Callable[[], Orchestrator] | None = None
