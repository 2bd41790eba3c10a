"""Suggests edits to a recipe that does not fit into the RAM or the GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trainer.memory_fit.stages import Machine, find_largest_stage, format_bytes
from trainer.recipe import Recipe
from trainer.recipe_sections import LoraSettings


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An edit in words, and the recipe with it; None where no edit of the recipe is enough."""

    text: str
    recipe: Recipe | None


def suggest_edits(recipe: Recipe, machine: Machine, need: int) -> list[Suggestion]:
    """Suggest edits, the one that frees most first, each measured alone; and a set of them where none is enough."""
    options = []
    for change in list_edits(recipe):
        if (edit := change(recipe)) is None:
            continue
        text, edited = edit
        freed = need - sum(part.bytes for part in find_largest_stage(edited, machine)[1])
        if freed > 0:
            options.append((freed, text, edited))
    options.sort(key=lambda option: -option[0])
    single = [
        Suggestion(
            f"{text} frees {format_bytes(freed)}{'; then it fits' if need - freed <= machine.free else ''}", edited
        )
        for freed, text, edited in options
    ]
    if options and need - options[0][0] <= machine.free:
        return single
    return [*single, _combine_edits(recipe, machine)]


def _combine_edits(recipe: Recipe, machine: Machine) -> Suggestion:
    """Apply one edit after another, always the one that frees most, until it fits or none frees anything."""
    need = sum(part.bytes for part in find_largest_stage(recipe, machine)[1])
    texts: dict[Callable[[Recipe], Edit], str] = {}
    while need > machine.free:
        tried = [(change, edit) for change in list_edits(recipe) if (edit := change(recipe)) is not None]
        needs = [sum(part.bytes for part in find_largest_stage(edit[1], machine)[1]) for _, edit in tried]
        if not needs or min(needs) >= need:
            smallest = f"at least {format_bytes(need)} are needed"
            return Suggestion(f"{smallest}: choose a smaller base model or a machine with more memory", None)
        need = min(needs)
        change, (text, recipe) = tried[needs.index(need)]
        texts[change] = text
    spare = format_bytes(machine.free - need)
    return Suggestion(f"to make it fit: {'; '.join(texts.values())} ({spare} to spare)", recipe)


Edit = tuple[str, Recipe] | None


def _edit_model(key: str, before: object, after: object, text: str) -> Callable[[Recipe], Edit]:
    def change(recipe: Recipe) -> Edit:
        if getattr(recipe.model, key) != before:
            return None
        return text, recipe.model_copy(update={"model": recipe.model.model_copy(update={key: after})})

    return change


MODEL_EDITS: tuple[Callable[[Recipe], Edit], ...] = (
    _edit_model("checkpointing", False, True, "model.checkpointing: true"),
    _edit_model("precision", "float32", "bfloat16", "model.precision: bfloat16"),
    _edit_model("precision", "auto", "bfloat16", "model.precision: bfloat16"),
    _edit_model("lora", None, LoraSettings(), "model.lora: {} (an adapter instead of every weight)"),
)


def list_edits(recipe: Recipe) -> list[Callable[[Recipe], Edit]]:
    """The edits that free memory: those of its methods, then the model's. A job that ran out of it names them, too."""
    return [*(edit for stage in recipe.training_stages for edit in stage.method.memory_edits), *MODEL_EDITS]
