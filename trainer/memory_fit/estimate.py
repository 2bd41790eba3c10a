"""Estimates, before a job starts, whether its recipe fits into RAM or GPU memory, its episodes, and its cost.

No weights are loaded. Lengths are taken at their limit: most jobs need less than the estimate. Where usual lengths are
known, those count (methods/sft/memory.py).
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from trainer.memory_fit.advice import suggest_edits
from trainer.memory_fit.episode_cost import count_episodes, estimate_cost
from trainer.memory_fit.gpu_state import describe_other_programs
from trainer.memory_fit.job_estimate import AgentCosts, estimate_job
from trainer.memory_fit.stages import Allocation, Machine, detect_machine, find_largest_stage, format_bytes
from trainer.recipe import Recipe


class Fit(BaseModel):
    """The estimate of a recipe. `need_bytes` is the sum of the parts, `free_bytes` what the device has; `cost` is in US
    dollars, None where nothing has a price. `edited` has the recipe with an advice applied, by the advice's text. The
    keys are the contract with the Train page."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    device: str
    parts: list[Allocation]
    need_bytes: int
    free_bytes: int
    fits: bool
    advice: list[str]
    edited: dict[str, dict[str, JsonValue]] = {}
    episodes: int
    cost: float | None
    note: str


def estimate_fit(
    recipe: Recipe, pool: Pool | None = None, machine: Machine | None = None, record: AgentCosts | None = None
) -> Fit:
    """Estimate what the recipe needs on `machine` (default: this one) and what its calls cost on `pool`, by the
    `record` of the pool's agents where it is given.

    Raises TrainerError when the model's config is missing or cannot be traced.
    """
    machine = machine or detect_machine()
    stage, parts = find_largest_stage(recipe, machine)
    need = sum(part.bytes for part in parts)
    fits = need <= machine.free
    episodes = count_episodes(recipe, pool)
    if pool is not None and record is not None:
        job = estimate_job(recipe, pool, record)
        cost, cost_notes = job.cost, [f"cost: {job.calls:,} calls, {job.basis}"]
    else:
        cost, cost_notes = estimate_cost(recipe, pool, sum(episodes.values()))
    notes = [
        f"the {stage} stage needs most",
        "lengths are taken at their limit, so most jobs need less; those of practice tasks as they usually are",
        f"episodes: {', '.join(f'{count:,} for {name}' for name, count in episodes.items()) or 'none'}",
    ]
    suggestions = [] if fits else suggest_edits(recipe, machine, need)
    return Fit(
        device=machine.name,
        parts=parts,
        need_bytes=need,
        free_bytes=machine.free,
        fits=fits,
        advice=[f"fits with {format_bytes(machine.free - need)} to spare"]
        if fits
        else [*_name_other_programs(machine), *(suggestion.text for suggestion in suggestions)],
        edited={edit.text: edit.recipe.model_dump(mode="json") for edit in suggestions if edit.recipe},
        episodes=sum(episodes.values()),
        cost=cost,
        note="; ".join([*notes, *cost_notes]),
    )


def _name_other_programs(machine: Machine) -> list[str]:
    others = describe_other_programs() if machine.gpu else ""
    return [f"end what else uses the GPU: {others}"] if others else []
