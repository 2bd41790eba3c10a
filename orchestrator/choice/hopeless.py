"""Where outcomes say that no worker can do it: an answer would not be worth its price."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.plan import WorkerChoice

HOPELESS = 0.15  # where no worker is likelier than this to be right, none is asked
KNOWN = 4  # outcomes that a worker must have before it is called hopeless


def are_hopeless(choices: Collection[WorkerChoice]) -> bool:
    """Whether every worker is known, and none is likely enough to be right."""
    return bool(choices) and all(choice.of >= KNOWN and choice.success < HOPELESS for choice in choices)
