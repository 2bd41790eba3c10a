"""The memory of a fine-tuning step."""

from __future__ import annotations

from trainer.memory_fit.model_sizes import ModelSizes
from trainer.memory_fit.stages import (
    Allocation,
    Machine,
    allocate_holes,
    allocate_model,
    allocate_runtime,
    allocate_training_step,
    head_bytes,
)
from trainer.methods.sft.section import SftSettings

LOGITS = 4  # float32 copies of whole logits on a CPU: the logits, their softmax, two temporary


def allocate_step(
    settings: SftSettings, processes: int, sizes: ModelSizes, machine: Machine, recomputes: bool
) -> list[Allocation]:
    rows = settings.batch // processes
    tokens = rows * settings.max_length
    head = head_bytes(sizes, machine, tokens, tokens, LOGITS)
    step = allocate_training_step(sizes, rows, settings.max_length, settings.accumulation, head, recomputes)
    return [*allocate_model(sizes), *step, *allocate_holes(step, machine), allocate_runtime(machine)]
