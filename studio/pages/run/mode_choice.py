"""The deployment mode of a run, as the Run page offers it: the pool's own, or another for this run."""

from __future__ import annotations

from pool_registry.deployment_mode import STRICTNESS, ModeName
from pool_registry.pool import Pool

POOLS_OWN = "pool"


def list_mode_choices(pool: Pool) -> list[tuple[str, str]]:
    """The choices as (label, value): the pool's own mode first."""
    others = [name for name in STRICTNESS if name != pool.mode.name]
    return [(pool.mode.name, POOLS_OWN), *((name, name) for name in others)]


def read_mode_choice(value: str | None) -> ModeName | None:
    """The mode that was chosen for a run; None for the pool's."""
    return value if value in STRICTNESS else None
