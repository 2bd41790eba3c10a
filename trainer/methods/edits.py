"""Edits of a recipe that free memory and that several methods share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.methods.base import Edit
    from trainer.recipe import Recipe


def make_halve_batch(key: str) -> Callable[[Recipe], Edit]:
    """The edit that halves the `batch` of the section `key`, with as much more `accumulation`."""

    def halve(recipe: Recipe) -> Edit:
        section: Any = getattr(recipe, key)
        if section is None or section.batch == recipe.processes:
            return None
        half = section.batch // recipe.processes // 2 * recipe.processes
        accumulation = min(4096, math.ceil(section.accumulation * section.batch / half))
        edited = section.model_copy(update={"batch": half, "accumulation": accumulation})
        return f"{key}.batch: {half} with {key}.accumulation: {accumulation}", recipe.model_copy(update={key: edited})

    return halve
