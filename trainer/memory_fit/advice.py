"""Suggests edits to a recipe that does not fit into the RAM or the GPU."""

from __future__ import annotations

import math
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
    for change in EDITS:
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
        tried = [(change, edit) for change in EDITS if (edit := change(recipe)) is not None]
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


def _halve_sft(recipe: Recipe) -> Edit:
    if (sft := recipe.sft) is None or sft.batch == recipe.processes:
        return None
    half = sft.batch // recipe.processes // 2 * recipe.processes
    accumulation = min(4096, math.ceil(sft.accumulation * sft.batch / half))
    edited = sft.model_copy(update={"batch": half, "accumulation": accumulation})
    return f"sft.batch: {half} with sft.accumulation: {accumulation}", recipe.model_copy(update={"sft": edited})


def _halve_grpo(recipe: Recipe) -> Edit:
    if (grpo := recipe.grpo) is None or grpo.micro_batch == recipe.processes:
        return None
    episodes, least = grpo.rollouts.prompts * grpo.rollouts.group, recipe.processes
    sizes = range(grpo.micro_batch // least // 2 * least, 0, -least)
    half = next(size for size in sizes if episodes % size == 0)
    edited = grpo.model_copy(update={"micro_batch": half})
    return f"grpo.micro_batch: {half}", recipe.model_copy(update={"grpo": edited})


def _halve_concurrency(recipe: Recipe) -> Edit:
    grpo = recipe.grpo
    if grpo is None or grpo.rollouts.backend != "transformers":
        return None
    rows = min(grpo.rollouts.concurrency, grpo.rollouts.prompts * grpo.rollouts.group) // 2
    return _edit_rollouts(recipe, "concurrency", rows, f"grpo.rollouts.concurrency: {rows}") if rows else None


def _halve_vllm(recipe: Recipe) -> Edit:
    if recipe.grpo is None or recipe.grpo.rollouts.backend == "transformers":
        return None
    share = recipe.grpo.rollouts.vllm_memory / 2
    return _edit_rollouts(recipe, "vllm_memory", share, f"grpo.rollouts.vllm_memory: {share:g}")


def _edit_rollouts(recipe: Recipe, key: str, value: float, text: str) -> Edit:
    assert recipe.grpo is not None
    rollouts = recipe.grpo.rollouts.model_copy(update={key: value})
    return text, recipe.model_copy(update={"grpo": recipe.grpo.model_copy(update={"rollouts": rollouts})})


def _edit_model(key: str, before: object, after: object, text: str) -> Callable[[Recipe], Edit]:
    def change(recipe: Recipe) -> Edit:
        if getattr(recipe.model, key) != before:
            return None
        return text, recipe.model_copy(update={"model": recipe.model.model_copy(update={key: after})})

    return change


EDITS: tuple[Callable[[Recipe], Edit], ...] = (  # also what a job that ran out of memory suggests
    _halve_sft,
    _halve_grpo,
    _halve_concurrency,
    _edit_model("checkpointing", False, True, "model.checkpointing: true"),
    _edit_model("precision", "float32", "bfloat16", "model.precision: bfloat16"),
    _edit_model("precision", "auto", "bfloat16", "model.precision: bfloat16"),
    _edit_model("lora", None, LoraSettings(), "model.lora: {} (an adapter instead of every weight)"),
    _halve_vllm,
)
