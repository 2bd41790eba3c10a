"""Refuses a job that cannot start on this machine: what exists before the first token is more than its memory."""

from __future__ import annotations

import logging

from trainer.errors import TrainerError, TrainingFailed
from trainer.memory_fit.advice import suggest_edits
from trainer.memory_fit.gpu_state import describe_other_programs
from trainer.memory_fit.model_sizes import ModelSizes, measure_model
from trainer.memory_fit.stages import Machine, detect_machine, find_largest_stage, format_bytes
from trainer.recipe import Recipe

log = logging.getLogger(__name__)


def check_it_fits(recipe: Recipe, machine: Machine | None = None) -> None:
    """Raise TrainingFailed when the weights, the adapter, gradients and AdamW's moments alone do not fit.

    Lengths are left out: the estimate takes them at their limit, and most jobs need less. A model whose size cannot be
    worked out is let through.
    """
    machine = machine or detect_machine()
    try:
        sizes = measure_model(recipe.model, machine.gpu)
    except TrainerError as error:
        log.warning("%s", error)
        return
    need = _count_need(recipe, sizes, machine)
    if need <= machine.free:
        for stage in recipe.training_stages:
            stage.method.check_memory(stage.settings, sizes, machine)
        return
    what = f"its weights, gradients and optimizer alone need {format_bytes(need)}"
    if need <= machine.total:
        others = describe_other_programs() if machine.gpu else "top names it"
        raise TrainingFailed(
            "memory_in_use",
            f"{what}; {machine.name} has {format_bytes(machine.total)}, but only {format_bytes(machine.free)} of it is "
            f"free: another program uses the rest ({others or 'nvidia-smi names it'}). End it, then "
            "resume",
        )
    whole = sum(part.bytes for part in find_largest_stage(recipe, machine)[1])
    advice = suggest_edits(recipe, machine, whole)[-1].text
    raise TrainingFailed(
        "too_large", f"{what}, and {machine.name} has {format_bytes(machine.total)}. Change the recipe: {advice}"
    )


def _count_need(recipe: Recipe, sizes: ModelSizes, machine: Machine) -> int:
    """The bytes that one process holds on its GPU, or all of them in the memory of a machine without."""
    whole = sizes.weights + sizes.adapter
    held = whole + 3 * sizes.trained  # 3: gradients, and AdamW's two moments
    if recipe.sharding == "none":
        return held if machine.gpu else held * recipe.processes
    return held // recipe.processes if machine.gpu else max(held, whole * recipe.processes)  # each reads all of it
