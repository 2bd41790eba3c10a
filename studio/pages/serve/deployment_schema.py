"""What the Serve page draws of deployments."""

from __future__ import annotations

from studio.frame.document import PageDocument


class TrialSide(PageDocument):
    """How one side of a deployment did since its candidate is tried; `cost` is US dollars of a request."""

    side: str
    label: str
    runs: int
    answered: int
    right: int
    wrong: int
    cost: float
    median_s: float


class TrialView(PageDocument):
    """A candidate: how it is tried, what that showed, and why it may not be promoted (nothing: it may)."""

    label: str
    sentence: str
    sides: list[TrialSide]
    notes: list[str]
    evidence: str
    refusals: list[str]


class ChangeLine(PageDocument):
    """One change of a deployment; `evidence` is what a promotion rested on."""

    number: int
    action: str
    serves: str
    by: str
    at: str
    reason: str
    evidence: str


class DeploymentCard(PageDocument):
    """A deployment; `ports` are where it is served, `back_to` is what a rollback brings back, "" where nothing is."""

    name: str
    pool: str
    pool_version: int
    orchestrator: str
    label: str
    ports: list[int]
    back_to: str
    trial: TrialView | None
    changes: list[ChangeLine]
