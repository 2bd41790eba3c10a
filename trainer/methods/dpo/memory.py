"""The memory of a step on pairs: both conversations of each go through the model together."""

from __future__ import annotations

from trainer.memory_fit.model_sizes import ModelSizes
from trainer.memory_fit.stages import (
    Allocation,
    Machine,
    allocate_holes,
    allocate_model,
    allocate_runtime,
    allocate_training_step,
    loss_tile_bytes,
)
from trainer.methods.dpo.section import DpoSettings

SIDES = 2  # of a pair


def allocate_step(settings: DpoSettings, sizes: ModelSizes, machine: Machine, recomputes: bool) -> list[Allocation]:
    """Estimate a step. How likely the start finds each side is computed once, before: there is no reference model."""
    rows = SIDES * settings.batch
    head = loss_tile_bytes(sizes, machine, rows * settings.max_length)
    step = allocate_training_step(sizes, rows, settings.max_length, settings.accumulation, head, recomputes)
    return [*allocate_model(sizes), *step, *allocate_holes(step, machine), allocate_runtime(machine)]
