"""The memory of a fine-tuning step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.prompt_styles import PromptStyle
from trainer.learner.cpu_trainers import PLAIN_ATTENTION
from trainer.memory_fit.model_sizes import ModelSizes, read_config
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
from trainer.recipe import Recipe
from trainer.tasks.practice.stored import SOURCE

LOGITS = 4  # float32 copies of whole logits on a CPU: the logits, their softmax, two temporary


@dataclass(frozen=True, slots=True)
class UsualRows:
    """Tokens of a demonstration of a practice task: the listing of the pool, which all rows of a batch share on a CPU,
    the rest of a row, and what of it is learnt."""

    opening: int
    rest: int
    learnt: int


# Of 35 practice tasks of the starter pool the longest row has 722 tokens and the median 547, of which 355 are its
# listing of 19 workers; a listing has at most 24.
_READER = UsualRows(opening=450, rest=250, learnt=80)
# Fields are at most 64 characters more a line of the listing, about 25 tokens.
_WITH_FIELDS = UsualRows(opening=_READER.opening + 24 * 25, rest=300, learnt=80)
USUAL_ROWS: Mapping[PromptStyle, UsualRows] = {
    "reader": _READER,
    "reader-agents": _READER,
    "reader-fields": _WITH_FIELDS,
}


def find_usual_rows(settings: SftSettings, recipe: Recipe, machine: Machine) -> UsualRows | None:
    """The usual rows of a recipe whose batches share the listing of one pool (learner/shared_openings.py); None for
    others, whose rows are taken at their limit."""
    usual = USUAL_ROWS.get(recipe.model.prompt)
    if usual is None or usual.opening + usual.rest > settings.max_length:
        return None
    shares = not machine.gpu and not settings.packing and not recipe.model.checkpointing
    if not shares or not recipe.tasks.source.startswith(SOURCE):
        return None
    model = json.loads(read_config(recipe.model.base))
    return usual if model.get("model_type") in PLAIN_ATTENTION else None


def allocate_step(
    settings: SftSettings,
    processes: int,
    sizes: ModelSizes,
    machine: Machine,
    recomputes: bool,
    usual: UsualRows | None = None,
) -> list[Allocation]:
    """Estimate a step; with `usual`, its rows stand in one sequence behind one opening."""
    rows = settings.batch // processes
    if usual is None:
        length, sequences, learnt = settings.max_length, rows, rows * settings.max_length
    else:
        length, sequences, learnt = usual.opening + rows * usual.rest, 1, rows * usual.learnt
    head = head_bytes(sizes, machine, learnt, learnt, LOGITS)
    step = allocate_training_step(sizes, sequences, length, settings.accumulation, head, recomputes)
    return [*allocate_model(sizes), *step, *allocate_holes(step, machine), allocate_runtime(machine)]
