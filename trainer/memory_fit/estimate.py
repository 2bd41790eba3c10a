"""Will it fit? What a recipe needs in memory, episodes and money, told before its job starts.

No weights are loaded. Lengths are taken at their limit: most jobs need less than this says.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from pool_registry.pool import Pool
from trainer.memory_fit.advice import suggest_edits
from trainer.memory_fit.episode_cost import count_episodes, estimate_cost
from trainer.memory_fit.stages import Allocation, Machine, detect_machine, find_largest_stage, format_bytes
from trainer.recipe import Recipe


class Fit(BaseModel):
    """Memory in bytes; `need_bytes` is the sum of the parts. `cost` in US dollars, None where nothing has a price."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    device: str
    parts: list[Allocation]
    need_bytes: int
    free_bytes: int
    fits: bool
    advice: list[str]
    episodes: int
    cost: float | None
    note: str


def estimate_fit(recipe: Recipe, pool: Pool | None = None, machine: Machine | None = None) -> Fit:
    """What the recipe needs on `machine` (default: this one) and what its calls cost on `pool`.

    Raises TrainerError when the model's configuration cannot be had or the model cannot be worked out.
    """
    machine = machine or detect_machine()
    stage, parts = find_largest_stage(recipe, machine)
    need = sum(part.bytes for part in parts)
    fits = need <= machine.free
    episodes = count_episodes(recipe)
    cost, priced = estimate_cost(recipe, pool, sum(episodes.values()))
    told = [
        f"the {stage} stage needs most",
        "lengths are taken at their limit, so most jobs need less",
        f"episodes: {', '.join(f'{count:,} for {name}' for name, count in episodes.items()) or 'none'}",
    ]
    return Fit(
        device=machine.name,
        parts=parts,
        need_bytes=need,
        free_bytes=machine.free,
        fits=fits,
        advice=[f"fits with {format_bytes(machine.free - need)} to spare"]
        if fits
        else suggest_edits(recipe, machine, need),
        episodes=sum(episodes.values()),
        cost=cost,
        note="; ".join([*told, *priced]),
    )
