"""Which deployment a run was asked for under, and which side of it the run is, in words."""

from __future__ import annotations

from orchestrator.engine.events import ServedAs
from studio.episode_documents.schema import ServedView

_SIDES = {
    "serving": "what serves it answered",
    "candidate": "its candidate answered",
    "shadow": "its candidate ran in the shadow, and its answer was given to nobody",
}


def build_served_view(served: ServedAs) -> ServedView:
    """The document of a run's deployment."""
    return ServedView(
        deployment=served.deployment,
        change=served.change,
        side=served.side,
        shadow_of=served.shadow_of,
        sentence=describe_served(served),
    )


def describe_served(served: ServedAs) -> str:
    """One sentence on the deployment that was asked, and who answered."""
    change = f", change {served.change}" if served.change else ""
    return f"Asked of the deployment {served.deployment}{change}: {_SIDES[served.side]}."
